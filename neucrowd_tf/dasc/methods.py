"""Self-training over each crowd layer as a class, and the names they are registered under."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Union

from neucrowd_tf.crowd_layers import AnnoReg, CrowdLayer, WeightedDoctorNet
from neucrowd_tf.crowd_layers.annotator_estimator import AnnotatorEstimator
from neucrowd_tf.crowd_layers.presets import PRESETS, SPACE
from neucrowd_tf.dasc.estimator import SelfTraining
from neucrowd_tf.declare import Declaration, declared, estimator
from neucrowd_tf.registry import register_method

# M of section 4.1, by dataset and crowd layer.
# Deviation: a tenth of it for Weighted Doctor Net on LabelMe, where with all of it the five rounds
# end below their start. We infer that the printed M goes with CrowdInG's 10,000 augmented images;
# DASC names 1,000 and no augmentation. The other layers keep the printed M.
_QUOTAS = {
    "labelme": {"anno_reg": 20_000, "crowd_layer": 10_000, "wdn": 1_000},
    "music": {"anno_reg": 700, "crowd_layer": 1_000, "wdn": 1_000},
}
SELECTIONS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "dasc": ("distribution-aware self-training (DASC)", {"selection": "dasc"}),
    "confidence": ("self-training by confidence", {"selection": "confidence"}),
    "random": ("self-training on random pseudo-annotations", {"selection": "random"}),
    "equal": ("self-training on as many of each class", {"selection": "equal"}),
    "focal_self": (
        "focal loss and self-training by confidence",
        {"selection": "confidence", "imbalance": "focal"},
    ),
    "cb_focal_self": (
        "class-balanced focal loss and self-training by confidence",
        {"selection": "confidence", "imbalance": "cb_focal"},
    ),
}


class SelfTrainedLayer(SelfTraining):
    """Self-training over a crowd layer, a subclass for each (see `self_trained`).

    `seed` is self-training's, which sets the layer's.
    """

    layer: ClassVar[type[AnnotatorEstimator]]

    def _crowd_model(self) -> Any:
        names = [field.name for field in _of_layer(self.layer)]
        return self.layer(**{name: getattr(self, name) for name in names})


def _of_layer(layer: type[AnnotatorEstimator]) -> list[Declaration]:
    """Returns the arguments that a layer has beside those of self-training."""
    # All rounds have the same number of epochs, and one rate; what chooses the round is fixed.
    fixed = {"patience", "min_delta", "schedule", "validation_fraction"}
    shared = {field.name for field in declared(SelfTraining)} | fixed
    return [field for field in declared(layer) if field.name not in shared]


def self_trained(
    name: str,
    layer: type[AnnotatorEstimator],
    title: str,
    presets: Mapping[str, Mapping[str, Any]] | None = None,
    module: str | None = None,
) -> Any:
    """Returns the class of self-training over a crowd layer, and registers it.

    It is registered as `<selection>_<name>` for each selection, or as `dasc_<name>` alone without
    presets. Assign it to `SelfTrained<layer>` in the layer's module, where pickle looks for it.

    Args:
        name: the crowd layer's.
        layer: its class.
        title: its name in words.
        presets: hyper-parameters of both by dataset; None takes those of layers without their own.
        module: where the class is assigned, if not in the layer's module.
    """
    fields = _of_layer(layer)
    body: dict[str, Any] = {
        "__module__": module or layer.__module__,
        "__doc__": f"Self-training over `{layer.__name__}`, from the arguments of both.",
        "__annotations__": {
            field.name: Annotated[Union[field.kinds], field.rule, field.meaning]  # noqa: UP007
            for field in fields
        },
        "layer": layer,
        "nested": layer.nested,
    }
    for field in fields:
        body[field.name] = field.default
    kind = estimator(type(f"SelfTrained{layer.__name__}", (SelfTrainedLayer,), body))
    selections = SELECTIONS if presets is not None else {"dasc": SELECTIONS["dasc"]}
    presets = schedule_presets("others") if presets is None else presets
    space = {**SPACE, "quota": (500, 1000, 2000, 5000, 10_000), "rounds": (1, 2, 3, 5)}
    for selection, (words, defaults) in selections.items():
        register_method(
            f"{selection}_{name}",
            summary=f"{title} with {words}",
            defaults=defaults,
            requires_identities=True,
            presets=presets,
            space=space,
        )(kind)
    return kind


def schedule_presets(name: str) -> dict[str, dict[str, Any]]:
    """Returns a crowd layer's presets with M and the number of rounds (sections 4.1 and 4.5)."""

    def schedule(dataset: str) -> dict[str, Any]:
        if dataset in _QUOTAS:
            quotas = _QUOTAS[dataset]
            return {"quota": quotas.get(name, quotas["crowd_layer"]), "rounds": 5}
        if "_ovr_" in dataset:
            return {"quota": 500, "rounds": 14}
        # Convolutions train for minutes a round: no second pass over all rounds only to choose one
        # of them.
        return {"quota": 2_000, "rounds": 5, "pick": "last"}

    presets = {
        dataset: {**preset, **schedule(dataset)} for dataset, preset in PRESETS[name].items()
    }
    if name != "wdn":
        # The printed 25 epochs of 512 in each round, 50 steps, where the layer alone takes 400: the
        # rounds of a model that fits its annotators more closely gain less. Chosen on LabelMe's
        # validation images (.890 with 50 steps, .870 with 400).
        presets["labelme"] |= {"batch_size": 512, "epochs": 25}
    return presets


SelfTrainedCrowdLayer = self_trained(
    "crowd_layer", CrowdLayer, "CrowdLayer", schedule_presets("crowd_layer"), __name__
)
SelfTrainedAnnoReg = self_trained(
    "anno_reg", AnnoReg, "Anno-Reg", schedule_presets("anno_reg"), __name__
)
SelfTrainedWeightedDoctorNet = self_trained(
    "wdn", WeightedDoctorNet, "Weighted Doctor Net", schedule_presets("wdn"), __name__
)
