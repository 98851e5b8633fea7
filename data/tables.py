"""Published tables as frames of pandas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from neucrowd_tf.declare.types import Texts
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.reading import open_bytes

from .arrays import check_each


def read_csv(path: Path, columns: Texts = (), **options: Any) -> pd.DataFrame:
    """Reads a CSV of a published dataset.

    Args:
        path: the file, which may be packed with gzip.
        columns: columns that it must have, with a value in each row.
        options: further options of `pandas.read_csv`.

    Raises:
        DataError: not a CSV in UTF-8, a row longer than the header, or a column or a value that is
            missing.
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
    frame.columns = frame.columns.str.strip()
    for name in columns:
        if name not in frame.columns:
            raise DataError(f"{path}: there is no column {name!r}. Download the file again.")
        check_each(path, frame[name], frame[name].notna(), f"a value in column {name!r}")
    return frame
