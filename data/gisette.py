"""Gisette-Syn (ICED, section 3.1.1): fours and nines with seven simulated annotators.

The digits are those of the NIPS 2003 feature selection challenge.

The files are not downloaded: UCI 170 publishes them as one archive. Unpacked into
`<data_dir>/gisette/` they are read as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from data.arrays import read_numbers, same_length
from data.download import find
from data.imbalanced import register_pair
from neucrowd_tf.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEATURES = 5000
PARTS = ("train", "valid")
# UCI's archive keeps the validation labels outside the folder of the others.
PLACES = ("", "GISETTE")


def read(data_dir: Path | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Returns features `[M, 5000]` and labels `[M]` (1 and -1) of training and validation rows."""
    features, labels = [], []
    for split in PARTS:
        rows_path, labels_path = (
            find("gisette", f"gisette_{split}.{kind}", data_dir, PLACES)
            for kind in ("data", "labels")
        )
        rows = read_numbers(rows_path)
        if rows.shape[1] != FEATURES or not np.isfinite(rows).all():
            raise DataError(
                f"{rows_path}: expected {FEATURES} finite numbers in each row, received shape"
                f" {rows.shape} or NaN"
            )
        codes = read_numbers(labels_path)[:, 0]
        same_length(labels_path, len(codes), len(rows), "labels, one a row")
        if not np.isin(codes, (-1, 1)).all():
            row = int(np.flatnonzero(~np.isin(codes, (-1, 1)))[0])
            raise DataError(f"{labels_path}: row {row}: expected 1 or -1, received {codes[row]}")
        features.append(rows.astype(np.float32))
        labels.append(codes.astype(np.int64))
    return np.concatenate(features), np.concatenate(labels)


load = register_pair(
    "gisette_syn",
    "fours and nines, 10 to 1, 5,000 features, 7 simulated annotators (ICED; needs UCI's files in"
    " --data_dir)",
    read,
    majority=1,
    minority=-1,
    annotators=7,
)
