"""Self-training over two crowd layers, averaged over layers and seeds. Ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neucrowd_tf import registry
from neucrowd_tf.arguments import argument, estimator, many, none, text, whole
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.ensemble import MeanOfFits


@register_method(
    "dasc_ensemble",
    summary="DASC over CrowdLayer and Anno-Reg, the mean of four seeds of each",
    requires_identities=True,
    presets={name: {"preset": name} for name in ("labelme", "music")},
)
@estimator
class AveragedMethods(MeanOfFits):
    """The mean of several registered methods, each with several seeds.

    Attributes:
        members_, confusion_matrices_: see `MeanOfFits`.
    """

    requires_identities = True

    averaged: Sequence[str] = argument(
        ("dasc_crowd_layer", "dasc_anno_reg"), many(text, "methods' names"), "what is averaged."
    )
    rounds: int | None = argument(None, none | whole(0), "of self-training; None is the methods'.")
    epochs: int | None = argument(None, none | whole(1), "of each fit; None is the methods'.")
    preset: str | None = argument(
        None, none | text, "the dataset whose presets the methods take; None takes their defaults."
    )

    def _check_together(self) -> None:
        methods = [registry.method(name, "averaged") for name in self.averaged]
        registry.check_preset(self.preset, *(method.presets for method in methods))

    def _estimators(self) -> list[Any]:
        schedule = {"rounds": self.rounds, "epochs": self.epochs}
        options: dict[str, Any] = {k: v for k, v in schedule.items() if v is not None}
        methods = [registry.method(name) for name in self.averaged]
        return [method.make(dataset=self.preset, **options) for method in methods]
