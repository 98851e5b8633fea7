"""What a plan of labelling is made from besides labels: probabilities, annotators and costs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.checks import broken, error
from neucrowd_tf.io.column_names import named_columns
from neucrowd_tf.io.files.reading import read_text
from neucrowd_tf.io.gold import read_beside
from neucrowd_tf.io.items import item_ids, only_column
from neucrowd_tf.io.labels import match_items, report_on_stderr
from neucrowd_tf.io.schema import TableOptions, split_list
from neucrowd_tf.io.tables.writing import name_of
from neucrowd_tf.names import roles_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations

ROUNDED = 0.006  # of a probability with two digits


def read_probabilities(
    path: Path,
    annotations: Annotations,
    options: TableOptions | None = None,
    *,
    report: Callable[[str], None] = report_on_stderr,
) -> NDArray[np.float64]:
    """Reads a model's probabilities: an item and `p_<class>` for each class, as predictions.csv.

    Returns:
        `[N, C]` in the annotations' order, rows summing to one; an item that the file does not
        have gets the mean.

    Raises:
        DataError: a missing column, numbers that are not probabilities, an item twice, or none of
            the annotations' items.
    """
    table, options = read_beside(path, options or TableOptions())
    names = [f"p_{name}" for name in annotations.class_names.tolist()]
    columns = named_columns(path, table.columns, names, "classes")
    extra = [name for name in table.columns if name.startswith("p_") and name not in columns]
    if extra:
        shown = ", ".join(names)
        raise error("unknown_class", path, label=extra[0].removeprefix("p_"), classes=shown)
    ids = [str(name) for name in annotations.instance_names.tolist()]
    exact = set(ids)
    rows = [name_of(item, exact) for item in item_ids(table, options)]
    places = match_items(rows, ids)
    values = np.full((len(ids), len(columns)), np.nan)
    for row, cells in enumerate(zip(*(table[column] for column in columns), strict=True)):
        if places[row] >= 0:
            values[places[row]] = _probabilities(path, table.place(row), columns, cells)
    bare = int(np.isnan(values[:, 0]).sum())
    if bare == len(ids):
        words = {"item": rows[0] if rows else "", "count": len(ids), "other": "the labels"}
        raise error("unmatched_item", path, advice="Check the ids", **words)
    if bare:
        report(f"{path.name}: {bare:,} items are missing. They get the mean probabilities.")
    return np.where(np.isnan(values), np.nanmean(values, axis=0), values)


def _probabilities(
    path: Path, place: str, columns: Sequence[str], cells: Sequence[str]
) -> NDArray[np.float64]:
    """Returns a row of probabilities, which sum to one except for rounding."""
    try:
        numbers = np.array([float(cell) for cell in cells])
    except ValueError:
        numbers = np.array([-1.0])
    if not (numbers >= 0).all() or not abs(numbers.sum() - 1) <= ROUNDED * len(cells):
        advice = "Write probabilities from 0 that sum to 1"
        words = {"column": ", ".join(columns), "value": ", ".join(cells)}
        raise error("bad_feature", path, place, advice=advice, **words)
    return np.asarray(numbers / numbers.sum())


def read_names(source: str | Path, exact: Collection[str] = ()) -> list[str]:
    """Returns annotators' names, of a text that separates them by commas or of a file.

    Args:
        source: the text, or a file: one name per line, or a CSV whose first column has them.
        exact: the annotators of the labels; a line that is one of them is not split.

    Raises:
        DataError: a file that is not a table.
        UsageError: no name, or one twice.
    """
    if isinstance(source, Path):
        names = [name for name in _first_cells(source, exact) if name]
        names = names[bool(names) and bool(roles_of(names[:1])["worker"]) :]
    else:
        names = [name for name in split_list(source) if name]
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if not names or twice:
        problem = f"{twice[0]!r} is listed twice" if twice else "there are no names"
        raise UsageError(f"--ask: {problem}. List annotators' names, each once.")
    return names


def _first_cells(path: Path, exact: Collection[str]) -> list[str]:
    """Returns the first cell of each line, or the line if that is a name."""
    first = []
    for whole in map(str.strip, read_text(path).splitlines()):
        sign = "\t" if "\t" in whole else ";" if ";" in whole and "," not in whole else ","
        cells = whole.split(sign) if '"' not in whole else list(split_list(whole))
        first.append(name_of(whole if whole in exact else cells[0].strip(), exact))
    return first


def read_costs(
    path: Path, annotators: Sequence[str], options: TableOptions | None = None
) -> NDArray[np.float64]:
    """Reads what a label of each annotator costs: a column of annotators, and `cost`.

    Returns:
        `[R]` in the order of `annotators`; NaN for those that the file does not have.

    Raises:
        DataError: a missing column, an annotator twice, or a cost that is not a positive number.
    """
    table, _ = read_beside(path, options or TableOptions())
    named = roles_of(table.columns)["worker"]
    column = only_column(table, named, "worker", "annotator")
    price = named_columns(path, table.columns, ["cost"], "cost")[0]
    places = {name: code for code, name in enumerate(annotators)}
    costs = np.full(len(places), np.nan)
    for row, (cell, text) in enumerate(zip(table[column], table[price], strict=True)):
        place = places.get(name_of(cell, places))
        try:
            cost = float(text)
        except ValueError:
            cost = 0.0
        if not 0 < cost < np.inf:
            words = {"column": price, "value": text, "advice": "Write a number above 0"}
            raise error("bad_feature", path, table.place(row), **words)
        if place is not None and not np.isnan(costs[place]):
            raise broken(path, f"annotator {cell!r} occurs twice", table.place(row))
        if place is not None:
            costs[place] = cost
    return costs
