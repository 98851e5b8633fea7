"""Values as JSON text, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.io.files.atomic import write_text


def write_json(path: str | Path, value: Any) -> None:
    """Writes JSON atomically.

    NumPy scalars and arrays become numbers and lists, NaN becomes null.
    """
    write_text(path, to_json(value, indent=2) + "\n")


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Returns a value as JSON text; see `jsonable`."""
    return json.dumps(jsonable(value), indent=indent, ensure_ascii=False, allow_nan=False)


def jsonable(value: Any, spelt: Callable[[Any], Any] = lambda value: value) -> Any:
    """Returns `value` in JSON's types; other objects become what `spelt` returns."""
    if isinstance(value, dict):
        return {str(key): jsonable(item, spelt) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [jsonable(item, spelt) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return jsonable(value.tolist(), spelt)
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    return spelt(value)
