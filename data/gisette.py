"""Gisette-Syn (ICED, section 3.1.1): fours and nines with seven simulated annotators.

The digits are those of the NIPS 2003 feature selection challenge.

The files are not downloaded: UCI 170 publishes them as one archive. `<data_dir>/gisette/` needs its
`gisette_train.data`, `gisette_train.labels`, `gisette_valid.data` and `gisette_valid.labels`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neucrowd_tf.declare.types import Floats32, Indices

from .arrays import check_each, checked_features, read_numbers
from .download import locate
from .imbalanced import register_pair

SPLITS = ("train", "valid")


def read(data_dir: Path | None) -> tuple[Floats32, Indices]:
    """Returns features `[M, 5000]` and labels `[M]` (1 and -1) of training and validation rows."""
    files: list[str] = []
    for split in SPLITS:
        files += [f"gisette_{split}.data", f"gisette_{split}.labels"]
    folder = locate("gisette", files, data_dir)
    features = []
    labels = []
    for split in SPLITS:
        path = folder / f"gisette_{split}.data"
        features.append(checked_features(read_numbers(path), path))
        path = folder / f"gisette_{split}.labels"
        codes = read_numbers(path)[:, 0]
        check_each(path, codes, np.isin(codes, (-1, 1)), "1 or -1")
        labels.append(codes.astype(np.int64))
    return np.concatenate(features), np.concatenate(labels)


load = register_pair("gisette_syn", read, majority=1, minority=-1, annotators=7)
