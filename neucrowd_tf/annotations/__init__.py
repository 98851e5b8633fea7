"""Crowd annotations: triples, vote counts, their views, statistics and simulated annotators."""

from neucrowd_tf.annotations.codes import MISSING, Duplicates, encode_labels, factorize
from neucrowd_tf.annotations.core import Annotations
from neucrowd_tf.annotations.tables import as_annotations
from neucrowd_tf.names import as_name_array, spelt

__all__ = [
    "MISSING",
    "Annotations",
    "Duplicates",
    "as_annotations",
    "as_name_array",
    "encode_labels",
    "factorize",
    "spelt",
]
