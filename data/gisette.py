"""Gisette-Syn (ICED, section 3.1.1): fours and nines of the NIPS 2003 feature selection challenge,
seven simulated annotators.

The files are not downloaded: UCI 170 publishes them as one archive. Unpacked into
`<data_dir>/gisette/` they are read as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from data.arrays import read_numbers, same_length
from data.download import locate
from data.imbalanced import NOTES, PAIR_OPTIONS, Crowd, imbalanced_pair
from neucrowd_tf.datasets import Card, CrowdDataset
from neucrowd_tf.errors import DataError
from neucrowd_tf.registry import register_dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEATURES = 5000
PARTS = ("train", "valid")
# UCI's archive keeps the validation labels outside the folder of the others.
PLACES = ("", "GISETTE")

CARD = Card(
    title="Gisette-Syn",
    source="https://archive.ics.uci.edu/dataset/170/gisette",
    licence="CC BY 4.0",
    citation=(
        "Guyon, Gunn, Ben-Hur, Dror: Result analysis of the NIPS 2003 feature selection challenge,"
        " NIPS 2004"
    ),
    paper={
        "num_features": 5000,
        "train_size": 3080,
        "majority_size": 2800,
        "minority_size": 280,
        "num_annotators": 7,
        "test_size": 1400,
    },
    notes=(
        f"{NOTES} Drawn from the 7,000 labelled rows (training and validation), 3,500 of either"
        " class."
    ),
)


@register_dataset(
    "gisette_syn", summary="fours and nines, 10 to 1, 5,000 features, 7 simulated annotators (ICED; needs UCI's files in --data_dir)",  # noqa: E501
    simulated=True, options=PAIR_OPTIONS,
)  # fmt: skip
def load(
    data_dir: Path | None = None,
    seed: int = 0,
    *,
    majority: int = 1,
    minority: int = -1,
    ratio: float = 0.1,
    annotators: int = 7,
    low: float = 0.4,
    high: float = 0.9,
    rate: float = 1.0,
) -> CrowdDataset:
    """Draws Gisette-Syn from the seed; see `data.imbalanced.imbalanced_pair` for the options.
    Classes are 1 and -1.
    """
    features, labels = read(data_dir)
    crowd = Crowd(annotators, low, high, rate)
    return imbalanced_pair(
        "gisette_syn",
        features,
        labels,
        seed=seed,
        card=CARD,
        majority=majority,
        minority=minority,
        ratio=ratio,
        crowd=crowd,
    )


def read(data_dir: Path | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Returns features `[M, 5000]` and labels `[M]` (1 and -1) of training and validation rows."""
    if data_dir is None:
        locate("gisette", ["gisette_train.data"], None)
    features, labels = [], []
    for part in PARTS:
        rows_path, labels_path = (
            _find(Path(str(data_dir)), f"gisette_{part}.{kind}") for kind in ("data", "labels")
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


def _find(data_dir: Path, name: str) -> Path:
    folders = [root / place for root in (data_dir / "gisette", data_dir) for place in PLACES]
    found = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if found is None:
        raise DataError(
            f"{data_dir}: expected the file gisette/{name} (UCI 170, unpacked), received a folder"
            " without it"
        )
    return found
