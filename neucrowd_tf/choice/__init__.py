"""`auto`: the choice of a method without true labels."""

from neucrowd_tf.choice.auto import Auto

__all__ = ["Auto"]
