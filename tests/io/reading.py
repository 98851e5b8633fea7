"""Small files of labels, what is read of them, and what the reader proposes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels import Reading, read_annotations
from neucrowd_tf.io.schema import TableOptions


def rows(header: str, *cells: str) -> str:
    return "\n".join([header, *cells]) + "\n"


def read(folder: Path, content, name: str = "a.csv", **flags) -> Reading:
    """Reads a file with this content: bytes, a text, or records."""
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_annotations(path, TableOptions.of(**flags))


def message(folder: Path, content, name: str = "a.csv", **flags) -> str:
    """Returns the message that rejects such a file."""
    with pytest.raises(DataError) as caught:
        read(folder, content, name, **flags)
    return str(caught.value)


def pasted(shown: str) -> dict[str, str]:
    """The flags of the command that a message proposes."""
    line = next(line for line in shown.split("\n") if line.startswith("  neucrowd "))
    flags = dict(word[2:].split("=", 1) for word in shlex.split(line) if word.startswith("--"))
    return {name: value for name, value in flags.items() if name != "annotations"}
