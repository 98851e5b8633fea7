"""JSON, read with errors that name the file."""

from __future__ import annotations

import json
import operator
from collections import Counter
from pathlib import Path
from typing import Any

from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.checks import broken
from neucrowd_tf.io.files.reading import read_text


def read_json(path: str | Path) -> Any:
    """Reads JSON; a file that is not JSON is a DataError that names it."""
    return parse_json(read_text(path), path)


def parse_json(text: str, path: str | Path, line: int | None = None) -> Any:
    """Parses JSON.

    Args:
        text: the whole file, or one line of it.
        path: the file.
        line: the line's number.

    Raises:
        DataError: no JSON, nested too deeply, a number of thousands of digits, or a key that is
            there twice; with the line if it is known.
    """
    place = "" if line is None else f"line {line}"
    try:
        return json.loads(text, object_pairs_hook=_with_each_key_once)
    except json.JSONDecodeError as bad:
        problem = f"this is not JSON ({bad.msg})"
        if bad.pos >= len(text.rstrip()) or bad.msg.startswith("Unterminated"):
            problem = "the JSON ends early"
        raise broken(path, problem, place or f"line {bad.lineno}") from None
    except RecursionError:
        raise broken(path, "the JSON is nested too deeply", place) from None
    except ValueError as bad:
        raise broken(path, f"this is not JSON ({bad})", place) from None


def _with_each_key_once(pairs: list[tuple[str, Any]]) -> Fields:
    parsed = dict(pairs)
    if len(parsed) != len(pairs):
        twice, _ = Counter(map(operator.itemgetter(0), pairs)).most_common(1)[0]
        raise ValueError(f"the key {twice!r} occurs twice")
    return parsed
