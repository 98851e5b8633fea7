"""Annotator heads for a Keras model of one's own.

Besides them there is the loss of a matrix of labels with gaps.
"""

from __future__ import annotations

from neucrowd_tf.crowd.head import AnnotatorHead
from neucrowd_tf.crowd.losses import AnnotationLoss
from neucrowd_tf.methods.anno_reg import ConfusionHead
from neucrowd_tf.methods.conal import ConalHead
from neucrowd_tf.methods.crowd_layer import CrowdConnection
from neucrowd_tf.methods.doctor_net import DoctorHeads
from neucrowd_tf.methods.geocrowdnet import GeoCrowdNetHead
from neucrowd_tf.methods.trace_reg import SoftplusConfusionHead
from neucrowd_tf.methods.unionnet import UnionHead

__all__ = [
    "AnnotationLoss",
    "AnnotatorHead",
    "ConalHead",
    "ConfusionHead",
    "CrowdConnection",
    "DoctorHeads",
    "GeoCrowdNetHead",
    "SoftplusConfusionHead",
    "UnionHead",
]
