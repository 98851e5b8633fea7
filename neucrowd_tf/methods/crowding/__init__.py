"""CrowdInG: generative augmentation of missing annotations (Chu and Wang, KDD 2021).

The same in one file, in the paper's order: examples/crowding.py.
"""

from neucrowd_tf.methods.crowding import variants
from neucrowd_tf.methods.crowding.estimator import CrowdInG

__all__ = ["CrowdInG", "variants"]
