"""A table of labels, as each layout's reader gives it.

What the columns mean is for :mod:`neucrowd_tf.annotations` to say: here, ids are only read.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.names.missing import is_marker

if TYPE_CHECKING:
    from numpy.typing import NDArray

MINUS_ONE = "-1"


@dataclasses.dataclass(frozen=True)
class LabelTable:
    """What a file or a frame says of who gave which label to what: triples of ids, counts of votes
    or a matrix of codes.

    Attributes:
        source: what to call it in errors.
        triples: tasks, workers and labels, `[A]` ids each, in the file's order; or None.
        counts: `[N, C]` votes; or None.
        matrix: `[N, R]` class codes, -1 for no label; or None.
        instance_names, annotator_names, class_names: the ids in their order, where the layout
            says them.
        by_task: whether row i of the file is task i, rather than annotation i.
        line: says where in the file row i is (annotation i, with triples); by default "row i".
    """

    source: str | Path
    triples: tuple[Any, Any, Any] | None = None
    counts: NDArray[Any] | None = None
    matrix: NDArray[Any] | None = None
    instance_names: Any = None
    annotator_names: Any = None
    class_names: Any = None
    by_task: bool = False
    line: Callable[[int], str] | None = None

    def place(self, row: int, column: str | None = None) -> str:
        """Returns how an error says where row i of the file is: the file, and what is known."""
        where = f"row {row}" if self.line is None else self.line(row)
        parts = [part for part in (where, column and f"column {column!r}") if part]
        return f"{self.source}: {', '.join(parts)}" if parts else str(self.source)

    def error(self, row: int, rest: str) -> DataError:
        """Returns an error about row i."""
        return DataError(f"{self.place(row)}, {rest}")


def is_task_marker(name: str) -> bool:
    """Whether --missing means tasks and annotators of this name too: not numbers and words, which
    are labels' alone, nor empty cells.
    """
    return name != "" and is_marker(name)


def tell_missing(path: str | Path, count: int, what: str, of: str = "a label") -> None:
    """Warns of what --missing leaves out."""
    warnings.warn(f"{path}: {count} {what} without {of} are left out (--missing)", stacklevel=4)
