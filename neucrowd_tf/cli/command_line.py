"""What commands share: how they run and end, the flags of labels, and where their output goes."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, TextIO, TypeVar

from neucrowd_tf.declare.flag_parsing import HelpRequest
from neucrowd_tf.declare.types import Entries
from neucrowd_tf.errors import DataError, UsageError, one_line, printable
from neucrowd_tf.io.files.atomic import FREE_SOME, FULL, atomic_path
from neucrowd_tf.io.schema import ANNOTATIONS, FAMILY, MODEL_ANNOTATOR, TableOptions

Flags = TypeVar("Flags")
PROBLEM = 2
STDOUT = Path("-")


SCALE = "`ordinal`: classes are ordered, and labels near the truth count as nearly right."


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelFlags(TableOptions):
    """Labels that a command reads.

    The flags of `TableOptions`, the files, and which annotators are models.
    """

    annotations: Annotated[Path | None, ANNOTATIONS] = None
    gold: Annotated[
        Path | None,
        "CSV task,label: true labels of some items. They are kept, and calibrate the"
        " probabilities; --method=auto also chooses by them.",
    ] = None
    model_annotator: Annotated[Entries, MODEL_ANNOTATOR] = ()
    family: Annotated[Entries, FAMILY] = ()


def run(command: Callable[[], Iterable[str] | int | None]) -> int:
    """Runs a command, prints its warnings and notes to standard error, and returns the exit code.

    The exit code is the number that the command returns or, if it returns notes or nothing, 0. It
    is 2, after an error on standard error, for errors that the user can fix.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # output is UTF-8, as files are
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning  # type: ignore[assignment]  # called by position
            notes = command()
            with standard_output() if sys.stdout else contextlib.nullcontext():
                pass  # an error in writing what was printed so far belongs to this command
    except HelpRequest as shown:
        text = str(shown)
        return run(lambda: say(text))
    except DataError as error:
        first, *commands = str(error).split("\n")  # further lines are commands to paste
        return _fail("\n".join([one_line(DataError(first)), *map(printable, commands)]))
    except (UsageError, OSError) as error:
        return _fail(one_line(error))
    except MemoryError as error:
        return _fail(f"out of memory. {one_line(error)}".rstrip(". "))
    except UnicodeEncodeError as error:  # of a library that accepts only UTF-8
        return _fail(f"{error.object[:300]!a}: not UTF-8. Rename the file.")
    if isinstance(notes, int):
        return notes
    for note in notes or ():
        sys.stderr.write(f"{printable(note)}\n")
    return 0


def _fail(line: str) -> int:
    sys.stderr.write(f"error: {line}\n")
    return PROBLEM


def show_warning(message: Warning | str, *_: object) -> None:
    """Prints a warning on one line, without the place in the code, as `warnings.showwarning`."""
    warning = message if isinstance(message, Warning) else UserWarning(message)
    sys.stderr.write(f"warning: {one_line(warning)}\n")


def check_outputs(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Checks that a command's output files are not its input files.

    Args:
        outputs: places to write to by the names of their flags; None is ignored, and `-` is only
            compared with other outputs.
        inputs: places to read from, by the names of their flags; None is ignored.

    Raises:
        UsageError: an output that is an input, lies in one or contains one, or is another output.
    """
    written: dict[Path, str] = {}
    for name, path in outputs.items():
        if path is None:
            continue
        real = Path(os.path.realpath(path))
        if written.setdefault(real, name) != name:
            raise UsageError(f"{name}={path}: {written[real]} writes to the same place.")
        for flag, source in inputs.items():
            if source is None or path == STDOUT:
                continue
            read = Path(os.path.realpath(source))
            if real == read or read in real.parents or real in read.parents:
                raise UsageError(
                    f"{name}={path}: would overwrite {flag}={source}. Choose another place."
                )


@contextlib.contextmanager
def standard_output() -> Iterator[TextIO]:
    """Yields stdout and flushes it.

    Raises:
        OSError: a full disk or a closed pipe or stream; it names standard output.
    """
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except OSError as error:
        # The rest is dropped; otherwise Python would try to write it when the process ends.
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        reason = f"{error.strerror}{FREE_SOME * (error.errno in FULL)}"
        raise OSError(error.errno, reason, "standard output") from None


def say(text: str) -> None:
    """Prints a line."""
    with standard_output() as stream:
        stream.write(f"{text}\n")


def write_outputs(texts: Mapping[Path, str]) -> None:
    """Writes files, and to stdout if a path is `-`.

    If one of the files cannot be written, none is.
    """
    with contextlib.ExitStack() as files:
        for path, text in texts.items():
            if path != STDOUT:
                files.enter_context(atomic_path(path)).write_text(text, encoding="utf-8")
    if STDOUT in texts:
        with standard_output() as stream:
            text = texts[STDOUT]
            stream.write(printable(text, "\n\t") if stream.isatty() else text)
