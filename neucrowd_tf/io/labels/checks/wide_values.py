"""What is no annotator's column and no task's row of a wide table by its values: comments, sums,
other fields of a label, what the other columns come to.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import bdtrc

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels.checks.classes import is_fraction
from neucrowd_tf.io.labels.checks.like_counts import MANY_ROWS, SELDOM
from neucrowd_tf.io.tables.csv_file import CsvFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALONE = 3  # cells of an annotator who shares no label with others
MOST_VOTES = 100_000_000  # rows times classes
SAMPLE_ROWS = 40
MOST_COLUMNS = 200  # that are looked at one by one
SAME = 0.99  # of the rows: a column that is what the others come to
A_ROW_A_LABEL = (
    "if each row is one label, --worker_column and --label_column name the columns of annotators"
    " and labels"
)
NUMBER = re.compile(r"-?\d+([.,]\d+)?")


def check_values(
    names: list[str], values: NDArray[Any], missing: NDArray[np.bool_], csv: CsvFile
) -> None:
    """Raises DataError for a column of values that are nobody else's, or of numbers most of which
    are, or that differ from row to row as nobody else's do; tells of a few cells.
    """
    cells = [values[~missing[:, j], j].tolist() for j in range(len(names))]
    found = [set(column) for column in cells]
    times = Counter(label for labels in found for label in labels)
    if max(times.values(), default=0) < 2:
        return
    own = [{label for label in labels if times[label] == 1} for labels in found]
    alone = np.array(
        [np.mean([v in mine for v in column]) if mine else 0.0
         for column, mine in zip(cells, own, strict=True)]
    )  # fmt: skip
    kinds = [len(labels) / max(len(column), 1) for labels, column in zip(found, cells, strict=True)]
    apart = np.median(kinds) < 0.5
    for place, column in enumerate(cells):
        numbers = len(column) >= MANY_ROWS and all(map(NUMBER.fullmatch, found[place]))
        mine, at = own[place], 0
        if numbers and apart and kinds[place] >= 0.9 and _alike(cells, place) < 0.5:
            what = "one of a different number in (nearly) each row"
        elif alone[place] == 1 or (
            numbers and alone[place] >= 0.5 and np.delete(alone, place).max() <= 0.1
        ):
            at = next(i for i, label in enumerate(column) if label in mine)
            part = "all" if alone[place] == 1 else "most"
            what = f"as {part} of the column one that nobody else gives"
        else:
            continue
        row = int(np.flatnonzero(~missing[:, place])[at])
        said = (
            f"{csv.path}: {csv.line(row)}, column {names[place]!r}: expected labels, received"
            f" {column[at]!r}, {what};"
        )
        if len(column) >= ALONE:
            raise DataError(f"{said} take the column out, or --classes=... names all classes")
        warnings.warn(f"{said} it is taken for a label (a comment?)", stacklevel=5)


def check_numbers(
    names: list[str], values: NDArray[Any], missing: NDArray[np.bool_], csv: CsvFile
) -> None:
    """Tells of a column of numbers that are a number of its own in each of few rows, many of them
    nobody else's, or how many labels each row has.

    Raises:
        DataError: the sums of the other columns.
    """
    if len(values) <= ALONE or len(names) < 3:
        return
    # What the first rows are not, all are not; a table may have millions of cells.
    first = _numbers_of(values[:SAMPLE_ROWS], missing[:SAMPLE_ROWS])
    sums = (first == np.nansum(first, axis=1, keepdims=True) - first).all(axis=0)
    given = (first == (~missing[:SAMPLE_ROWS]).sum(axis=1, keepdims=True) - 1).all(axis=0)
    few = len(values) < MANY_ROWS and len(names) <= MOST_COLUMNS
    full = np.isfinite(first).all(axis=0)
    for place in np.flatnonzero(full & (sums | given | few))[:MOST_COLUMNS].tolist():
        numbers = first if len(first) == len(values) else _numbers_of(values, missing)
        here, others = numbers[:, place], np.delete(numbers, place, axis=1)
        kinds = len(np.unique(here))
        own = int((~np.isin(here, others)).sum())
        if (here == np.nansum(others, axis=1)).all() and own and kinds > 1:
            raise DataError(
                f"{csv.path}: column {names[place]!r}: expected labels, received the sums of the"
                " other columns; take the column out, or --classes=... names all classes"
            )
        if (here == (~missing).sum(axis=1) - 1).all() and kinds > 1:
            what = "how many labels each row has"
        elif kinds == len(here) < MANY_ROWS and (
            (own >= max(2, kinds / 3) and is_apart(here, others)) or numbers_rows(here, others)
        ):
            what = f"a different number in each row, {own} of which are nobody else's"
        else:
            continue
        warnings.warn(
            f"{csv.path}: column {names[place]!r}: expected labels, received {what}; it is taken"
            " for an annotator's: take it out if it is none's",
            stacklevel=5,
        )


def _numbers_of(values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Returns numbers, NaN where there are none."""
    return _numbers(np.where(missing, "", values).ravel()).reshape(values.shape)


