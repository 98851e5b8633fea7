"""A classifier with annotator heads: CrowdLayer, Anno-Reg and Weighted Doctor Net."""

from neucrowd_tf.crowd_layers.anno_reg import AnnoReg
from neucrowd_tf.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.crowd_layers.doctor_net import WeightedDoctorNet

__all__ = ["AnnoReg", "CrowdLayer", "WeightedDoctorNet"]
