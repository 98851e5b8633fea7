"""USPS-Syn (ICED, section 3.1.1): two of the USPS digits, imbalanced, with nine simulated
annotators; and all ten, long-tailed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from data.download import Source, locate
from data.imbalanced import NOTES, PAIR_OPTIONS, Crowd, imbalanced_pair, long_tailed
from neucrowd_tf.datasets import Card, CrowdDataset
from neucrowd_tf.errors import DataError
from neucrowd_tf.registry import register_dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

ANNOTATORS = 9
SIDE = 16  # images are 16 x 16

SOURCE = Source(
    "niuers/Learning-From-Data-A-Short-Course",
    "879a698b960e5867f7c2b11f8938fa89c3d21839",
    "data",
    {"usps.h5": "734f88c541104a956d88be2c95d03b4a463ffd74ccc2ba9c80841fb98e3fcb36"},
)

_CITATION = "Hull: A database for handwritten text recognition research, TPAMI 1994"

CARD = Card(
    title="USPS-Syn",
    source="https://github.com/niuers/Learning-From-Data-A-Short-Course (data/usps.h5)",
    licence="none stated",
    citation=_CITATION,
    paper={
        "num_features": 256,
        "train_size": 734,
        "majority_size": 668,
        "minority_size": 66,
        "num_annotators": 9,
        "test_size": 332,
    },
    notes=(
        f"{NOTES} Digit 6 (834 rows, which gives the paper's sizes) against digit 2; the paper does"
        " not say which digits it took."
    ),
)


@register_dataset(
    "usps_syn",
    summary="USPS digits 6 and 2, 10 to 1, 256 features, 9 simulated annotators (ICED)",
    simulated=True,
    options=PAIR_OPTIONS,
)
def load(
    data_dir: Path | None = None,
    seed: int = 0,
    *,
    majority: int = 6,
    minority: int = 2,
    ratio: float = 0.1,
    annotators: int = ANNOTATORS,
    low: float = 0.4,
    high: float = 0.9,
    rate: float = 1.0,
) -> CrowdDataset:
    """Draws USPS-Syn from the seed; see `data.imbalanced.imbalanced_pair` for the options."""
    features, labels = read(data_dir)
    crowd = Crowd(annotators, low, high, rate)
    return imbalanced_pair(
        "usps_syn",
        features,
        labels,
        seed=seed,
        card=CARD,
        majority=majority,
        minority=minority,
        ratio=ratio,
        crowd=crowd,
    )


@register_dataset(
    "usps_lt",
    summary="all ten USPS digits, long-tailed 10 to 1, 256 features, 9 simulated annotators",
    simulated=True,
    options=("ratio", "annotators", "low", "high", "rate"),
)
def load_long_tailed(
    data_dir: Path | None = None,
    seed: int = 0,
    *,
    ratio: float = 10.0,
    annotators: int = ANNOTATORS,
    low: float = 0.4,
    high: float = 0.9,
    rate: float = 1.0,
) -> CrowdDataset:
    """Draws a long-tailed ten-class set from the seed; see `data.imbalanced.long_tailed` for the
    options.
    """
    features, labels = read(data_dir)
    card = Card(
        "USPS, long-tailed",
        CARD.source,
        CARD.licence,
        _CITATION,
        notes="Ours, for methods of C classes. " + NOTES.split(". ")[0] + ".",
    )
    crowd = Crowd(annotators, low, high, rate)
    return long_tailed("usps_lt", features, labels, seed=seed, card=card, ratio=ratio, crowd=crowd)


def read(data_dir: Path | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Returns all 9,298 digits: features `[M, 256]` and labels `[M]`, training rows before test
    rows.
    """
    import h5py

    path = locate("usps", list(SOURCE.files), data_dir, SOURCE) / "usps.h5"
    try:
        with h5py.File(path) as stream:
            parts: list[Any] = [
                (np.asarray(stream[f"{part}/data"]), np.asarray(stream[f"{part}/target"]))
                for part in ("train", "test")
            ]
    except (OSError, KeyError) as error:
        raise DataError(
            f"{path}: expected HDF5 with train/data, train/target, test/data and test/target,"
            f" received {error}"
        ) from None
    features = np.concatenate([data for data, _ in parts]).astype(np.float32)
    labels = np.concatenate([target for _, target in parts]).astype(np.int64)
    if features.shape != (len(labels), SIDE * SIDE) or not np.isfinite(features).all():
        raise DataError(
            f"{path}: expected {SIDE * SIDE} finite features for each of {len(labels)} labels,"
            f" received shape {features.shape}"
        )
    return features, labels
