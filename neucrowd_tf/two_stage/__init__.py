"""Two stages: labels from the crowd first, then a classifier."""

from neucrowd_tf.two_stage.deep_labels import DeepLabels
from neucrowd_tf.two_stage.labels_first import TwoStageClassifier
from neucrowd_tf.two_stage.softprob import SoftProb

__all__ = ["DeepLabels", "SoftProb", "TwoStageClassifier"]
