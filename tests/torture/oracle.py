"""A malformed input, and what is right for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Literal

# What may become of an input: refused in one line; accepted, with the result of the sound input it
# stands for; accepted, with a line that tells of it.
Right = Literal["refused", "same", "told"]
REFUSED, SAME, TOLD = (frozenset({name}) for name in ("refused", "same", "told"))
EITHER = frozenset({"refused", "told"})
ANY = frozenset({"refused", "told", "same", "anything"})


@dataclasses.dataclass
class Input:
    """A command on files, and the oracle's answer.

    Attributes:
        kind: the fault, for the tables.
        command: aggregate, run, convert, predict, relabel or report.
        flags: the command's, `{folder}` standing for where the files are.
        write: writes the files into a folder.
        right: what may become of it.
        words: what its one line must hold: the file's name first.
        sound: writes the sound files that give the same result, for "same" and "told".
    """

    kind: str
    command: str
    flags: tuple[str, ...]
    write: Callable[[Path], None]
    right: frozenset[str] = REFUSED
    words: tuple[str, ...] = ()
    sound: Callable[[Path], None] | None = None
    sound_flags: tuple[str, ...] | None = None
