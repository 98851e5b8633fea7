"""DASC: confidence and quotas of pseudo-annotations, their selection, and the self-training.

The method in one file: examples/dasc.py.
"""

from neucrowd_tf.methods.dasc.estimator import DASC
from neucrowd_tf.methods.dasc.quality import majority_classes, selection_quality

__all__ = ["DASC", "majority_classes", "selection_quality"]
