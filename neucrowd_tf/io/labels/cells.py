"""The cells of tables with a row a task: which are empty, whose they are."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels.checks.like_counts import VOTES
from neucrowd_tf.io.labels.checks.wide_values import A_ROW_A_LABEL
from neucrowd_tf.io.labels.table import is_task_marker, tell_missing
from neucrowd_tf.io.names.checks import check_names
from neucrowd_tf.io.names.ids import distinct
from neucrowd_tf.io.tables.column_names import renamed_twin
from neucrowd_tf.io.tables.csv_file import CsvFile
from neucrowd_tf.io.tables.format import TableFormat
from neucrowd_tf.io.tables.tasks import task_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

EMPTY = ("", "nan", "NaN")
_POINT_ZERO = re.compile(r"([-+]?\d+)\.0+")


def without_point(cell: str) -> str:
    """Returns a whole number without the `.0` that NaN gives a column of them; any other text, a
    name that ends so too, as it is.
    """
    found = _POINT_ZERO.fullmatch(cell)
    return cell if found is None else found[1]


def is_named(values: NDArray[Any], missing: Sequence[str]) -> NDArray[np.bool_]:
    """Returns which cells are spelt as one that --missing names; 9.0 is 9."""
    if not missing:
        return np.zeros(values.shape, dtype=bool)
    texts = [[without_point(str(cell).strip()) for cell in row] for row in values.tolist()]
    return np.isin(np.array(texts), [*missing, *map(without_point, missing)])


def check_header_names(
    names: Any, role: str, csv: CsvFile, layout: TableFormat, known: Sequence[str] = ()
) -> None:
    """Checks the names of annotators or classes that a table's first line gives, as `check_names`
    does.
    """
    where = f"{csv.path}: {csv.line(0, header=False)}"
    twin = None if layout.exact_names else renamed_twin(list(map(str, names)))
    if twin is not None:
        raise DataError(
            f"{where}: expected each column once, received {twin!r}, as pandas names a second"
            f" {twin.rpartition('.')[0]!r}; --exact_names takes it for another"
        )
    check_names(
        *distinct(names),
        role,
        lambda _: where,
        known=known,
        exact=layout.exact_names,
        missing=layout.missing,
    )


@dataclasses.dataclass(frozen=True)
class _Kept(CsvFile):
    """A CSV some of whose rows are left out.

    Attributes:
        rows: which of the file's are kept.
    """

    rows: tuple[int, ...] = ()

    def line(self, row: int, header: bool = True) -> str:
        return super().line(self.rows[int(row)] if header else row, header)


def without_nameless(cells: pd.DataFrame, csv: CsvFile, layout: TableFormat) -> pd.DataFrame:
    """Returns the columns but those of names that --missing names (see `is_task_marker`), which are
    counted.
    """
    named = [name for name in layout.missing or () if not name or is_task_marker(name)]
    lost = [name for name in map(str, cells) if name.removeprefix(VOTES).strip() in named]
    if lost:
        tell_missing(csv.path, len(lost), "columns", "a name")
    if len(lost) == len(cells.columns):
        raise DataError(
            f"{csv.path}: {csv.line(0, header=False)}: expected columns of annotators, received"
            " none"
        )
    return cells.drop(columns=lost)


def task_cells(csv: CsvFile, layout: TableFormat) -> tuple[CsvFile, NDArray[Any], pd.DataFrame]:
    """Returns the file, the tasks' ids `[N]` and the other columns as text, without the tasks and
    columns that --missing names, and with lines that are the file's.
    """
    frame = csv.table()
    tasks = frame.get(layout.roles(list(frame.columns)).get("task"))
    missing = [name for name in layout.missing or () if is_task_marker(name)]
    if tasks is not None and (lost := tasks.str.strip().isin(missing).to_numpy()).any():
        tell_missing(csv.path, int(lost.sum()), "lines", "a task")
        rows = tuple(np.flatnonzero(~lost).tolist())
        csv = _Kept(csv.path, csv.content, csv.separator, rows=rows)
        frame = frame[~lost].reset_index(drop=True)
        if frame.empty:
            raise DataError(f"{csv.path}: expected at least one task, received none")
    try:
        ids = task_ids(frame, csv.path, layout, csv)
    except DataError as error:
        hint = f"; {A_ROW_A_LABEL}" if "each task once" in str(error) else ""
        raise DataError(f"{error}{hint}") from None
    one = np.ones(len(ids), dtype=np.int64)
    check_names(
        ids.tolist(),
        one,
        np.arange(len(ids)),
        "task",
        lambda row: f"{csv.path}: {csv.line(row)}",
        exact=layout.exact_names,
        missing=layout.missing,
    )
    cells = frame.drop(columns=[layout.roles(list(frame.columns))["task"]])
    return csv, ids, without_nameless(cells, csv, layout)
