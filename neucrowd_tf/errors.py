"""The errors and warnings that a user can act on: one line with the place and what to do."""

from __future__ import annotations

import contextlib
import contextvars
import errno
import threading
import unicodedata
import warnings
from collections.abc import Iterator

DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


class DataError(ValueError):
    """Input data that cannot be used; the message names the file, row and column if it can."""


class RowError(DataError):
    """An error in one row of the input, counted from 0; the reader of a file adds the line."""

    def __init__(self, row: int, rest: str) -> None:
        super().__init__(f"row {row}, {rest}")
        self.row = int(row)
        self.rest = rest


class IdentitiesError(DataError):
    """A method needs to know who gave which label, but the data holds vote counts only."""


class UnsupportedDataError(DataError):
    """The data is valid, but this method does not handle its kind (the number of classes, say)."""


class UsageError(ValueError):
    """A flag or an argument whose value cannot be used."""


# What networks need beside the packages of requirements-labels.lock.
FOR_NETWORKS = ("h5py", "keras", "tensorboard", "tensorflow", "tensorflow_probability", "tf_keras")


class MissingPackageError(ImportError, UsageError):
    """A package that networks need is not installed."""

    def __init__(self, what: str, missing: str) -> None:
        super().__init__(
            f"{what} needs {missing}, which is not installed: what is here is enough for labels"
            " alone. In the clone, `pip install .` installs the rest."
        )


_quiet = contextvars.ContextVar("quiet", default=False)


def warn(message: str, category: type[Warning] = UserWarning, stacklevel: int = 1) -> None:
    """Warns as `warnings.warn` does, but not within `quietly`."""
    if not _quiet.get():
        warnings.warn(message, category, stacklevel=stacklevel + 1)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Within, this thread's fits warn of nothing, as their choice is not the user's.

    `warnings.catch_warnings` would change the filters of all threads, and leave them so.
    """
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


# Re-entrant: one of our functions within it may call another one.
_CHECKS = threading.RLock()


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Within, or in a function that it decorates, no other thread of ours calls scikit-learn.

    scikit-learn checks its input within `warnings.catch_warnings`, which gives the whole process'
    filters back as they were. Of two threads at once, one would give back the other's.
    """
    with _CHECKS:
        yield


def printable(text: str, keep: str = "") -> str:
    """Returns a text with U+FFFD for characters that could hide or rearrange others.

    These are control characters, marks that turn the direction of writing, and halves of surrogate
    pairs.

    Args:
        text: any text.
        keep: such characters that stay.
    """
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter in keep or letter.isprintable() or unicodedata.category(letter) == "Zs"
        else "\ufffd"
        for letter in text
    )


def one_line(error: BaseException, longest: int = 1000) -> str:
    """Returns an error as one printable line, cut in the middle if it is very long."""
    text = str(error)
    if isinstance(error, OSError) and error.filename:
        reason = error.strerror or text
        path = error.filename
        text = f"{reason}: {path}"
        if error.errno in DENIED:
            text = f"{path}: no permission to read or write it ({reason}). Change its permissions."
    text = printable(" ".join(text.split()))
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]} … {text[-longest // 3 :]}"
