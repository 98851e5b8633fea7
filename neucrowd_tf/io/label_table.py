"""A table of labels, and what in it is no name of a task or an annotator and no class.

What the columns mean is for :mod:`neucrowd_tf.annotations` to say: here, ids are only read.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.ids import plain_integers, spelt
from neucrowd_tf.io.names import MINUS_ONE, check_names, coded, is_marker, occurrences, plain, times
from neucrowd_tf.io.roles import check_roles
from neucrowd_tf.io.slips import check_slips
from neucrowd_tf.io.tables import ALIASES, PLAIN, TableFormat

if TYPE_CHECKING:
    from numpy.typing import NDArray

# With a digit other than 0 after the point, or an exponent below 0.
_FRACTION = re.compile(r"[-+]?\d*[.,]\d*[1-9]\d*([eE][-+]?\d+)?|[-+]?\d+(\.\d*)?[eE]-\d+")
_SHARE = re.compile(r"[-+]?\d+([.,]\d+)?\s*%")
_NEGATIVE = re.compile(r"-\d+(\.0*)?(e\+?0+)?")
_NO_NUMBER = re.compile(r"[-+]?(inf|infinity|\d+(\.\d*)?e\+?\d{3,})")
_SEVERAL = re.compile(r"""\[\s*(['"].*)?\]|\{.*:.*\}""", re.DOTALL)
FEW_ROWS = 10

_NO_ANSWER = re.compile(r"77+|88+|99+|9+[78]")


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
    """Whether --missing means tasks of this name too: not numbers, which are labels' alone, nor
    empty cells.
    """
    return name != "" and is_marker(name)


def tell_missing(path: str | Path, count: int, what: str, of: str = "a label") -> None:
    """Warns of what --missing leaves out."""
    warnings.warn(f"{path}: {count} {what} without {of} are left out (--missing)", stacklevel=4)


def check_table(table: LabelTable, layout: TableFormat, *, wide: bool = False) -> None:
    """Checks the names of triples as `check_names` does, and labels that are numbers as those of no
    class are: -1 and fractions.

    Args:
        wide: whether the triples come from cells, each of whose places says its column.
    """
    if table.triples is None:
        return
    column, alone, single, found = table.triples[0], [], [], []
    for role, column in zip(ALIASES, table.triples, strict=True):
        names, codes = coded(column)
        found.append((names, codes))
        if wide and role != "label":  # the header and the column of tasks have each once
            continue
        counts, first = occurrences(codes, len(names))
        known = layout.classes if role == "label" else ()
        check_names(
            names,
            counts,
            first,
            role,
            functools.partial(table.place, column=None if wide else role),
            known=known,
            exact=layout.exact_names,
            markers=layout.missing is None,
        )
        if role == "label" and not known and not layout.exact_names:
            check_classes(names, counts, first, table, layout, None if wide else role)
        alone.append(set(first[counts == 1].tolist()))
        if role != "label" and len(names) == len(column) >= FEW_ROWS:
            single.append(role)
        alone_there = role == "worker" and len(names) == 1  # who labels each task once
        single = [] if alone_there else single
    if len(column) and not layout.classes and not layout.exact_names:
        check_roles(
            found[0],
            found[1],
            found[2],
            table.source,
            lambda row: table.place(row, None if wide else "label"),
        )
    if single and not wide and not layout.exact_names:
        of = {"task": "task has one label alone", "worker": "annotator gave one label alone"}
        warnings.warn(
            f"{table.source}: every {of[single[0]]}, as where the column numbers the rows"
            f" (--{single[0]}_column names another)",
            stacklevel=4,
        )
    rows = set() if wide else alone[1] & alone[2]
    if rows and len(rows) * FEW_ROWS <= len(column):
        row = min(rows)
        warnings.warn(
            f"{table.place(row)}: the annotator {spelt(_at(table.triples[1], row))} and the label"
            f" {spelt(_at(table.triples[2], row))} occur in this place alone, and are taken as they"
            " are (a footer, or a note?)",
            stacklevel=4,
        )


def _at(column: Any, row: int) -> Any:
    return column.iloc[row] if isinstance(column, pd.Series) else column[row]


def check_vocabulary(
    source: str | Path, workers: Iterable[Any], labels: Iterable[Any], layout: TableFormat = PLAIN
) -> None:
    """Checks the distinct annotators and classes of a source that is read by parts, as
    `check_table` does.
    """
    table = LabelTable(source, line=lambda _: "")
    for role, column in (("worker", list(workers)), ("label", list(labels))):
        nowhere = np.zeros(len(column), dtype=np.int64)
        known = layout.classes if role == "label" else ()
        check_names(
            column,
            nowhere,
            nowhere,
            role,
            functools.partial(table.place, column=role),
            known=known,
            exact=layout.exact_names,
            markers=not layout.exact_names,
        )
        if role == "label" and not known and not layout.exact_names:
            check_classes(column, nowhere, nowhere, table, layout, role)


def is_fraction(name: str) -> bool:
    """Whether a label is a number that is not whole, or a share in percent, as probabilities and
    scores are.
    """
    return bool(_FRACTION.fullmatch(name.strip()) or _SHARE.fullmatch(name.strip()))


def check_classes(
    names: list[Any],
    counts: NDArray[np.int64],
    first: NDArray[np.int64],
    table: LabelTable,
    layout: TableFormat,
    column: str | None,
) -> None:
    """Raises DataError for labels that are no classes: negative numbers, fractions, no finite
    numbers, lists. Numbers that often stand for none are told of.
    """
    texts = [str(name) for name in names]
    numbers = plain_integers(texts)
    bare = [plain(text) for text in texts]
    negative = [at for at, text in enumerate(bare) if _NEGATIVE.fullmatch(text)]
    negative.sort(key=lambda at: bare[at] != MINUS_ONE)
    code = next((at for at, text in enumerate(texts) if numbers and _is_code(text, texts)), None)
    if negative and layout.missing is None:
        at = negative[0]
        received = texts[at]
        way_out = f"--missing={received} leaves them out, --missing= takes {received} for a class"
        if {bare[at].removeprefix("-")} != set(bare) - {bare[at]}:
            raise DataError(
                f"{table.place(int(first[at]), column)}: expected a label, received {received}"
                f"{times(counts[at])}, which often stands for none; {way_out}"
            )
        warnings.warn(
            f"{table.source}: labels are {received}{times(counts[at])}, taken for a class beside"
            f" {received.removeprefix('-')}; {way_out}",
            stacklevel=5,
        )
    elif code is not None and layout.missing is None:
        warnings.warn(
            f"{table.source}: {counts[code]} labels are {texts[code]}, which often stands for none,"
            f" taken for a class; --missing={texts[code]} leaves them out",
            stacklevel=5,
        )
    for place, text in enumerate(bare):
        what = ""
        if _NO_NUMBER.fullmatch(text) or text == "nan":
            what = ", which is no finite number"
        elif _SEVERAL.fullmatch(text):
            what = ", a list or an object"
        if what:
            raise DataError(
                f"{table.place(int(first[place]), column)}: expected a class, received"
                f" {texts[place]!r}{what}; --exact_names takes it for a class"
            )
    check_slips(texts, counts, first, lambda row: table.place(row, column), tell=True)
    fractions = [place for place, name in enumerate(texts) if is_fraction(name)]
    if fractions:
        raise DataError(
            f"{table.place(int(first[fractions[0]]), column)}: expected a class, received"
            f" {names[fractions[0]]!r}, a fraction as probabilities and scores are; if these are"
            f" classes, --classes=... names all of them"
        )


def _is_code(text: str, texts: list[str]) -> bool:
    """Whether a number is one that questionnaires use for no answer (99, 888 ...), far above the
    others.
    """
    others = [int(other) for other in texts if other != text]
    return bool(_NO_ANSWER.fullmatch(text)) and len(others) > 1 and 3 * max(others) < int(text)
