"""The names under which self-training is registered, over each crowd-layer model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from neucrowd_tf.crowd_layers import AnnoReg, CrowdLayer, WeightedDoctorNet
from neucrowd_tf.crowd_layers.estimator import AnnotatorEstimator
from neucrowd_tf.crowd_layers.presets import PAPER, PRESETS, SPACE
from neucrowd_tf.dasc.estimator import DASC
from neucrowd_tf.registry import register_method

BASES: dict[str, type[AnnotatorEstimator]] = {
    "crowd_layer": CrowdLayer,
    "anno_reg": AnnoReg,
    "wdn": WeightedDoctorNet,
}
TITLES = {"crowd_layer": "CrowdLayer", "anno_reg": "Anno-Reg", "wdn": "Weighted Doctor Net"}
# M of section 4.1, by dataset and base model.
_QUOTAS = {
    "labelme": {"anno_reg": 20_000, "crowd_layer": 10_000, "wdn": 10_000},
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


def _schedule(dataset: str, base: str) -> dict[str, Any]:
    """Returns M and the number of rounds of a dataset (sections 4.1 and 4.5), and which round
    predicts where it is the last.
    """
    if dataset in _QUOTAS:
        return {"quota": _QUOTAS[dataset][base], "rounds": 5}
    if "_ovr_" in dataset:
        return {"quota": 500, "rounds": 14}
    # Convolutions train for minutes a round: no second pass over all rounds only to choose one of
    # them.
    return {"quota": 2_000, "rounds": 5, "pick": "last"}


def factory(base: str) -> Callable[..., DASC]:
    """Returns a function that makes self-training over a base model from the parameters of both, by
    plain names.

    `seed` goes to both; `validation_fraction` and `patience` are self-training's.
    """
    made = BASES[base]
    outer = {
        name: item
        for name, item in inspect.signature(DASC).parameters.items()
        if name != "estimator"
    }
    inner = {
        name: item for name, item in inspect.signature(made).parameters.items() if name not in outer
    }

    def make(**parameters: Any) -> DASC:
        unknown = sorted(set(parameters) - set(outer) - set(inner))
        if unknown:
            raise TypeError(f"unexpected hyper-parameter {unknown[0]!r}")
        own = {name: value for name, value in parameters.items() if name in outer}
        rest = {name: value for name, value in parameters.items() if name in inner}
        return DASC(made(**rest, **({"seed": own["seed"]} if "seed" in own else {})), **own)

    keyword = inspect.Parameter.KEYWORD_ONLY
    make.__signature__ = inspect.Signature(
        [item.replace(kind=keyword) for item in (*outer.values(), *inner.values())]
    )  # type: ignore[attr-defined]
    make.__name__ = f"self_training_{base}"
    make.__doc__ = f"Makes a `DASC` over {TITLES[base]}; takes the parameters of both."
    return make


FACTORIES = {base: factory(base) for base in BASES}

for _base, _make in FACTORIES.items():
    _presets = {
        dataset: {**preset, **_schedule(dataset, _base)}
        for dataset, preset in PRESETS[_base].items()
    }
    _space = {**SPACE, "quota": (500, 1000, 2000, 5000, 10_000), "rounds": (1, 2, 3, 5)}
    for _name, (_what, _defaults) in SELECTIONS.items():
        register_method(
            f"{_name}_{_base}",
            summary=f"{TITLES[_base]} with {_what}",
            defaults=_defaults,
            requires_identities=True,
            presets=_presets,
            space=_space,
            paper=PAPER,
        )(_make)
