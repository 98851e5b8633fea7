"""The names under which a crowd layer is registered: alone, against imbalance, and with DASC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.variants import settings_in
from neucrowd_tf.methods.crowd_layers.common.presets import (
    PRESETS,
    SPACE,
    STRONGER,
    Preset,
    schedule_presets,
)

Factory = TypeVar("Factory", bound=Callable[..., Any])

_SETTINGS = settings_in(Path(__file__).with_name("names.toml"))
DASC_CHANGES = (
    "validation data choose the round, other classes get what an exhausted one cannot fill, lost"
    " classes come back; the paper's words: pick=last, hand_on=False"
)
IMBALANCED: dict[str, str] = _SETTINGS["imbalanced"]
SELECTIONS: dict[str, tuple[str, Mapping[str, Any]]] = _SETTINGS["selections"]


def registered(
    name: str,
    summary: str,
    *,
    title: str | None = None,
    imbalanced: bool = False,
    presets: Mapping[str, Preset] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Callable[[Factory], Factory]:
    """Returns a decorator that registers a crowd layer under its names.

    Args:
        name: of the layer alone.
        summary: one line for `--list`.
        title: the layer's name in words; with it, `dasc_<name>` is DASC over the layer.
        imbalanced: whether the layer is also registered as `<loss>_<name>` for each loss against
            imbalance, and as `<selection>_<name>` for each selection of self-training.
        presets: hyper-parameters by dataset; None takes those of layers without their own.
        defaults: the arguments that make this name out of the class.
    """
    kind = name if name in PRESETS else "others"
    common: dict[str, Any] = {"requires_identities": True, "space": SPACE}
    alone = {**common, "presets": presets or PRESETS[kind], "stronger": STRONGER}
    common["presets"] = schedule_presets(kind)
    common["space"] = {**SPACE, "quota": (500, 1000, 2000, 5000, 10_000), "rounds": (1, 2, 3, 5)}

    def decorate(factory: Factory) -> Factory:
        register_method(name, summary=summary, defaults=defaults or {}, **alone)(factory)
        for loss, addition in (IMBALANCED if imbalanced else {}).items():
            register_method(
                f"{loss}_{name}",
                summary=f"{summary}; {addition}",
                defaults={"imbalance": loss},
                **alone,
            )(factory)
        for selection, (description, options) in (SELECTIONS if title else {}).items():
            if imbalanced or selection == "dasc":
                register_method(
                    f"{selection}_{name}",
                    summary=f"{title} with {description}",
                    defaults={"estimator": name, **options},
                    changes=DASC_CHANGES if selection == "dasc" else "",
                    **common,
                )("neucrowd_tf.methods.dasc.estimator:DASC")
        return factory

    return decorate
