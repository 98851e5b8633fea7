"""Self-training over annot-mix."""

from __future__ import annotations

from neucrowd_tf.arguments import estimator
from neucrowd_tf.crowd_layers.annot_mix import AnnotMix
from neucrowd_tf.dasc.methods import SelfTrainedLayer, register_self_training


@estimator
class SelfTrainedAnnotMix(SelfTrainedLayer):
    """Self-training over `AnnotMix`, from the arguments of both."""

    layer = AnnotMix


register_self_training("annot_mix", SelfTrainedAnnotMix, "annot-mix")
