"""What a plan of labelling is made from besides labels: probabilities, annotators and costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Floats
from neucrowd_tf.io.checks import broken, error
from neucrowd_tf.io.column_names import flagged_columns, named_columns
from neucrowd_tf.io.items import item_ids, matched, only_column, read_beside
from neucrowd_tf.io.labels import report_on_stderr
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.tables.writing import name_of
from neucrowd_tf.names import positions, roles_of, without

ROUNDED = 0.006  # of a probability with two digits


def read_probabilities(
    path: Path,
    annotations: Annotations,
    options: TableOptions | None = None,
    *,
    report: Callable[[str], None] = report_on_stderr,
) -> Floats:
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
    columns = named_columns(path, table.columns, names, "probabilities")
    if len(columns) < len(names):  # two classes differ in case alone
        (first, *_) = without(names, columns)
        shown = ", ".join(columns)
        raise error("no_column", path, column=first, flag="probabilities", columns=shown)
    ids = list(map(str, annotations.instance_names.tolist()))
    exact = set(ids)
    rows = [name_of(item, exact) for item in item_ids(table, options)]
    indices = matched(path, rows, ids, table.place, drop=True, other="the labels")
    cells = np.array([table[column] for column in columns], dtype=object).T
    numbers = np.vectorize(_number, otypes=[float])(cells)
    total = numbers.sum(axis=1)
    is_sound = (numbers >= 0).all(axis=1) & (abs(total - 1) <= ROUNDED * len(columns))
    if not is_sound.all():
        row = int(np.argmin(is_sound))
        place = table.place(row)
        titles = ", ".join(columns)
        values = ", ".join(cells[row].tolist())
        if np.isfinite(numbers[row]).all():
            problem = f"{titles} are {values}, not probabilities that sum to 1"
            raise broken(path, problem, place)
        advice = "Write probabilities from 0 that sum to 1"
        raise error("bad_feature", path, place, column=titles, value=values, advice=advice)
    probas = np.full((len(ids), len(columns)), np.nan)
    probas[indices[indices >= 0]] = (numbers / total[:, None])[indices >= 0]
    is_missing = np.isnan(probas[:, 0])
    if is_missing.any():
        report(
            f"{path.name}: {is_missing.sum():,} items are missing. They get the mean probabilities."
        )
    return np.where(is_missing[:, None], np.nanmean(probas, axis=0), probas)


def _number(cell: str) -> float:
    """Returns a cell as a number, NaN for any other text."""
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def read_costs(
    path: Path, annotators: Sequence[str], options: TableOptions | None = None
) -> Floats:
    """Reads what a label of each annotator costs: a column of annotators, and `cost`.

    Returns:
        `[R]` in the order of `annotators`; NaN for those that the file does not have.

    Raises:
        DataError: a missing column, an annotator twice, or a cost that is not a positive number.
    """
    table, options = read_beside(path, options or TableOptions())
    named = flagged_columns(table, options, "worker") or roles_of(table.columns)["worker"]
    column = only_column(table, named, "worker", "annotator")
    price = named_columns(path, table.columns, ["cost"], "cost")[0]
    codes = positions(annotators)
    costs = np.full(len(codes), np.nan)
    for row, (name, text) in enumerate(zip(table[column], table[price], strict=True)):
        cost = _number(text)
        if not 0 < cost < np.inf:
            words = {"column": price, "value": text, "advice": "Write a number above 0"}
            raise error("bad_feature", path, table.place(row), **words)
        code = codes.get(name_of(name, codes))
        if code is None:
            continue
        if not np.isnan(costs[code]):
            raise broken(path, f"annotator {name!r} occurs twice", table.place(row))
        costs[code] = cost
    return costs
