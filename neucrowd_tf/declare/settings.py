"""Settings in TOML files beside their modules."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def settings_in(path: Path) -> dict[str, Any]:
    """Returns the settings of a TOML file, lists as tuples."""
    return dict(frozen(tomllib.loads(path.read_text(encoding="utf-8"))))


def frozen(value: Any) -> Any:
    """Returns a value of TOML or JSON with its lists as tuples."""
    if isinstance(value, dict):
        return {name: frozen(entry) for name, entry in value.items()}
    return tuple(map(frozen, value)) if isinstance(value, list) else value
