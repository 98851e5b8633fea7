"""Columns of features whose numbers are ids: they number the rows, or never repeat."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.features.numbers import MANY_ROWS
from neucrowd_tf.io.names.shell import ignore
from neucrowd_tf.io.tables.column_names import bare

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENOUGH_ROWS = 20  # that all differ, before this says anything
SAMPLE_ROWS = 2000  # that most columns show in that they repeat
EXPECTED = 5.0  # pairs that numbers drawn from a span would have the same
WIDE = 1000  # numbers that a span has at least where nothing repeats in it for its size alone
NO_MORE = 1.36  # of Kolmogorov's statistic: drawn evenly from their span
# What is counted or measured finely enough to never repeat.
_QUANTITY = re.compile(
    r"time(stamp)?|date|datetime|year|epoch|seconds?|ms|duration|age|area|size|length|width|height"
    r"|depth|bytes?|pixels?|price|cost|amount|income|salary|wage|revenue|sales|profit|value|budget"
    r"|population|distance|weight|volume|mass|speed|energy|power|pressure|intensity|views|count"
    r"|total|sum|votes|followers|words|characters|chars|steps|calories"
)
_OF = (
    "item|row|record|case|sample|subject|participant|patient|person|user|customer|client|file"
    "|image|img|picture|doc|document|task|instance|example|object|entry|question|hit|job|order"
    "|product|article|serial|primary|foreign|unique"
)
# Where its numbers never repeat, a column of such a name is an id (`no`, `id` and the like always
# are, see `columns`).
_ID = re.compile(
    rf"({_OF})|(({_OF})_?)?(key|pk|fk|serial|numbers?|num|nummer|numero|code|ref|reference"
    r"|identifier|ident|hash|sku|barcode|isbn|accession|kennung)"
)


def tell_row_numbers(
    rows: NDArray[np.float32], names: Sequence[str], path: Path, *, named: bool = True
) -> list[str]:
    """Warns of columns that count the rows, as ids do, in steps of one or of another number, and
    returns them.

    Args:
        named: whether a column has a name, by which a flag leaves it out.
    """
    if len(rows) < MANY_ROWS:
        return []
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the largest
        spans = np.ptp(rows, axis=0)
        whole = np.flatnonzero((spans > 0) & (spans % (len(rows) - 1) == 0))
    steps = np.diff(np.sort(rows[:, whole], axis=0), axis=0)
    counting = [names[place] for place in whole[(steps == steps[:1]).all(axis=0)]]
    for name in counting:
        way_out = f"; {ignore(name)} leaves it out" if named else ""
        warnings.warn(
            f"{path}: column {name!r} numbers the rows, as an id does, and is taken for"
            f" a feature{way_out}",
            stacklevel=4,
        )
    return counting


def never_repeats(values: NDArray[Any]) -> bool:
    """Whether a column is of whole numbers that all differ, in rows enough to say so."""
    if len(values) < ENOUGH_ROWS:
        return False
    for part in (values[:SAMPLE_ROWS], values):
        with np.errstate(invalid="ignore"):  # what is not finite is refused elsewhere
            if part.dtype.kind == "f" and not (part % 1 == 0).all():
                return False
        if len(np.unique(part)) < len(part):
            return False
    return True


def like_ids(values: NDArray[Any]) -> bool:
    """Whether numbers that never repeat (`never_repeats`) do so as ids, and few measurements: in
    the order of the rows, in a span in which others would repeat, or drawn evenly or with equally
    many digits from a wide one.
    """
    size = len(values)
    rising = values[1:] > values[:-1]  # differences of unsigned numbers would be positive
    if rising.all() or not rising.any():
        return True
    ordered = np.sort(values.astype(np.float64))
    span = float(ordered[-1] - ordered[0]) + 1.0
    if size * (size - 1) / 2 >= EXPECTED * span:
        return True
    if span < WIDE:
        return False
    digits = len({len(str(int(abs(end)))) for end in (ordered[0], ordered[-1])}) == 1
    even = (ordered - ordered[0]) / span
    far = np.abs(even - np.arange(size) / size).max()
    return bool(ordered[0] >= 0 and (digits or far * np.sqrt(size) < NO_MORE))


def check_ids(unlike: Mapping[str, bool], columns: int, path: Path, *, named: bool = True) -> None:
    """Raises DataError for a column that is named as an id and never repeats, and warns of others
    that behave as one, unless most columns never repeat, as those of fine measurements.

    Args:
        unlike: by the name of each column that never repeats, whether it does so `like_ids`.
        columns: how many there are in all.
        path: the file.
        named: whether a column has a name, by which a flag leaves it out.
    """
    if len(unlike) > 2 and 2 * len(unlike) > columns:
        return
    for name in unlike if named else ():
        if _ID.fullmatch(re.sub(r"_?\d+$", "", bare(name))) or name.strip() in ("#", "№", "n°"):
            raise DataError(
                f"{path}: column {name!r}: expected a feature, received whole numbers that all"
                f" differ under the name of an id; {ignore(name)} leaves it out, another name"
                " takes it for a feature"
            )
    odd = [name for name, like in unlike.items() if like and not _is_quantity(name)]
    if odd:
        way_out = f"; {ignore(odd[0])} leaves it out" if named else "; take them out if they are"
        warnings.warn(
            f"{path}: {len(odd)} columns are of whole numbers that all differ, as ids are (the"
            f" first: {odd[0]!r}), and are taken for features{way_out}",
            stacklevel=4,
        )


def _is_quantity(name: str) -> bool:
    return any(_QUANTITY.fullmatch(word) for word in bare(name).split("_"))
