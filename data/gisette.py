"""Gisette-Syn (ICED, section 3.1.1): fours and nines with seven simulated annotators.

The digits are those of the NIPS 2003 feature selection challenge.

The files are not downloaded: UCI 170 publishes them as one archive. Unpacked into
`<data_dir>/gisette/` they are read as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from data.arrays import check_each, read_numbers
from data.download import find
from data.imbalanced import register_pair
from neucrowd_tf.training.estimator import check_features

if TYPE_CHECKING:
    from numpy.typing import NDArray

# UCI's archive keeps the validation labels outside the folder of the others.
FOLDER = "GISETTE"


def read(data_dir: Path | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Returns features `[M, 5000]` and labels `[M]` (1 and -1) of training and validation rows."""
    features, labels = [], []
    for split in ("train", "valid"):
        path = find("gisette", f"gisette_{split}.data", data_dir, FOLDER)
        features.append(check_features(read_numbers(path), str(path)))
        path = find("gisette", f"gisette_{split}.labels", data_dir, FOLDER)
        codes = read_numbers(path)[:, 0]
        check_each(path, codes, np.isin(codes, (-1, 1)), "1 or -1")
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
