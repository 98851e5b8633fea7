"""The estimator contract, training loops that resume exactly, and data pipelines."""

from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData, check_features, hold_out
from neucrowd_tf.training.run import Run

__all__ = ["CrowdEstimator", "Run", "TrainingData", "check_features", "hold_out"]
