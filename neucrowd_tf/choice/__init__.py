"""Choosing a method without truth."""

from neucrowd_tf.choice.auto import Auto

__all__ = ["Auto"]
