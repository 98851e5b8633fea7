"""JSON, written whole or not at all, and read with errors that name the file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.files.reading import read_text


def write_json(path: str | Path, value: Any) -> None:
    """Writes JSON atomically.

    NumPy scalars and arrays become numbers and lists, NaN becomes null.
    """
    write_text(path, to_json(value, indent=2) + "\n")


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Returns a value as JSON text; see `jsonable`."""
    return json.dumps(jsonable(value), indent=indent, ensure_ascii=False, allow_nan=False)


def jsonable(value: Any, spelt: Callable[[Any], Any] = lambda value: value) -> Any:
    """Returns `value` in JSON's types; other objects as `spelt` has them."""
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
    return value if isinstance(value, (bool, int, float, str, type(None))) else spelt(value)


def read_json(path: str | Path) -> Any:
    """Reads JSON; a file that is not JSON is a DataError that names it."""
    text = read_text(path)
    try:
        return parse_json(text, str(path))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}: expected JSON, received {error}") from None


def parse_json(text: str, name: str) -> Any:
    """Parses JSON.

    Raises:
        DataError: nested too deeply, a number of thousands of digits, or a key that is there twice.
        JSONDecodeError: no JSON.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        parsed = dict(pairs)
        if len(parsed) != len(pairs):
            twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            raise DataError(f"{name}: expected each key once, received {twice!r} again")
        return parsed

    try:
        return json.loads(text, object_pairs_hook=once)
    except (json.JSONDecodeError, DataError):
        raise
    except RecursionError:
        raise DataError(f"{name}: expected JSON, received one nested too deeply") from None
    except ValueError:  # more digits than Python turns into a number
        raise DataError(
            f"{name}: expected JSON, received a number of thousands of digits"
        ) from None
