"""RLL: label confidence (section III-B), the estimator (III-A, III-C) and the released code's.

The method in one file: examples/rll.py.
"""

from neucrowd_tf.methods.rll.estimator import RLL

__all__ = ["RLL"]
