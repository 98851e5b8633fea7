"""Readers of a user's features: CSV, Parquet, NPY, or a folder of images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.annotations import as_name_array
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files import read_csv
from neucrowd_tf.io.tables import alias, read_text_table, task_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")


def read_features(path: Path) -> tuple[NDArray[Any], NDArray[np.float32], list[str]]:
    """Reads `task` and numeric columns from a CSV or a Parquet file, or an array from an NPY file,
    whose tasks are numbered from 0.

    Returns:
        task ids `[N]` as text, features `[N, d]` (an NPY file's may have more axes) float32, and
        the feature columns' names.

    Raises:
        DataError: a missing, misspelt or non-numeric column, an empty cell, NaN, infinity, or a
            task that is there twice.
        UsageError: a Parquet file, and no pyarrow to read it with.
    """
    if path.suffix == ".npy":
        return _npy_features(path)
    if path.suffix in (".parquet", ".pq"):
        frame = _read_parquet(path)
        ids = task_ids(frame, path)
        task = alias(list(frame.columns), "task")
        return _table(frame, ids, task, path)
    header = read_csv(path, nrows=0)
    task = alias([str(column).strip() for column in header.columns], "task")
    raw = [column for column in header.columns if str(column).strip() == task]
    # Numbers are parsed as numbers at full speed; ids stay text.
    frame = read_text_table(path, dtype=dict.fromkeys(raw, str), low_memory=False)
    return _table(frame, task_ids(frame, path), task, path)


def _table(
    frame: pd.DataFrame, ids: NDArray[Any], task: str | None, path: Path
) -> tuple[NDArray[Any], NDArray[np.float32], list[str]]:
    names = [str(column) for column in frame.columns if column != task]
    if not names:
        raise DataError(
            f"{path}: expected at least one numeric column beside {task!r}, received none"
        )
    columns = [_numbers(frame[name], path) for name in names]
    return ids, np.stack(columns, axis=1), names


def _read_parquet(path: Path) -> pd.DataFrame:
    """Reads a Parquet file; the task ids become text."""
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise UsageError(
            f"{path}: expected pyarrow to read Parquet, received none: pip install"
            " 'neucrowd-tf[parquet]'"
        ) from None
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: expected a Parquet file, received {' '.join(str(error).split())[:200]}"
        ) from None
    frame.columns = [str(column).strip() for column in frame.columns]
    if not len(frame):
        raise DataError(f"{path}: expected at least one row, received none")
    column = alias(list(frame.columns), "task")
    if column is None and frame.index.name is not None and alias([str(frame.index.name)], "task"):
        frame = frame.reset_index()
        column = str(frame.columns[0])
    if column is not None:
        values = frame[column].astype(object)
        frame[column] = values.map(str).where(values.notna(), "")
    return frame


def _npy_features(path: Path) -> tuple[NDArray[Any], NDArray[np.float32], list[str]]:
    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"{path}: expected a NumPy array of numbers, received {error}") from None
    if (
        not isinstance(array, np.ndarray)
        or array.dtype.kind not in "fiu"
        or array.ndim < 2
        or not array.size
    ):
        kind = (
            f"{array.dtype} of shape {array.shape}"
            if isinstance(array, np.ndarray)
            else "an archive of several"
        )
        raise DataError(
            f"{path}: expected an array of numbers with a row an instance, received {kind}"
        )
    with np.errstate(over="ignore"):
        single = array.astype(np.float32)
    if not np.isfinite(single).all():
        row, *column = np.argwhere(~np.isfinite(single))[0].tolist()
        raise DataError(
            f"{path}: row {row}, column {column[0] if len(column) == 1 else tuple(column)}:"
            " expected a finite number"
        )
    names = [str(i) for i in range(single.shape[-1])]
    return as_name_array([str(i) for i in range(len(single))]), single, names


def read_images(folder: Path, size: int | None = None) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Reads a folder of images as features; the task ids are the files' names without their
    endings.

    Args:
        folder: with PNG, JPEG, BMP, GIF or WebP files; other files are passed over.
        size: the height and width that images are scaled to; None needs images of one size.

    Returns:
        task ids `[N]` as text, in the order of the names, and features `[N, height, width, 3]`
        float32 within 0 and 1.

    Raises:
        UsageError: no Pillow to read them with.
        DataError: no folder or no image in it, an unreadable image, two of one name, or images of
            several sizes.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise UsageError(
            f"{folder}: expected Pillow to read images, received none: pip install"
            " 'neucrowd-tf[images]'"
        ) from None
    if not folder.is_dir():
        raise DataError(
            f"{folder}: expected a folder of images, received"
            f" {'a file' if folder.exists() else 'no such folder'}"
        )
    files = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in IMAGES and not path.name.startswith(".")
    )
    if not files:
        raise DataError(f"{folder}: expected images ({', '.join(IMAGES)}), received none")
    names = [path.stem for path in files]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{folder}: expected each task once, received two images named {twice!r}")
    rows: NDArray[np.float32] | None = None
    for row, path in enumerate(files):
        try:
            with Image.open(path) as image:
                pixels = np.asarray(
                    image.convert("RGB")
                    if size is None
                    else image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
                )
        except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
            raise DataError(
                f"{path}: expected an image, received {' '.join(str(error).split())[:200]}"
            ) from None
        if rows is None:
            rows = np.empty((len(files), *pixels.shape), dtype=np.float32)
        if pixels.shape != rows.shape[1:]:
            first, this = (
                "x".join(map(str, shape)) for shape in (rows.shape[1:3], pixels.shape[:2])
            )
            raise DataError(
                f"{path}: expected an image of {first} pixels as the first one, received {this};"
                " --image_size scales all of them"
            )
        rows[row] = pixels
        rows[row] /= 255.0
    return as_name_array(names), rows  # type: ignore[return-value]


def _numbers(column: pd.Series, path: Path) -> NDArray[np.float32]:
    values = (
        column.to_numpy()
        if column.dtype.kind in "iuf"
        else pd.to_numeric(column.astype(object), errors="coerce").to_numpy(dtype=np.float64)
    )
    with np.errstate(over="ignore"):  # a number too large for float32 is infinite, and said below
        single = values.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(single)) if column.dtype.kind != "b" else np.arange(1)
    if len(bad):
        cell = column.iloc[bad[0]]
        shown = (
            "an empty cell"
            if cell is None or (isinstance(cell, str) and cell == "")
            else repr(cell)
            if isinstance(cell, str)
            else str(cell)
        )
        raise DataError(
            f"{path}: row {bad[0]}, column {column.name!r}: expected a finite number, received"
            f" {shown}"
        )
    return single
