"""The estimator contract, training loops that resume exactly, and data pipelines."""

from neucrowd_tf.training.ensemble import Ensemble
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData, check_features
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.validation import hold_out

__all__ = ["CrowdEstimator", "Ensemble", "Run", "TrainingData", "check_features", "hold_out"]
