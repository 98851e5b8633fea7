"""Weighted Doctor Net with its second phase as in the paper."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal

import numpy as np

from neucrowd_tf.arguments import argument, estimator, one_of
from neucrowd_tf.crowd_layers.doctor_net import WeightedDoctorNet
from neucrowd_tf.crowd_layers.presets import PRESETS
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run


@register_method(
    "wdn_control",
    summary="Weighted Doctor Net with the published second phase",
    requires_identities=True,
    presets=PRESETS["wdn"],
)
@estimator
class ControlledDoctorNet(WeightedDoctorNet):
    """Weighted Doctor Net whose annotators' weights can be trained as in the paper.

    References:
        DASC, section 4.1 and eq. 7.
    """

    weight_schedule: Literal["constant", "cyclic"] = argument(
        "constant",
        one_of("constant", "cyclic"),
        '"constant" (`optimizer` at `weight_learning_rate`), or "cyclic": SGD whose rate runs'
        " between 1e-3 and 1e-2 and its momentum between .9 and .8.",
    )
    weight_softmax: Literal["training", "after"] = argument(
        "training",
        one_of("training", "after"),
        "\"training\" has the softmax over annotators' weights in the second phase's loss;"
        ' "after" puts it on the raw weights when they are trained, as the paper says.',
    )

    def _spec(self, data: TrainingData, run: Run) -> tuple[Hashable, ...]:
        length = len(data.features)  # of the cyclic schedule
        return (*super()._spec(data, run), length)

    def _weights_model(self, *parts: Any) -> Any:
        from reproduction.controls.doctor_net_model import RawWeights

        return (
            RawWeights(*parts) if self.weight_softmax == "after" else super()._weights_model(*parts)
        )

    def _compile(self, network: Any, run: Run) -> None:
        from reproduction.controls.doctor_net_model import CyclicSGD

        super()._compile(network, run)
        if self.weight_schedule == "cyclic":
            # Half a cycle of five epochs, within the two to ten that Smith recommends.
            network.second.compile(
                optimizer=CyclicSGD(half_cycle=5 * network.steps),
                steps_per_execution=run.steps_per_call(network.steps),
                jit_compile=False,
            )

    def _set_targets(self, network: Any, data: TrainingData) -> None:
        super()._set_targets(network, data)
        if self.weight_softmax == "after":
            annotators = data.annotations.num_annotators
            network.second.average.weight.assign(np.full(annotators, 1.0 / annotators, np.float32))
