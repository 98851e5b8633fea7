"""Music genres (Rodrigues, Pereira and Ribeiro, 2013): songs of ten genres, 44 annotators.

The annotators are of Amazon Mechanical Turk.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from data import catalogue
from data.download import locate
from data.tables import read_csv
from neucrowd_tf.annotations import Annotations, encode_labels
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.errors import DataError
from neucrowd_tf.registry import register_dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEATURES = [f"feature{number}" for number in range(124)]

SOURCE = catalogue.source("music")
CARD = catalogue.card("music")


@register_dataset(
    "music", summary="700 songs of 10 genres, 124 features, 44 annotators, 4.2 labels a song"
)
def load(data_dir: Path | None = None, seed: int = 0) -> CrowdDataset:
    """Loads the published split; `seed` changes nothing. There is no validation split.

    Raises:
        DataError: files that are missing or not of the published layout.
    """
    folder = locate("music", list(SOURCE.files), data_dir, SOURCE)
    names, features, labels = _read_songs(folder / "music_genre_gold.csv")
    classes = np.array(sorted(set(labels)), dtype=object)
    path = folder / "music_genre_mturk.csv"
    answers = read_csv(path, columns := ["id", "annotator", "class"])[columns]
    annotations = Annotations.from_frame(
        answers,
        task="id",
        worker="annotator",
        label="class",
        instance_names=names,
        class_names=classes,
    )
    path = folder / "music_genre_test.csv"
    test_names, test_features, test_labels = _read_songs(path)
    return CrowdDataset(
        name="music",
        features=features,
        annotations=annotations,
        truth=encode_labels(labels, classes, str(folder / "music_genre_gold.csv")),
        test=Split(test_features, encode_labels(test_labels, classes, str(path)), test_names),
        card=CARD,
    )


def _read_songs(path: Path) -> tuple[NDArray[np.object_], NDArray[np.float32], list[str]]:
    """Returns the songs' ids, features and genres."""
    frame = read_csv(path, ["id", *FEATURES, "class"])
    twice = frame["id"].duplicated()
    if twice.any():
        row = int(np.flatnonzero(twice.to_numpy())[0])
        raise DataError(
            f"{path}: row {row}, column 'id': expected each song once, received"
            f" {frame['id'].iloc[row]!r} again"
        )
    features = frame[FEATURES].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float32)
    if not np.isfinite(features).all():
        row, column = np.argwhere(~np.isfinite(features))[0]
        raise DataError(
            f"{path}: row {row}, column {FEATURES[column]!r}: expected a number, received"
            f" {frame[FEATURES[column]].iloc[row]!r}"
        )
    return frame["id"].to_numpy(dtype=object), features, frame["class"].tolist()
