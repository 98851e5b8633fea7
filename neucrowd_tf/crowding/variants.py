"""The registered names of CrowdInG: the method, the ablations of its tables, and DL-CL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neucrowd_tf.crowd.presets import settings_in
from neucrowd_tf.crowding.estimator import CrowdInG
from neucrowd_tf.registration import register_method

_SETTINGS = settings_in(Path(__file__).with_suffix(".toml"))
PRESETS: dict[str, dict[str, Any]] = _SETTINGS["presets"]
SPACE: dict[str, tuple[Any, ...]] = _SETTINGS["space"]


def register(name: str, summary: str, kind: type[CrowdInG] = CrowdInG, **defaults: Any) -> None:
    """Registers a variant of CrowdInG.

    Args:
        name: as in `--method`.
        summary: one line for `--list`.
        kind: the class.
        defaults: the arguments that differ.
    """
    register_method(name, summary=summary, defaults=defaults, presets=PRESETS, space=SPACE)(kind)


for _name, _variant in _SETTINGS["variants"].items():
    register(_name, **_variant)
