"""NamedValues in TOML files beside their modules."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from neucrowd_tf.declare.types import Fields


def settings_in(path: Path) -> Fields:
    """Returns the settings of a TOML file, lists as tuples."""
    return dict(frozen(tomllib.loads(path.read_text(encoding="utf-8"))))


def frozen(value: object) -> Any:
    """Returns a value of TOML or JSON with its lists as tuples."""
    if isinstance(value, dict):
        return {name: frozen(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return tuple(map(frozen, value))
    return value
