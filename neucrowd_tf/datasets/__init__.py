"""Datasets: features, annotations, splits and truth in one object."""

from neucrowd_tf.datasets.core import UNKNOWN, Card, CrowdDataset, Split

__all__ = ["UNKNOWN", "Card", "CrowdDataset", "Split"]
