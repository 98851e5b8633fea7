"""Self-training over each crowd layer as a class of its own, and the names they are registered
under.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from neucrowd_tf.arguments import argument, declared, estimator
from neucrowd_tf.crowd_layers import AnnoReg, CrowdLayer, WeightedDoctorNet
from neucrowd_tf.crowd_layers.annotator_estimator import AnnotatorEstimator
from neucrowd_tf.crowd_layers.presets import PAPER, PRESETS, SPACE
from neucrowd_tf.dasc.estimator import SelfTraining
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
    "confidence": (
        "self-training on the most confident pseudo-annotations",
        {"selection": "confidence"},
    ),
    "random": ("self-training on random pseudo-annotations", {"selection": "random"}),
    "equal": ("self-training on as many pseudo-annotations of each class", {"selection": "equal"}),
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
    """Self-training over a crowd layer that is made from plain arguments: those of both.

    `seed` is self-training's, which sets the layer's; `validation_fraction` and `patience` are
    self-training's too.
    """

    layer: ClassVar[type[AnnotatorEstimator]]

    def _crowd_model(self) -> Any:
        own = {field.name for field in declared(SelfTraining)}
        names = [field.name for field in declared(self.layer) if field.name not in own]
        return self.layer(**{name: getattr(self, name) for name in names})


def self_trained(layer: type[AnnotatorEstimator]) -> type[SelfTrainedLayer]:
    """Returns the class of self-training over a crowd layer; its constructor takes the arguments of
    both by name.
    """
    own = {field.name for field in declared(SelfTraining)}
    added = [field for field in declared(layer) if field.name not in own]
    body: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": f"Self-training over `{layer.__name__}`, made from the arguments of both.",
        "__annotations__": {field.name: field.type for field in added},
        "layer": layer,
    }
    for field in added:
        known = field.metadata
        body[field.name] = argument(field.default, known["constraint"], known["meaning"])
    return estimator(type(f"SelfTrained{layer.__name__}", (SelfTrainedLayer,), body))


def register_self_training(
    name: str,
    kind: type[SelfTrainedLayer],
    title: str,
    presets: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Registers `<selection>_<name>` for every selection of the paper's layers, `dasc_<name>` alone
    for a layer without presets.

    Args:
        name: the crowd layer's.
        kind: what `self_trained` made of it.
        title: the crowd layer's name in words.
        presets: hyper-parameters of both by dataset; None takes those of layers without their own.
    """
    selections = SELECTIONS if presets is not None else {"dasc": SELECTIONS["dasc"]}
    presets = schedule_presets("others") if presets is None else presets
    space = {**SPACE, "quota": (500, 1000, 2000, 5000, 10_000), "rounds": (1, 2, 3, 5)}
    for selection, (what, defaults) in selections.items():
        register_method(
            f"{selection}_{name}",
            summary=f"{title} with {what}",
            defaults=defaults,
            requires_identities=True,
            presets=presets,
            space=space,
            paper=PAPER,
        )(kind)


def schedule_presets(name: str) -> dict[str, dict[str, Any]]:
    """Returns a crowd layer's presets with M and the number of rounds of each dataset (sections 4.1
    and 4.5), and which round predicts where it is the last.
    """

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


SelfTrainedCrowdLayer = self_trained(CrowdLayer)
SelfTrainedAnnoReg = self_trained(AnnoReg)
SelfTrainedWeightedDoctorNet = self_trained(WeightedDoctorNet)

register_self_training(
    "crowd_layer", SelfTrainedCrowdLayer, "CrowdLayer", schedule_presets("crowd_layer")
)
register_self_training("anno_reg", SelfTrainedAnnoReg, "Anno-Reg", schedule_presets("anno_reg"))
register_self_training(
    "wdn", SelfTrainedWeightedDoctorNet, "Weighted Doctor Net", schedule_presets("wdn")
)
