"""Self-training over both crowd layers with matrices, averaged over layers and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from neucrowd_tf import registry
from neucrowd_tf.arguments import argument, estimator, fitted, many, none, text, whole
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.ensemble import Ensemble
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.run import Run


@register_method(
    "dasc_ensemble",
    summary="DASC over CrowdLayer and Anno-Reg, the mean of four seeds of each",
    requires_identities=True,
    presets={name: {"preset": name} for name in ("labelme", "music")},
    paper="ours",
)
@estimator
class AveragedMethods(CrowdEstimator):
    """The mean of several registered methods, each with several seeds; see `Ensemble`.

    Attributes:
        ensemble_: the fitted `Ensemble`.
        confusion_matrices_: `[R, C true, C observed]`, the members' mean.
    """

    requires_identities = True
    distributed: ClassVar[bool] = True

    averaged: Sequence[str] = argument(
        ("dasc_crowd_layer", "dasc_anno_reg"), many(text, "methods' names"), "what is averaged."
    )
    size: int = argument(4, whole(1), "fits of each method; the first has the seed itself.")
    rounds: int | None = argument(None, none | whole(0), "of self-training; None is the methods'.")
    epochs: int | None = argument(None, none | whole(1), "of each fit; None is the methods'.")
    preset: str | None = argument(
        None, none | text, "the dataset whose presets the methods take; None takes their defaults."
    )

    ensemble_: Any = fitted()
    confusion_matrices_: Any = fitted()

    def _check_together(self) -> None:
        methods = [registry.method(name, "averaged") for name in self.averaged]
        registry.check_preset(self.preset, *(method.presets for method in methods))

    def _fit(self, data: TrainingData, run: Run) -> None:
        own = {"rounds": self.rounds, "epochs": self.epochs}
        given = {name: value for name, value in own.items() if value is not None}
        made = [registry.method(name).make(dataset=self.preset, **given) for name in self.averaged]
        self.ensemble_ = Ensemble(made, size=self.size, seed=self.seed)
        self.ensemble_.fit(data.features, data.annotations, data.named_validation, run=run)
        self.confusion_matrices_ = self.ensemble_.confusion_matrices_

    def _predict_proba(self, features: Any) -> Any:
        return self.ensemble_.predict_proba(features)

    def predict_annotators(self, features: Any) -> Any:
        """Returns the members' mean of what each annotator would answer, `[M, R, C]`."""
        return self.ensemble_.predict_annotators(features)

    def inference_model(self) -> Any:
        return self.ensemble_.inference_model()
