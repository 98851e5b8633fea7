"""Self-training over GeoCrowdNet."""

from __future__ import annotations

from neucrowd_tf.arguments import estimator
from neucrowd_tf.crowd_layers.geocrowdnet import GeoCrowdNetF, GeoCrowdNetW
from neucrowd_tf.dasc.methods import SelfTrainedLayer, register_self_training


@estimator
class SelfTrainedGeoCrowdNetF(SelfTrainedLayer):
    """Self-training over `GeoCrowdNetF`, from the arguments of both."""

    layer = GeoCrowdNetF


@estimator
class SelfTrainedGeoCrowdNetW(SelfTrainedLayer):
    """Self-training over `GeoCrowdNetW`, from the arguments of both."""

    layer = GeoCrowdNetW


register_self_training("geocrowdnet_f", SelfTrainedGeoCrowdNetF, "GeoCrowdNet")
register_self_training("geocrowdnet_w", SelfTrainedGeoCrowdNetW, "GeoCrowdNet")