def in_sequence(column: NDArray[Any]) -> bool:
    """Whether each number is one more than the one above, or one less."""
    return bool((np.diff(column) == 1).all() or (np.diff(column) == -1).all())


def numbers_rows(column: NDArray[Any], others: NDArray[Any]) -> bool:
    """Whether a column counts four rows or more from 0 or 1, up or down, and is apart from the
    others.
    """
    counts = in_sequence(column) and column.min() in (0, 1) and len(column) > ALONE
    return counts and is_apart(column, others, 0.75 if len(column) > ALONE + 1 else 0.5)


def is_apart(column: NDArray[Any], others: NDArray[Any], least: float = 0.5) -> bool:
    """Whether a column is equal to each of the others in fewer rows than these are to one another,
    by a factor.

    Args:
        column: `[N]` numbers.
        others: `[N, R - 1]` those of the others, below 0 or NaN where there are none.
        least: the factor.
    """
    given = others >= 0
    pairs = given.sum(axis=1) * (given.sum(axis=1) - 1)
    alike = ((others == column[:, None]) & given).sum() / max(given.sum(), 1)
    equal = sum(((other == others.T) & given.T & (other >= 0)).sum() for other in others.T)
    return bool(alike < least * (equal - given.sum()) / max(pairs.sum(), 1))


def _alike(cells: list[list[str]], place: int) -> float:
    """Returns the share of different labels that a column would have if it were drawn from the
    others.
    """
    pool = Counter(label for j, column in enumerate(cells) if j != place for label in column)
    shares = np.array(list(pool.values())) / max(pool.total(), 1)
    size = len(cells[place])
    return float((1 - (1 - shares) ** size).sum()) / size


def tell_turned(
    tasks: int, annotators: int, source: str | Path, form: str = "a row a task"
) -> None:
    """Tells of few tasks that have many annotators, as where these stand in the tasks' place."""
    if annotators > ALONE * tasks > ALONE:
        warnings.warn(
            f"{source}: read as {tasks} tasks and {annotators} annotators; {form} is expected, so"
            f" turn it round if there are {annotators} tasks",
            stacklevel=5,
        )


def check_no_triples(
    names: list[str], values: NDArray[Any], missing: NDArray[np.bool_], csv: CsvFile
) -> None:
    """Raises DataError for full columns that are a row's annotator and label (and what else was
    kept of it) under names that are not known, rather than annotators: two columns, most of one's
    values never in the other, or more of which no two share a value.

    Annotators are known by agreeing more than by chance, or by names that differ in a number.
    """
    stems = {re.sub(r"\d+", "", name) for name in names}
    if missing.any() or len(values) < 2 or len(names) < 2 or len(stems) == 1:
        return
    if all(map(is_fraction, map(str, values[0]))):  # numbers of other kinds, which is said better
        return
    found = [set(column) for column in values.T.tolist()]
    if len(names) > 2:
        if sum(map(len, found)) > len(set.union(*found)):
            return
    else:
        alone = [np.isin(values[:, j], list(found[1 - j]), invert=True).mean() for j in (0, 1)]
        if max(alone) < 0.5 or _agree_more_than_chance(values[:, 0], values[:, 1]):
            return
    shown = " and ".join(repr(name) for name in names[:2])
    raise DataError(
        f"{csv.path}: columns {shown}: expected two annotators' labels, received values that hardly"
        f" occur in both; {A_ROW_A_LABEL}, and --classes=... takes the columns for annotators"
    )


