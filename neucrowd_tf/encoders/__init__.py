"""Encoders: trained networks that turn texts into vectors, which methods take as features."""

from neucrowd_tf.encoders.sentences import SentenceEncoder

__all__ = ["SentenceEncoder"]
