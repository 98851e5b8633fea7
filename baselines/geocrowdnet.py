"""Self-training over GeoCrowdNet."""

from __future__ import annotations

from neucrowd_tf.crowd_layers.geocrowdnet import GeoCrowdNetF, GeoCrowdNetW
from neucrowd_tf.dasc.methods import self_trained

SelfTrainedGeoCrowdNetF = self_trained(
    "geocrowdnet_f", GeoCrowdNetF, "GeoCrowdNet", module=__name__
)
SelfTrainedGeoCrowdNetW = self_trained(
    "geocrowdnet_w", GeoCrowdNetW, "GeoCrowdNet", module=__name__
)
