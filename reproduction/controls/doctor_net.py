"""Weighted Doctor Net with its second phase as in the paper."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np

from neucrowd_tf.declare.declarations import estimator
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Network
from neucrowd_tf.methods.crowd_layers.common.network import CompiledNetwork
from neucrowd_tf.methods.crowd_layers.common.presets import PRESETS
from neucrowd_tf.methods.crowd_layers.doctor_net import WeightedDoctorNet
from neucrowd_tf.training.estimator import TrainingData
from reproduction.controls.doctor_net_model import RawWeights


@register_method(
    "wdn_control",
    summary="Weighted Doctor Net with the published second phase",
    presets=PRESETS["wdn"],
)
@estimator
class ControlledDoctorNet(WeightedDoctorNet):
    """Weighted Doctor Net whose annotators' weights can be trained as in the paper.

    References:
        DASC, section 4.1 and eq. 7.
    """

    weight_softmax: Annotated[
        Literal["training", "after"],
        "\"training\" has the softmax over annotators' weights in the second phase's loss;"
        ' "after" puts it on the raw weights when they are trained, as the paper says.',
    ] = "training"

    def _weights_model(self, *arguments: Any) -> Network:
        if self.weight_softmax == "after":
            return RawWeights(*arguments)
        return super()._weights_model(*arguments)

    def _set_targets(self, network: CompiledNetwork, data: TrainingData) -> None:
        super()._set_targets(network, data)
        if self.weight_softmax == "after":
            annotators = data.annotations.num_annotators
            network.second.average.weight.assign(np.full(annotators, 1.0 / annotators, np.float32))
