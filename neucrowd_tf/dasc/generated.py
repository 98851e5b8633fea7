"""Self-training whose pseudo-annotations are what CrowdInG's generator answers."""

from __future__ import annotations

from typing import Any

from neucrowd_tf import registry
from neucrowd_tf.arguments import argument, estimator, fitted, none, text, whole
from neucrowd_tf.dasc.methods import SelfTrainedCrowdLayer, schedule_presets
from neucrowd_tf.errors import UsageError
from neucrowd_tf.registry import register_method


@register_method(
    "dasc_crowding",
    summary="CrowdLayer with DASC's quotas of annotations that CrowdInG's generator fills in",
    requires_identities=True,
    presets={
        name: {**preset, "preset": name}
        for name, preset in schedule_presets("crowd_layer").items()
        if name in ("labelme", "music", "cifar10n")
    },
    paper="ours",
)
@estimator
class FilledByGenerator(SelfTrainedCrowdLayer):  # type: ignore[misc, valid-type]
    """Self-training of CrowdLayer in which a generator, fitted once to the observed annotations,
    fills the empty cells: softly, as labels are drawn from its calibrated answers, and by DASC's
    quotas.

    Attributes:
        generator_: the fitted estimator whose generator answers.

    References:
        DASC, equations 3 and 4 (the quotas); CrowdInG, section 3.3 (the generator). Their
        combination is ours.
    """

    generator: str = argument(
        "crowding", text, "the method whose answers fill the cells: CrowdInG, or a variant of it."
    )
    generator_epochs: int | None = argument(
        None, none | whole(1), "of the generator's game; None is the method's."
    )
    preset: str | None = argument(
        None,
        none | text,
        "the dataset whose presets the generator's method takes; None takes its defaults.",
    )
    filling: str = "drawn"
    calibration: float = 0.2

    generator_: Any = fitted()

    def _check_together(self) -> None:
        method = registry.method(self.generator, "generator")
        registry.check_preset(self.preset, method.presets, schedule_presets("crowd_layer"))
        if not hasattr(method.factory, "predict_annotators"):
            raise UsageError(
                "generator: expected a method that predicts what annotators would answer, as"
                f" crowding, received {self.generator!r}"
            )

    def _filling_model(self) -> Any:
        given = {} if self.generator_epochs is None else {"epochs": self.generator_epochs}
        self.generator_ = registry.method(self.generator).make(dataset=self.preset, **given)
        return self.generator_
