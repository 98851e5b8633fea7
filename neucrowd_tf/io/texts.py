"""Reader of a user's texts: a CSV with `task` and `text`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.io.tables import PLAIN, CsvFile, TableFormat, require_columns, task_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAMES = ("text", "sentence", "content", "comment", "document")


def read_texts(path: Path, layout: TableFormat = PLAIN) -> tuple[NDArray[Any], NDArray[Any]]:
    """Reads `task` and `text` (or another of `NAMES`); other columns are left alone.

    Returns:
        task ids `[N]` as text, and texts `[N]`, an array of `str`; an empty cell is an empty text.

    Raises:
        DataError: no such file, a missing column, or a task that is there twice or has no id.
    """
    frame = CsvFile.open(path, layout).table()
    ids = task_ids(frame, path, layout)
    column = next((name for name in NAMES if name in frame.columns), None)
    if column is None:
        require_columns(path, list(frame.columns), NAMES[:1])
    texts = np.empty(len(frame), dtype=object)
    texts[:] = frame[column].tolist()
    return ids, texts
