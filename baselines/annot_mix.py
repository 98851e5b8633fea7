"""Self-training over annot-mix."""

from __future__ import annotations

from neucrowd_tf.crowd_layers.annot_mix import AnnotMix
from neucrowd_tf.dasc.methods import self_trained

SelfTrainedAnnotMix = self_trained("annot_mix", AnnotMix, "annot-mix", module=__name__)
