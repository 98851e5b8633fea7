"""CrowdInG: generative augmentation of missing annotations (Chu and Wang, KDD 2021)."""

from neucrowd_tf.crowding import variants
from neucrowd_tf.crowding.estimator import CrowdInG

__all__ = ["CrowdInG", "variants"]
