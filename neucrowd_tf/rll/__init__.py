"""RLL: label confidence (section III-B) and the estimator (III-A, III-C)."""

from neucrowd_tf.rll.estimator import RLL

__all__ = ["RLL"]
