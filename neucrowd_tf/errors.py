"""The errors a user can mend: each message is one line that says where, what was expected and what
was received.
"""

from __future__ import annotations

import errno
import unicodedata

DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


class DataError(ValueError):
    """Input data that cannot be used as it is; the message names the file, row and column where
    known.
    """


class RowError(DataError):
    """What is wrong in one row of what was given, rows being counted from 0; who knows the file
    says the line.
    """

    def __init__(self, row: int, rest: str) -> None:
        super().__init__(f"row {row}, {rest}")
        self.row, self.rest = int(row), rest


class IdentitiesError(DataError):
    """A method needs to know who gave which label, but the data holds vote counts only."""


class UnsupportedDataError(DataError):
    """The data is valid, but this method does not handle its kind (the number of classes, say)."""


class UsageError(ValueError):
    """A flag or an argument whose value cannot be used."""


def printable(text: str, keep: str = "") -> str:
    """Returns a text in which U+FFFD stands for control characters, marks that turn the direction
    of writing, and halves of surrogate pairs: they could hide or rearrange what stands beside them.

    Args:
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
    """Returns an error as one line that a terminal can show: printable, and cut in the middle where
    an id in it is very long.
    """
    text = str(error)
    if isinstance(error, OSError) and error.filename:
        said, path = error.strerror or text, error.filename
        text = f"{said}: {path}"
        if error.errno in DENIED:
            text = f"{path}: expected permission to read or write it, received none ({said})"
    text = printable(" ".join(text.split()))
    return text if len(text) <= longest else f"{text[: longest // 2]} … {text[-longest // 3 :]}"
