"""CrowdInG: generative augmentation of missing annotations (Chu and Wang, KDD 2021).

The method in one file: examples/crowding.py.
"""

from neucrowd_tf.methods.crowding import variants
from neucrowd_tf.methods.crowding.estimator import CrowdInG

__all__ = ["CrowdInG", "variants"]
