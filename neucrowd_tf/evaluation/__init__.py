"""Scores, intervals, cross-validation, and the reliability of annotators."""

from neucrowd_tf.evaluation.annotators import rank_annotators
from neucrowd_tf.evaluation.cross_validation import fold_dataset
from neucrowd_tf.evaluation.intervals import Interval, mean_interval, paired_interval

__all__ = ["Interval", "fold_dataset", "mean_interval", "paired_interval", "rank_annotators"]
