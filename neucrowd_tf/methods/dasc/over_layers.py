"""The names of DASC over each crowd layer, as `dasc_conal`, with the paper's M and rounds."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.settings import settings_in
from neucrowd_tf.declare.types import Fields, NamedValues
from neucrowd_tf.methods.crowd_layers.common.presets import PRESETS, SPACE
from neucrowd_tf.methods.dasc.estimator import DASC

_SETTINGS = settings_in(Path(__file__).with_name("presets.toml"))
_QUOTAS: dict[str, dict[str, int]] = _SETTINGS["quotas"]
_LAYERS: dict[str, str] = _SETTINGS["layers"]
SELECTIONS: dict[str, tuple[str, NamedValues]] = _SETTINGS["selections"]
# How DASC differs from its paper; other selections are its rivals, "equal" is ours.
CHANGES = (
    "validation data choose the round, other classes get what an exhausted one cannot fill, lost"
    " classes come back, a fit that loses a class starts again; by the published equations:"
    " pick=last, hand_on=False"
)
# The paper's three, which it also compares with other selections.
_COMPARED = ("crowd_layer", "anno_reg", "wdn")


def schedule_presets(name: str) -> dict[str, Fields]:
    """Returns a crowd layer's presets with M and the number of rounds (sections 4.1 and 4.5)."""
    presets: dict[str, Fields] = {}
    for dataset, preset in PRESETS[name].items():
        presets[dataset] = {**preset, **_schedule(name, dataset)}
    if name != "wdn":
        # The printed 25 epochs of 512 in each round, 50 steps, where the layer alone takes 400: the
        # rounds of a model that fits its annotators more closely gain less. Chosen on LabelMe's
        # validation images (.890 with 50 steps, .870 with 400).
        presets["labelme"] |= {"batch_size": 512, "epochs": 25}
    return presets


def _schedule(name: str, dataset: str) -> Fields:
    if dataset in _QUOTAS:
        quotas = _QUOTAS[dataset]
        return {"quota": quotas.get(name, quotas["crowd_layer"]), "rounds": 5}
    if "_ovr_" in dataset:
        return {"quota": 500, "rounds": 14}
    # Convolutions train for minutes a round: no second pass over all rounds only to choose one
    # of them.
    return {"quota": 2_000, "rounds": 5, "pick": "last"}


def register_over(
    layer: str, title: str, *, module: str, selections: Collection[str] = ("dasc",)
) -> None:
    """Registers `<selection>_<layer>`: DASC over a registered crowd layer.

    Args:
        layer: the name under which the crowd layer is registered.
        title: the layer's name in words, for the summaries.
        module: the `__name__` of the module that calls this.
        selections: of `SELECTIONS`.
    """
    presets = schedule_presets(layer if layer in PRESETS else "others")
    for selection in selections:
        meaning, options = SELECTIONS[selection]
        register_method(
            f"{selection}_{layer}",
            summary=f"{title} with {meaning}",
            defaults={"estimator": layer, **options},
            presets=presets,
            space={**SPACE, "quota": (500, 1000, 2000, 5000, 10_000), "rounds": (1, 2, 3, 5)},
            changes=CHANGES if selection == "dasc" else "",
            module=module,
        )(DASC)


for _layer, _title in _LAYERS.items():
    register_over(
        _layer,
        _title,
        module=__name__,
        selections=tuple(SELECTIONS) if _layer in _COMPARED else ("dasc",),
    )
