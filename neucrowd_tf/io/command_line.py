"""What commands share: a parser whose errors say what was expected and received, how a command
ends, and where its output goes.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.io.files import write_text

PROBLEM = 2
STDOUT = Path("-")
KINDS = {"int": "a whole number", "float": "a number", "Path": "a path"}
# What argparse says, and what is said here of an option and what was given.
_SAID = (
    (r"argument ([^:]+): invalid (\w+) value: (.*)", "{0}: expected {kind}, received {2}"),
    (r"argument ([^:]+): invalid choice: (.*) \(choose from (.*)\)",
     "{0}: expected one of {2}, received {1}"),
    (r"argument ([^:]+): expected one argument", "{0}: expected a value, received none"),
    (r"argument ([^:]+): not allowed with argument (.*)",
     "{0}: expected in place of {1}, received both"),
    (r"the following arguments are required: (.*)", "expected {0}, received none"),
    (r"one of the arguments (.*) is required", "expected one of {0}, received none"),
    (r"unrecognized arguments: (.*)", "expected options of this command (--help lists them),"
     " received {0}"),
)  # fmt: skip


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises UsageError, in a line, rather than ending the process."""

    def error(self, message: str) -> NoReturn:
        text = " ".join(message.split())
        for pattern, said in _SAID:
            if found := re.fullmatch(pattern, text):
                parts = found.groups()
                kind = KINDS.get(parts[1], parts[1]) if len(parts) > 1 else ""
                raise UsageError(said.format(*parts, kind=kind))
        raise UsageError(message)


def check_outputs(
    arguments: argparse.Namespace,
    outputs: Sequence[str],
    inputs: Sequence[str] = (),
    *,
    folders: bool = False,
) -> None:
    """Raises UsageError for a file to write that is a folder (unless there may be `folders`), a
    file that is read, or one that is written too; options that are no paths, or `-`, are passed
    over.
    """
    taken: dict[str, str] = {}
    for name in (*inputs, *outputs):
        path = getattr(arguments, name)
        if not isinstance(path, Path) or path == STDOUT:
            continue
        try:
            real, is_folder = os.path.realpath(path), path.is_dir()
        except (OSError, ValueError) as error:  # a name that is too long, or holds a NUL
            reason = getattr(error, "strerror", None) or error
            raise UsageError(
                f"--{name}: expected a path that can be looked up, received {path} ({reason})"
            ) from None
        if name in outputs and is_folder and not folders:
            raise UsageError(f"--{name}: expected a file, received the folder {path}")
        other = taken.setdefault(real, name)
        if name in outputs and other != name:
            raise UsageError(f"--{name}: expected another file than --{other}'s, received {path}")


def run(command: Callable[[], Iterable[str]]) -> int:
    """Runs a command and tells the notes that it returns; returns the exit code: 2, after a line on
    stderr, for what the user can mend.
    """
    try:
        notes = command()
    except (UsageError, DataError, OSError) as error:
        sys.stderr.write(f"error: {one_line(error)}\n")
        return PROBLEM
    for note in notes:
        sys.stderr.write(f"{note}\n")
    return 0


def write_output(path: Path, text: str) -> None:
    """Writes a file, or to stdout where the path is `-`."""
    if path == STDOUT:
        sys.stdout.write(text)
    else:
        write_text(path, text)
