"""USPS-Syn (ICED, section 3.1.1): two USPS digits with nine simulated annotators.

There is an imbalanced pair of digits, and all ten digits, long-tailed.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from neucrowd_tf.declare.types import Floats32, Indices
from neucrowd_tf.errors import DataError

from . import catalogue
from .arrays import checked_features
from .download import locate
from .imbalanced import register_long_tail, register_pair

SOURCE = catalogue.source("usps_syn")


def read(data_dir: Path | None) -> tuple[Floats32, Indices]:
    """Returns all 9,298 digits: features `[M, 256]` and labels `[M]`.

    Training rows come before test rows.
    """
    path = locate("usps", list(SOURCE.files), data_dir, SOURCE) / "usps.h5"
    try:
        with h5py.File(path) as stream:
            features = np.concatenate([stream["train/data"], stream["test/data"]])
            labels = np.concatenate([stream["train/target"], stream["test/target"]])
    except (OSError, KeyError) as error:
        raise DataError(
            f"{path}: expected HDF5 with train/data, train/target, test/data and test/target,"
            f" received {error}"
        ) from None
    return checked_features(features, path), labels.astype(np.int64)


load = register_pair("usps_syn", read, majority=6, minority=2, annotators=9)
load_long_tailed = register_long_tail("usps_lt", read, annotators=9)
