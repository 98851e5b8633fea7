"""GSAD-Syn (ICED, section 3.1.1): two gases of the Gas Sensor Array Drift data, imbalanced, with
eleven simulated annotators.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_svmlight_file

from data.download import Source, locate
from data.imbalanced import NOTES, PAIR_OPTIONS, Crowd, imbalanced_pair
from neucrowd_tf.datasets import Card, CrowdDataset
from neucrowd_tf.errors import DataError
from neucrowd_tf.registry import register_dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEATURES = 128
BATCHES = 10

SOURCE = Source(
    "Alan5279/Online-Sensor-Drift-Compensation-Matlab-Code",
    "1403124b1aad7d5091fb2a3c39b5d073807bc5ab",
    "Data",
    {
        "batch1.dat": "6b62f3e71b90f95dd9c2157fa91ffce32571faa7f474dd52f29a4ae769144625",
        "batch2.dat": "4ea9490068457badf9efd0c22f359fbfce12c208cdd440526b97ac91d31b9002",
        "batch3.dat": "aabf06bf8b8200740156235dc59458e06d99aa8faba4d6764a22c6b6c2674ff4",
        "batch4.dat": "ffc87c5146001bbe8ce90c4b2f7dad5b390ca3079f51b559032df53ffe5ff0af",
        "batch5.dat": "dcad4939c300a6c7d9f41b9470a9253eecc0ebc5c2c4e940d8ae20b8fc4240d0",
        "batch6.dat": "297d3a8b594dee4e2f4d7d2c4f5c485939fa708c10b5a11ed5cce95e05049afb",
        "batch8.dat": "58146b3e2dd68b125b2d5432cdd4968ec1fff47464ceb04282382181932d49be",
        "batch9.dat": "51f368ae8dee5d285be7f2029770e10eb12f342578830bc40ea852db19d19c9b",
    },
)

CARD = Card(
    title="GSAD-Syn",
    source=(
        "https://github.com/Alan5279/Online-Sensor-Drift-Compensation-Matlab-Code (Data), from"
        " UCI 270"
    ),
    licence="CC BY 4.0",
    citation=(
        "Vergara, Vembu, Ayhan, Ryan, Homer, Huerta: Chemical gas sensor drift compensation using"
        " classifier ensembles, Sensors and Actuators B 2012"
    ),
    paper={
        "num_features": 128,
        "train_size": 2575,
        "majority_size": 2341,
        "minority_size": 234,
        "num_annotators": 11,
        "test_size": 1170,
    },
    notes=(
        f"{NOTES} Gas 2 against gas 1; the paper does not say which gases it took. Gas 2 has 2,926"
        " rows in all ten batches, which gives the paper's sizes; without batches 7 and 10, which"
        " are not published with the others, it has 1,664 and the set is smaller."
    ),
)


@register_dataset(
    "gsad_syn", summary="gas sensor readings, gases 2 and 1, 10 to 1, 128 features, 11 simulated annotators (ICED)", simulated=True,  # noqa: E501
    options=PAIR_OPTIONS,
)  # fmt: skip
def load(
    data_dir: Path | None = None,
    seed: int = 0,
    *,
    majority: int = 2,
    minority: int = 1,
    ratio: float = 0.1,
    annotators: int = 11,
    low: float = 0.4,
    high: float = 0.9,
    rate: float = 1.0,
) -> CrowdDataset:
    """Draws GSAD-Syn from the seed; see `data.imbalanced.imbalanced_pair` for the options."""
    features, labels = read(data_dir)
    crowd = Crowd(annotators, low, high, rate)
    return imbalanced_pair(
        "gsad_syn",
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
    """Returns the features `[M, 128]` and gases `[M]` (1 to 6) of the published batches, and of 7
    and 10 where they lie beside them, in their order.
    """
    folder = locate("gsad", list(SOURCE.files), data_dir, SOURCE)
    batches = [folder / f"batch{number}.dat" for number in range(1, BATCHES + 1)]
    parts = [_read(path) for path in batches if path.is_file()]
    return np.concatenate([features for features, _ in parts]), np.concatenate(
        [labels for _, labels in parts]
    )


def _read(path: Path) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Reads lines `gas;concentration 1:value 2:value ...`, which are svmlight's once the
    concentration is gone.
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
    dense = features.toarray()
    if not len(dense) or not np.isfinite(dense).all():
        raise DataError(
            f"{path}: expected rows of finite numbers, received"
            f" {'none' if not len(dense) else 'NaN or infinity'}"
        )
    return dense, labels.astype(np.int64)
