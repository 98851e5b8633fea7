"""What is no annotator's column of a matrix of codes: ids of tasks, those of triples, numbers that
are no codes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.labels.checks.wide_values import (
    MOST_COLUMNS,
    in_sequence,
    is_apart,
    numbers_rows,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 3  # rows
MOST_APART = 1000  # a code where few occur
AS_LABELS = "; --classes=... takes them for labels"
HEADER = (
    "where there are ids the first line names the columns: task,worker,label (--task_column,"
    " --worker_column and --label_column say what they are called), or task and a column an"
    " annotator"
)


def check_no_ids(matrix: NDArray[Any], path: Path) -> None:
    """Raises DataError for columns that are no annotator's: a number of its own in each row, or the
    tasks and workers of triples.
    """
    for column in range(matrix.shape[1]):
        if len(np.unique(matrix[:, column])) == len(matrix) and matrix.shape[1] > 1:
            shown = column + (ending(path) != ".npy")  # a CSV's are counted from 1, as its lines
            raise DataError(
                f"{path}: column {shown}: expected class codes, received a different number in"
                f" each row, as ids of tasks are; {HEADER}{AS_LABELS}"
            )
    if matrix.shape[1] < 3 or (matrix[:, :3] < 0).any():
        return
    for pair in combinations(range(3), 2):
        if _are_pairs(matrix, pair):
            which = {(0, 1): "first two", (0, 2): "first and third"}.get(pair, "second and third")
            raise DataError(
                f"{path}: expected class codes, received {matrix.shape[1]} columns whose {which}"
                f" are never the same, as tasks and workers; {HEADER}{AS_LABELS}"
            )


def check_few_ids(matrix: NDArray[Any], path: Path) -> None:
    """Warns, where rows are few, of a column with a number of its own in each of them, which is
    hardly ever another's of the same row, and often nobody else's at all or the row's number.

    Raises:
        DataError: these are in sequence, and often nobody else's.
    """
    rows, width = matrix.shape
    for column in range(width if rows >= FEW and 1 < width <= MOST_COLUMNS else 0):
        ids, others = matrix[:, column], np.delete(matrix, column, axis=1)
        if ids.min() < 0 or len(np.unique(ids)) < rows:
            continue
        own = ~np.isin(ids, others)
        many = own.sum() >= max(2, rows / 3)
        in_order = in_sequence(ids)
        if not (many and (in_order or is_apart(ids, others))) and not numbers_rows(ids, others):
            continue
        shown = column + (ending(path) != ".npy")
        said = (
            f"{path}: column {shown}: expected class codes, received a different number in each"
            f" row, {own.sum()} of which are nobody else's, as ids of tasks are"
        )
        if many and (in_order or (own.all() and ids.max() - ids.min() == rows - 1)):
            raise DataError(f"{said}; {HEADER}{AS_LABELS}")
        warnings.warn(f"{said}; they are taken for labels; {HEADER}", stacklevel=5)


def tell_few_triples(matrix: NDArray[Any], path: Path) -> None:
    """Warns, where rows are few, of three columns two of which never hold the same pair, and differ
    in most rows, as those of tasks and workers.
    """
    if matrix.shape[1] != 3 or len(matrix) <= FEW or matrix.min() < 0:
        return
    for pair in combinations(range(3), 2):
        ids = matrix[:, pair]
        once = len(np.unique(ids, axis=0)) == len(ids)
        again = all(len(np.unique(column)) < len(ids) for column in ids.T)
        if once and again and (ids[:, 0] == ids[:, 1]).mean() <= 0.5:
            warnings.warn(
                f"{path}: expected class codes, received 3 columns, two of which are never the same"
                f" in two rows, as tasks and workers; they are taken for labels; {HEADER}",
                stacklevel=5,
            )
            return


def check_size(matrix: NDArray[Any], path: Path, line: Callable[[int], str]) -> None:
    """Raises DataError for a code far above the number of those that occur: a class is made of each
    number up to the largest.
    """
    most, kinds = int(matrix.max(initial=0)), len(np.unique(matrix))
    if most >= max(MOST_APART, 20 * kinds):
        row, column = np.argwhere(matrix == most)[0]
        raise DataError(
            f"{path}: {line(row)}, column {column}: expected codes of classes from 0 on, received"
            f" {most} where {kinds} different numbers occur; --missing={most} takes it for none;"
            f" {HEADER}"
        )


def _are_pairs(matrix: NDArray[Any], pair: tuple[int, int]) -> bool:
    """Whether two columns never hold the same pair, as tasks and workers do. Those of annotators
    who agree on few more rows than there are classes may not either: where these are not the first
    of three columns, a first column that never falls, or many more rows, tell.
    """
    if len(np.unique(matrix[:, pair], axis=0)) < len(matrix):
        return False
    label = 3 - sum(pair)
    many = len(matrix) > 3 * len(np.unique(matrix[:, label]))
    if pair != (0, 1):
        return many
    return matrix.shape[1] == 3 or many or bool((np.diff(matrix[:, 0]) >= 0).all())
