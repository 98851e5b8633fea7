"""A classifier with annotator heads: CrowdLayer, Anno-Reg and Weighted Doctor Net."""

from neucrowd_tf.crowd_layers.crowd_layer import CrowdLayer

__all__ = ["CrowdLayer"]
