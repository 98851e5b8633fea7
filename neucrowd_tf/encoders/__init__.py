"""Encoders: trained networks from texts or images to vectors, which methods take as features."""

from neucrowd_tf.encoders.base import Encoder
from neucrowd_tf.encoders.images import APPLICATION, ImageEncoder
from neucrowd_tf.encoders.sentences import SentenceEncoder

__all__ = ["Encoder", "ImageEncoder", "SentenceEncoder", "make_encoder"]


def make_encoder(source: str) -> Encoder:
    """Returns the unfitted encoder that `--encoder` names.

    Args:
        source: of an `ImageEncoder` if it begins with "keras:", else of a `SentenceEncoder`.
    """
    if source.startswith(APPLICATION):
        return ImageEncoder(source)
    return SentenceEncoder(source)
