"""What results are worth: intervals, paired comparison, cross-validation, and the ranking of
annotators.
"""

from neucrowd_tf.evaluation.annotator_ranking import rank_annotators
from neucrowd_tf.evaluation.comparison import PairedComparison, compare_methods, paired_comparison
from neucrowd_tf.evaluation.cross_validation import Fold, fold_dataset, repeated_stratified_folds
from neucrowd_tf.evaluation.intervals import (
    Interval,
    bootstrap_intervals,
    mean_interval,
    wilson_interval,
)

__all__ = [
    "Fold",
    "Interval",
    "PairedComparison",
    "bootstrap_intervals",
    "compare_methods",
    "fold_dataset",
    "mean_interval",
    "paired_comparison",
    "rank_annotators",
    "repeated_stratified_folds",
    "wilson_interval",
]
