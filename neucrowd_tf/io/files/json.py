"""JSON, written whole or not at all, and read with errors that name the file."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.arrays import DIGEST
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.files.reading import read_text


def write_json(path: str | Path, value: Any) -> None:
    """Writes JSON atomically.

    NumPy scalars and arrays become numbers and lists, NaN becomes null.
    """
    write_text(path, to_json(value, indent=2) + "\n")


def write_sealed(path: str | Path, value: Mapping[str, Any]) -> None:
    """Writes an object as JSON atomically, with a digest of it and of the file's name."""
    write_json(path, {**value, DIGEST: _seal(path, value)})


def read_sealed(path: str | Path) -> dict[str, Any]:
    """Reads what `write_sealed` wrote.

    Raises:
        DataError: a file that is damaged, or that something else wrote.
    """
    parsed = read_json(path)
    seal = parsed.pop(DIGEST, None) if isinstance(parsed, dict) else None
    if seal is None or seal != _seal(path, parsed):
        raise DataError(f"{path}: expected JSON as it was written, received a damaged file")
    return dict(parsed)


def _seal(path: str | Path, value: Mapping[str, Any]) -> str:
    return hashlib.sha256(f"{Path(path).name}\n{to_json(value)}".encode()).hexdigest()


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
