"""A classifier with annotator heads: CrowdLayer, Anno-Reg, Weighted Doctor Net and rivals."""

from neucrowd_tf.crowd_layers.anno_reg import AnnoReg
from neucrowd_tf.crowd_layers.annot_mix import AnnotMix
from neucrowd_tf.crowd_layers.crowd_layer import CrowdLayer
from neucrowd_tf.crowd_layers.doctor_net import WeightedDoctorNet
from neucrowd_tf.crowd_layers.geocrowdnet import GeoCrowdNetF

__all__ = ["AnnoReg", "AnnotMix", "CrowdLayer", "GeoCrowdNetF", "WeightedDoctorNet"]
