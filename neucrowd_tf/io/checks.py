"""Errors for rejected files: messages from the catalogue `checks.toml`, which end with the id."""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neucrowd_tf.errors import DataError

# The packages of each of the project's extras.
EXTRAS = {
    "dask": "distributed pyarrow",
    "encoder": "onnxruntime tokenizers",
    "images": "pillow",
    "parquet": "pyarrow",
}


@dataclasses.dataclass(frozen=True)
class Check:
    """A reason for rejecting a file.

    Attributes:
        name: its id.
        title: what is wrong, for the documentation.
        problem, fix: the message; words in braces are filled in.
        cause: how files come to be like this.
        example: what the check rejects.
    """

    name: str
    title: str
    problem: str
    fix: str
    cause: str
    example: str


@functools.cache
def catalogue() -> dict[str, Check]:
    """Returns the checks by their ids."""
    entries = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {name: Check(name, **entry) for name, entry in entries.items()}


def amounts(counts: Mapping[str, int]) -> list[str]:
    """Returns counts with what they are of, in words: "1,200 without an item"."""
    return [f"{count:,} {words}" for words, count in counts.items()]


class Rejection(DataError):
    """A file that a check rejects.

    Attributes:
        check: the check's id.
    """

    def __init__(self, check: str, message: str) -> None:
        super().__init__(message)
        self.check = check


def error(name: str, path: str | Path, place: str = "", /, **words: Any) -> Rejection:
    """Returns the error of a check: `<file>: <place>: <problem> <fix> [<id>]`.

    Args:
        name: the check's id.
        path: the file.
        place: where in the file, if known.
        words: what fills the braces of the message; further lines follow the id.
    """
    check = catalogue()[name]
    first, *commands = f"{check.problem} {check.fix}".format_map(words).split("\n")
    line = ": ".join(filter(None, [str(path), place, f"{first.strip()} [{name}]"]))
    return Rejection(name, "\n".join([line, *commands]))


def broken(path: str | Path, problem: str, place: str = "") -> Rejection:
    """Returns the error of content that is not what the format needs."""
    return error("broken_file", path, place, problem=problem)


def unreadable(path: str | Path, problem: str, advice: str) -> Rejection:
    """Returns the error of a file that cannot be opened."""
    return error("unreadable", path, problem=problem, advice=advice)


def install(extra: str) -> str:
    """Returns how to install what one of the project's extras needs."""
    return f"Run pip install {EXTRAS[extra]} (in a clone: pip install '.[{extra}]')."
