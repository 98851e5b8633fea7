"""Published tables as frames of pandas."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.reading import open_bytes, open_text


def read_csv(path: Path, columns: Sequence[str] = (), **options: Any) -> pd.DataFrame:
    """Reads a CSV of a published dataset.

    Args:
        path: the file, which may be packed with gzip.
        columns: columns that it must have.
        options: further options of `pandas.read_csv`.

    Raises:
        DataError: not a CSV in UTF-8, no rows, a row of another length than the header, or a column
            that is missing.
    """
    try:
        with open_bytes(path, "a CSV file") as stream:
            frame = pd.read_csv(stream, **options)
    except (ValueError, pd.errors.ParserError) as error:  # decoding errors are ValueErrors
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: this is not a CSV ({error}). Download it again.") from None
    # pandas makes an index of the cells of rows that are longer than the header.
    if not isinstance(frame.index, pd.RangeIndex):
        raise DataError(f"{path}: a row is longer than the header. Download the file again.")
    if len(frame):
        last = frame.iloc[:, -1]
        if (last.isna() | (last == "")).any() and (line := _short_row(path)) is not None:
            raise DataError(
                f"{path}: line {line}: the row is shorter than the header. Download the file again."
            )
    frame.columns = [str(column).strip() for column in frame.columns]
    for name in columns:
        if name not in frame.columns:
            raise DataError(f"{path}: there is no column {name!r}. Download the file again.")
    if not len(frame):
        raise DataError(f"{path}: there are no rows. Download the file again.")
    return frame


def _short_row(path: Path) -> int | None:
    """Returns the line of the first row with fewer cells than the header, or None."""
    with open_text(path) as stream:
        rows = csv.reader(stream)
        width = len(next(rows, []))
        return next((rows.line_num for row in rows if 0 < len(row) < width), None)
