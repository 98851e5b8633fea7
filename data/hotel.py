"""Hotel reviews (NeuCrowd, section 4.1): 300 features, votes of seven annotators.

The annotators' identities are not published.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from data import catalogue
from data.arrays import check_each
from data.download import locate
from data.tables import read_csv
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.registry import register_dataset
from neucrowd_tf.training.estimator import check_features

ANNOTATORS = 7
LABEL, VOTES = "mv_fluency", "votes"

SOURCE = catalogue.source("hotel")


@register_dataset(
    "hotel",
    summary="447 hotel reviews, positive or negative, with the votes of 7 annotators (no"
    " identities)",
)
def load(data_dir: Path | None = None, seed: int = 0) -> CrowdDataset:
    """Loads the published split; `seed` changes nothing.

    Raises:
        DataError: files that are missing or not of the published layout.
    """
    folder = locate("hotel", list(SOURCE.files), data_dir, SOURCE)
    (crowd, train), (_, validation), (_, test) = (_read(folder / name) for name in SOURCE.files)
    return CrowdDataset(
        name="hotel",
        features=train.features,
        annotations=crowd,
        validation=validation,
        test=test,
        card=catalogue.card("hotel"),
        validation_is_truth=False,
        test_is_truth=False,
    )


def _read(path: Path) -> tuple[Annotations, Split]:
    """Returns the votes, and the features with the majority labels.

    A file has the label, the number of positive votes, then the features.
    """
    frame = read_csv(path, [LABEL, VOTES])
    positive, labels = frame[VOTES].to_numpy(), frame[LABEL].to_numpy()
    features = check_features(frame.drop(columns=[LABEL, VOTES]), str(path))
    possible = np.isin(positive, np.arange(ANNOTATORS + 1))
    check_each(path, positive, possible, f"0 to {ANNOTATORS} {VOTES}")
    majority = 2 * positive > ANNOTATORS
    check_each(path, labels, labels == majority, f"the majority of the {VOTES} as {LABEL}")
    votes = np.stack([ANNOTATORS - positive, positive], axis=1).astype(np.int64)
    names = np.array([f"{path.stem}-{row}" for row in range(len(frame))], dtype=object)
    crowd = Annotations.from_votes(votes, instance_names=names, class_names=[0, 1])
    return crowd, Split(features, labels.astype(np.int64), names, crowd)
