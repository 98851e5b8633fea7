"""ICED: learning from imbalanced crowd labels by true-label inference and synthetic minority
data."""

from neucrowd_tf.iced.certainty import label_certainty
from neucrowd_tf.iced.estimator import ICED
from neucrowd_tf.iced.scores import score_rounds

__all__ = ["ICED", "label_certainty", "score_rounds"]