def _agree_more_than_chance(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether two columns hold equal values in more rows than chance explains (one side, 5 %)."""
    rows = len(first)
    chance = sum((first == v).sum() * (second == v).sum() for v in set(first)) / rows**2
    return bool((first == second).mean() - chance > 1.645 * np.sqrt(chance * (1 - chance) / rows))


def check_no_sums(
    ids: NDArray[Any], values: NDArray[Any], missing: NDArray[np.bool_], csv: CsvFile
) -> None:
    """Raises DataError for a first or last row of numbers that are the sums of the other rows, or
    how many labels these have, whatever it is called.
    """
    if len(values) <= ALONE:
        return
    for row in (0, len(values) - 1):
        there, rest = ~missing[row], np.delete(values, row, 0)
        given = np.delete(~missing, row, 0)[:, there]
        here, rest = values[row][there], np.where(given, rest[:, there], "0")
        if len(here) < 2 or set(here) <= set(rest[given]):
            continue
        counts = _numbers(here)
        if (counts == given.sum(axis=0)).all():
            what = "how many labels the other rows have"
        elif (counts == _numbers(rest.ravel()).reshape(rest.shape).sum(axis=0)).all():
            what = "the sums of the other rows"
        else:
            continue
        raise DataError(
            f"{csv.path}: {csv.line(row)}: expected a task and its labels, received {ids[row]!r}"
            f" and {what}; take the line out, or --classes=... names all classes"
        )


def _numbers(cells: NDArray[Any]) -> NDArray[np.float64]:
    return pd.to_numeric(pd.Series(cells), errors="coerce").to_numpy(dtype=np.float64)


def tell_consensus(
    names: list[str], values: NDArray[Any], missing: NDArray[np.bool_], csv: CsvFile
) -> None:
    """Warns of a column that is most likely no annotator's: it is what most of the others say in
    (nearly) every row, where these are of different opinions, or is alone in having all rows.
    """
    if len(names) <= 2 or len(values) < MANY_ROWS:
        return
    filled = (~missing).mean(axis=0)
    place = int(filled.argmax())
    most = float(np.delete(filled, place).max())
    if (found := _consensus(values, missing)) is not None:
        place, said = found, "what most of the others say in (nearly) every row, as a consensus is"
    elif filled[place] >= 0.95 and most < 0.5 and len(names) > ALONE:
        said = f"labels of {filled[place]:.0%} of the rows, where others have {most:.0%} or less"
    else:
        return
    warnings.warn(
        f"{csv.path}: column {names[place]!r}: expected an annotator's labels, received {said}; it"
        " is taken for an annotator (take it out where it is none)",
        stacklevel=5,
    )


def _consensus(values: NDArray[Any], missing: NDArray[np.bool_]) -> int | None:
    """Returns the column of (nearly) all rows that is what most of the others say, where each of
    these is it less often than chance explains; None where there is none.
    """
    rows, columns = np.nonzero(~missing)
    codes, classes = pd.factorize(values[rows, columns])
    if len(classes) < 2 or len(values) * len(classes) > MOST_VOTES:
        return None
    same, times = _follows(rows, columns, codes, missing.shape)
    share = same / np.maximum(times, 1)
    place = int(
        np.where((times >= MANY_ROWS) & ((~missing).mean(axis=0) >= 0.9), share, 0).argmax()
    )
    if share[place] < SAME:
        return None
    often = times >= MANY_ROWS
    often[place] = False
    rest = [counts.sum() - counts[place] for counts in (same, times)]
    best = max(share[often].max(initial=0.0), rest[0] / max(rest[1], 1))
    chance = float(bdtrc(same[place] - 1, times[place], best))
    return place if chance * missing.shape[1] < SELDOM else None


def _follows(
    rows: NDArray[np.int64], columns: NDArray[np.int64], codes: NDArray[np.int64], shape: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns how often each column is what most other cells of the row say, and in how many rows
    these do not tie.
    """
    votes = np.zeros((shape[0], codes.max(initial=0) + 2), dtype=np.int32)
    np.add.at(votes, (rows, codes), 1)
    mine = votes[rows, codes]
    low, high = np.partition(votes, -2, axis=1)[:, -2:].T
    ties = (votes == high[:, None]).sum(axis=1)
    # Without the cell itself its class has a vote less.
    same = (mine == high[rows]) & (mine - 1 > low[rows])
    other = np.where(mine == high[rows], ties[rows] == 2, ties[rows] == 1)
    of = [np.bincount(columns[which], minlength=shape[1]) for which in (same, same | other)]
    return of[0], of[1]
