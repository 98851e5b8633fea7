"""Logistic regressions on inferred labels (`TwoStageClassifier`) or on every vote (`SoftProb`).

`DeepLabels`, which needs TensorFlow, is in `two_stage.deep_labels`.
"""

from neucrowd_tf.methods.two_stage.labels_first import TwoStageClassifier
from neucrowd_tf.methods.two_stage.softprob import SoftProb

__all__ = ["SoftProb", "TwoStageClassifier"]
