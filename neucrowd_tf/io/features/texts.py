"""Reader of a user's texts: a CSV with `task` and `text`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.names.missing import is_marker
from neucrowd_tf.io.tables.csv_file import CsvFile
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.headers import require_columns
from neucrowd_tf.io.tables.tasks import task_ids

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
    csv = CsvFile.open(path, layout)
    frame = csv.table()
    ids = task_ids(frame, path, layout, csv)
    folded = {str(name).lower(): name for name in reversed(frame.columns)}
    columns = [name if name in frame.columns else folded[name] for name in NAMES if name in folded]
    if not columns:
        require_columns(path, list(frame.columns), NAMES[:1])
    column, *others = columns
    if others:
        warnings.warn(
            f"{path}: columns {column!r} and {others[0]!r} are both named as a text's; {column!r}"
            " is taken",
            stacklevel=2,
        )
    if column.lower() != NAMES[0]:
        _tell_longer(frame, column, path)
    texts = np.empty(len(frame), dtype=object)
    texts[:] = frame[column].tolist()
    bare = np.flatnonzero([is_marker(text) for text in texts])
    if len(bare) == len(texts):
        raise DataError(
            f"{path}: {csv.line(bare[0])}, column {column!r}: expected a text in one of the rows,"
            f" received {texts[bare[0]]!r} and the like in all of them"
        )
    if len(set(texts)) == 1 and len(texts) > 1:
        warnings.warn(
            f"{path}: column {column!r}: expected texts that differ between instances, received"
            f" the same one in all {len(texts)} rows",
            stacklevel=2,
        )
    if len(bare):
        warnings.warn(
            f"{path}: {csv.line(bare[0])}, column {column!r}: {len(bare)} texts are empty, or often"
            f" stand for none, and are taken as they are (the first: {texts[bare[0]]!r})",
            stacklevel=2,
        )
    return ids, texts


def _tell_longer(frame: pd.DataFrame, column: str, path: Path) -> None:
    """Warns of a column of several words a cell that are longer than those of the one taken for
    texts, under a name that remarks have too.
    """
    cells = frame.astype(str)
    length = cells.apply(lambda other: other.str.len().mean())
    words = cells.apply(lambda other: other.str.strip().str.contains(" ").mean()) > 0.5
    longest = length.where(words | (length.index == column)).idxmax()
    if length[longest] > length[column]:
        warnings.warn(
            f"{path}: column {column!r} is taken for the texts, though those of {longest!r} are"
            f" longer (a column named {NAMES[0]!r} is taken before others)",
            stacklevel=3,
        )
