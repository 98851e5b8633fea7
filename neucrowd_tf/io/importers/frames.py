"""A Hugging Face dataset, or any DataFrame, with the names of its columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.importers.export import Collector, Duplicates, Export
from neucrowd_tf.io.tables.headers import check_no_twins
from neucrowd_tf.io.tables.other_columns import tell_marks

TOOL = "table"


def from_table(
    table: Any,
    *,
    task: str,
    worker: str,
    label: str,
    text: str | None = None,
    source: str | Path = "table",
    duplicates: Duplicates = "error",
) -> Export:
    """Takes the columns of a table with a row a label.

    Args:
        table: a DataFrame, or a Hugging Face dataset (anything with `to_pandas`; whole numbers of a
            `ClassLabel` become the names of its classes).
        task, worker, label: names of columns.
        text: the column that holds what was labelled, if any.
        source: what to call the table in errors.
        duplicates: as for `read_export`.

    Raises:
        UsageError: no such column, or no table.
        DataError: a column's name that is there twice, an empty cell, or a worker who answered a
            task twice.
    """
    frame = table if isinstance(table, pd.DataFrame) else _to_pandas(table)
    check_no_twins(source, [str(name).strip() for name in frame.columns])
    wanted = {"task": task, "worker": worker, "label": label}
    if text is not None:
        wanted["text"] = text
    for role, name in wanted.items():
        if name not in frame.columns:
            shown = ", ".join(repr(str(column)) for column in frame.columns[:8])
            raise UsageError(
                f"{source}: expected the {role} in a column {name!r}, received {shown}"
            )
    if len({task, worker, label}) < 3:
        raise UsageError(
            f"{source}: expected a column each for task, worker and label, received"
            f" {task!r}, {worker!r}, {label!r}"
        )
    tell_marks(frame, (task, worker, label), source)
    found = Collector(Path(source))
    columns = [
        frame[name].astype(object).where(frame[name].notna(), None) for name in wanted.values()
    ]
    for number, cells in enumerate(zip(*columns, strict=True), 2):
        place = f"row {number}"  # as a spreadsheet counts, the header being row 1
        found.answer(place, cells[0], cells[1], label, [] if cells[2] is None else [cells[2]])
        if text is not None:
            way_out = ", or leave out --text_column"
            found.text(place, cells[0], {"text": cells[3]}, way_out)
    return found.finish(TOOL, duplicates=duplicates)


def _to_pandas(table: Any) -> pd.DataFrame:
    if not hasattr(table, "to_pandas"):
        raise UsageError(
            f"expected a DataFrame or a Hugging Face dataset, received {type(table).__name__}"
        )
    frame = table.to_pandas()
    for name, feature in dict(getattr(table, "features", None) or {}).items():
        names = getattr(feature, "names", None)
        if names and name in frame:
            frame[name] = [names[code] if code >= 0 else None for code in frame[name]]
    return frame
