"""What commands share: a parser whose errors say what was expected and received, how a command
ends, and where its output goes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.io.files.atomic import FREE_SOME, FULL, atomic_path
from neucrowd_tf.io.run_files import files_read, run_that_holds
from neucrowd_tf.stopping import end, stoppable

PROBLEM = 2
STDOUT = Path("-")
# Endings of files that are no plain text, which is what is written.
OTHER_KINDS = (
    *(".gz", ".bz2", ".xz", ".zst", ".zip", ".parquet", ".pq", ".npy", ".npz"),
    *(".xlsx", ".xls", ".feather", ".arrow"),
)
_LONGEST = 300  # of what an error says was received
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

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        # Before Python 3.13 argparse drops a value of two dashes; in quotes a list holds it.
        given = sys.argv[1:] if args is None else args
        return super().parse_known_args(
            ['--missing="--"' if each == "--missing=--" else each for each in given], namespace
        )

    def print_help(self, file: Any = None) -> None:
        with standard_output() as stream:  # argparse passes over what cannot be written
            (file or stream).write(self.format_help())

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
    kinds: Collection[str] | None = None,
) -> None:
    """Raises UsageError for a file to write that is a folder or named as one of another kind than
    text (unless there may be `folders`), is read or written too, or is a run's: what the run of
    `--run` was made from counts as read.
    Options that are no paths are passed over.

    Args:
        arguments: what was given.
        outputs, inputs: the names of the options.
        folders: whether a folder may be written.
        kinds: endings of the files that are read of a folder; None for all files.
    """
    read = {f"--{name}'s": _path(arguments, name) for name in inputs}
    run = _path(arguments, "run")
    if run is not None:
        read |= {f"the run's --{name}": path for name, path in files_read(run).items()}
    written: dict[str, Path] = {}
    for name in outputs:
        path = _path(arguments, name)
        if path is None:
            continue
        if path != STDOUT:
            real = _real(f"--{name}", path)
            if path.is_dir() and not folders:
                raise UsageError(f"--{name}: expected a file, received the folder {path}")
            if (owner := run_that_holds(real)) is not None:
                raise UsageError(
                    f"--{name}: expected another file than those of the run in {owner}, received"
                    f" {path}"
                )
            if path.suffix.lower() in OTHER_KINDS and not folders:
                raise UsageError(
                    f"--{name}: expected a name as {path.stem.partition('.')[0]}.csv, as plain text"
                    f" is written, received {path}"
                )
        for other, taken in written.items():
            if os.path.realpath(taken) == os.path.realpath(path):
                raise UsageError(
                    f"--{name}: expected another file than --{other}'s, received {path}"
                )
        written[name] = path
    check_apart({f"--{name}": path for name, path in written.items()}, read, kinds)


def _path(arguments: argparse.Namespace, name: str) -> Path | None:
    path = getattr(arguments, name, None)
    return path if isinstance(path, Path) else None


def _real(name: str, path: Path) -> Path:
    try:
        path.is_dir()
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:  # a name that is too long, or holds a NUL
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{name}: expected a path that can be looked up, received {path} ({reason})"
        ) from None


def check_apart(
    outputs: Mapping[str, Path],
    inputs: Mapping[str, Path | None],
    kinds: Collection[str] | None = None,
) -> None:
    """Raises UsageError for a place to write to that is, lies in, or holds what is read.

    Args:
        outputs: places to write to by what to call them; `-` is none.
        inputs: what is read by whose it is; None and `-` are passed over.
        kinds: endings of the files that are read of a folder; None for all files.
    """
    read = {
        name: (path, _real(name.removesuffix("'s"), path))
        for name, path in inputs.items()
        if path is not None and path != STDOUT
    }
    for name, path in outputs.items():
        real = _real(name, path)
        for other, (given, held) in read.items() if path != STDOUT else ():
            if real == held:
                said = f"another file than {other}"
            elif held in real.parents and (kinds is None or real.suffix.lower() in kinds):
                said = f"a place outside of {other} folder {given}"
            elif real in held.parents:
                said = f"a folder without {other} file {given}"
            elif real.is_file() and any(
                link.is_symlink() and Path(os.path.realpath(link)) == real
                for link in held.rglob("*")
            ):
                said = f"another file than those that {other} folder {given} links to"
            else:
                continue
            raise UsageError(f"{name}: expected {said}, received {path}")


def show_warning(message: Warning | str, *_: object) -> None:
    """Shows a warning on one line, without the place in the code, as `warnings.showwarning`."""
    warning = message if isinstance(message, Warning) else UserWarning(message)
    sys.stderr.write(f"warning: {one_line(warning)}\n")


def run(command: Callable[[], Iterable[str]]) -> int:
    """Runs a command and tells its warnings and the notes that it returns; returns the exit code:
    2, after a line on stderr, for what the user can mend, 130 where SIGINT stops it, 143 where
    SIGTERM does.
    """
    try:
        with stoppable(), warnings.catch_warnings():
            warnings.showwarning = show_warning  # type: ignore[assignment]  # called by position
            notes = command()
            if sys.stdout is not None:
                with standard_output():
                    pass  # what was said so far gets there, or an error says so
    except KeyboardInterrupt as stop:
        return end(stop)
    except (UsageError, DataError, OSError) as error:
        sys.stderr.write(f"error: {one_line(error)}\n")
        return PROBLEM
    except MemoryError as error:
        sys.stderr.write(f"error: expected enough memory, received less ({one_line(error)})\n")
        return PROBLEM
    except UnicodeEncodeError as error:  # of a library that takes no other paths
        received = f"{error.object[:_LONGEST]!a}"
        sys.stderr.write(f"error: expected text and paths in UTF-8, received {received}\n")
        return PROBLEM
    for note in notes:
        sys.stderr.write(f"{note}\n")
    return 0


@contextlib.contextmanager
def standard_output() -> Iterator[TextIO]:
    """Yields stdout and flushes it; an OSError (a full disk, a closed pipe) says that it was there,
    and what could not be written is dropped, as Python would try once more in the end. So does a
    UsageError for what its encoding does not have.
    """
    try:
        yield sys.stdout
        sys.stdout.flush()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"standard output: expected an encoding that has {error.object[error.start]!a},"
            f" received {error.encoding}; PYTHONIOENCODING=utf-8 sets another"
        ) from None
    except OSError as error:
        if error.filename is not None:
            raise
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        said = f"{error.strerror}{FREE_SOME if error.errno in FULL else ''}"
        raise OSError(error.errno, said, "standard output") from None


def say(text: str) -> None:
    """Writes a line for the user to stdout; what its encoding does not have, as of a path that is
    not UTF-8, is replaced.
    """
    with standard_output() as stream:
        encoding = stream.encoding or "utf-8"
        stream.write(f"{text}\n".encode(encoding, "replace").decode(encoding))


def write_outputs(texts: Mapping[Path, str]) -> None:
    """Writes files, all or none of them where one cannot be written; to stdout where a path is
    `-`.
    """
    with contextlib.ExitStack() as files:
        for path, text in texts.items():
            if path != STDOUT:
                files.enter_context(atomic_path(path)).write_text(text, encoding="utf-8")
    if STDOUT in texts:
        with standard_output() as stream:
            stream.write(texts[STDOUT])


def write_output(path: Path, text: str) -> None:
    """Writes a file, or to stdout where the path is `-`."""
    write_outputs({path: text})
