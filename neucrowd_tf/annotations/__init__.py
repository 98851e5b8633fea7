"""Who gave which label to what: triples, names, statistics and simulated annotators."""

from neucrowd_tf.annotations.codes import MISSING, Duplicates, as_name_array, factorize, spelt
from neucrowd_tf.annotations.core import Annotations, as_annotations

__all__ = [
    "MISSING",
    "Annotations",
    "Duplicates",
    "as_annotations",
    "as_name_array",
    "factorize",
    "spelt",
]
