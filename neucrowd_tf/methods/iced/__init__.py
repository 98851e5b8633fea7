"""ICED: learning from imbalanced crowd labels by label inference and synthetic minority data.

The method in one file: examples/iced.py.
"""

from neucrowd_tf.methods.iced.estimator import ICED, score_rounds
from neucrowd_tf.methods.iced.inference import label_certainty

__all__ = ["ICED", "label_certainty", "score_rounds"]
