"""`auto`: the choice of a method without true labels."""

from neucrowd_tf.methods.auto.estimator import Auto

__all__ = ["Auto"]
