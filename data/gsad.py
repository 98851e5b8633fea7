"""GSAD-Syn (ICED, section 3.1.1): gas sensor readings with eleven simulated annotators.

It has two gases of the Gas Sensor Array Drift data, imbalanced.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from neucrowd_tf.declare.types import Floats32, Indices
from neucrowd_tf.errors import DataError

from . import catalogue
from .arrays import checked_features
from .download import locate
from .imbalanced import register_pair

FEATURES = 128
BATCHES = 10

SOURCE = catalogue.source("gsad_syn")


def read(data_dir: Path | None) -> tuple[Floats32, Indices]:
    """Returns the features `[M, 128]` and gases `[M]` (1 to 6) of the published batches.

    Batches 7 and 10 are included in their order if they lie beside the others.
    """
    folder = locate("gsad", list(SOURCE.files), data_dir, SOURCE)
    batches = [folder / f"batch{number}.dat" for number in range(1, BATCHES + 1)]
    features, labels = zip(*map(_read, filter(Path.is_file, batches)), strict=True)
    return np.concatenate(features), np.concatenate(labels)


def _read(path: Path) -> tuple[Floats32, Indices]:
    """Reads lines `gas;concentration 1:value 2:value ...`.

    They are in svmlight's format once the concentration is removed.
    """
    text = re.sub(rb"(?m)^(\d+);\S+", rb"\1", path.read_bytes())
    try:
        features, labels = load_svmlight_file(
            io.BytesIO(text), n_features=FEATURES, dtype=np.float32
        )
    except ValueError as error:
        raise DataError(
            f"{path}: expected lines of `gas;concentration 1:value 2:value ...`, received {error}"
        ) from None
    return checked_features(features, path), labels.astype(np.int64)


load = register_pair("gsad_syn", read, majority=2, minority=1, annotators=11)
