"""Parquet files as frames."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files.reading import read_bytes
from neucrowd_tf.io.tables.headers import check_no_twins


def read_frame(path: Path) -> pd.DataFrame:
    """Reads a Parquet file.

    Raises:
        DataError: another file, a damaged one, or a column's name that is there twice.
        UsageError: pyarrow is not installed.
    """
    content = read_bytes(path, "a Parquet file")
    try:
        import pyarrow.parquet as pq

        check_no_twins(path, pq.read_schema(io.BytesIO(content)).names)
        return pd.read_parquet(io.BytesIO(content))
    except ImportError:
        raise UsageError(
            f"{path}: expected pyarrow to read Parquet, received none: pip install"
            " 'neucrowd-tf[parquet]'"
        ) from None
    except DataError:
        raise
    except Exception as error:  # a damaged file ends in errors of many kinds
        raise DataError(
            f"{path}: expected a Parquet file, received {' '.join(str(error).split())[:200]}"
        ) from None
