"""Self-training over two crowd layers, averaged over layers and seeds. Ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from neucrowd_tf import registry
from neucrowd_tf.declare import estimator, many, text, whole
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

    averaged: Annotated[Sequence[str], many(text, "methods' names"), "what is averaged."] = (
        "dasc_crowd_layer",
        "dasc_anno_reg",
    )
    rounds: Annotated[int | None, whole(0), "of self-training; None is the methods'."] = None
    epochs: Annotated[int | None, whole(1), "of each fit; None is the methods'."] = None
    preset: Annotated[
        str | None, text, "the dataset whose presets the methods take; None takes their defaults."
    ] = None

    def _check_together(self) -> None:
        methods = [registry.method(name, "averaged") for name in self.averaged]
        registry.check_preset(self.preset, *(method.presets for method in methods))

    def _estimators(self) -> list[Any]:
        schedule = {"rounds": self.rounds, "epochs": self.epochs}
        options: dict[str, Any] = {k: v for k, v in schedule.items() if v is not None}
        methods = [registry.method(name) for name in self.averaged]
        return [method.make(dataset=self.preset, **options) for method in methods]
