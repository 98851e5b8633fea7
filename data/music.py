"""Music genres (Rodrigues, Pereira and Ribeiro, 2013): songs of ten genres, 44 annotators.

The annotators are of Amazon Mechanical Turk.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.annotations import Annotations, encode_labels
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.declare.types import Fields, Floats32

from . import catalogue
from .arrays import checked_features
from .download import locate
from .tables import read_csv

FEATURES = [f"feature{number}" for number in range(124)]

SOURCE = catalogue.source("music")


@catalogue.register("music")
def load(data_dir: Path | None = None, seed: int = 0) -> CrowdDataset:
    """Loads the published split; `seed` changes nothing. There is no validation split.

    Raises:
        DataError: files that are missing or not of the published layout.
    """
    folder = locate("music", list(SOURCE.files), data_dir, SOURCE)
    train_path = folder / "music_genre_gold.csv"
    test_path = folder / "music_genre_test.csv"
    names, features, labels = _read_songs(train_path)
    test_names, test_features, test_labels = _read_songs(test_path)
    classes = np.array(sorted(set(labels)), dtype=object)
    test_codes = encode_labels(test_labels, classes, str(test_path))
    columns: Fields = {"task": "id", "worker": "annotator", "label": "class"}
    answers = read_csv(folder / "music_genre_mturk.csv", [*columns.values()])
    annotations = Annotations.from_frame(
        answers, **columns, instance_names=names, class_names=classes
    )
    train = Split(features, encode_labels(labels, classes, str(train_path)), names)
    test = Split(test_features, test_codes, test_names)
    return catalogue.dataset("music", train, annotations, test)


def _read_songs(path: Path) -> tuple[NDArray[np.object_], Floats32, list[str]]:
    """Returns the songs' ids, features and genres."""
    frame = read_csv(path, ["id", *FEATURES, "class"])
    features = checked_features(frame[FEATURES], path)
    return frame["id"].to_numpy(dtype=object), features, frame["class"].tolist()
