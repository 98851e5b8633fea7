"""Settings in TOML files beside their modules, and the variants of a method that they declare."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neucrowd_tf.declare.registration import Factory, register_method


def register_variants(
    variants: Mapping[str, Mapping[str, Any]], factory: Factory, **fields: Any
) -> None:
    """Registers a class under several names.

    Args:
        variants: of each name its "summary", its "space" beyond the common one if it has any, and
            the arguments that differ. "changes" is as in `Registered`.
        factory: the class.
        fields: further fields of `Registered`, the same for all.
    """
    for name, variant in variants.items():
        defaults = dict(variant)
        about = fields | {"summary": defaults.pop("summary")}
        about["changes"] = defaults.pop("changes", "")
        about["space"] = {**fields.get("space", {}), **defaults.pop("space", {})}
        register_method(name, defaults=defaults, **about)(factory)


def settings_in(path: Path) -> dict[str, Any]:
    """Returns the settings of a TOML file, lists as tuples."""
    return dict(frozen(tomllib.loads(path.read_text(encoding="utf-8"))))


def frozen(value: Any) -> Any:
    """Returns a value of TOML or JSON with its lists as tuples."""
    if isinstance(value, dict):
        return {name: frozen(entry) for name, entry in value.items()}
    return tuple(map(frozen, value)) if isinstance(value, list) else value
