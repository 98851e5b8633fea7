"""Hotel reviews (NeuCrowd, section 4.1): 300 features, votes of seven annotators.

The annotators' identities are not published.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from data import catalogue
from data.download import locate
from data.tables import read_csv
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.errors import DataError
from neucrowd_tf.registry import register_dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

ANNOTATORS = 7
LABEL, VOTES = "mv_fluency", "votes"

SOURCE = catalogue.source("hotel")
CARD = catalogue.card("hotel")


@register_dataset(
    "hotel",
    summary=(
        "447 hotel reviews, positive or negative, with the votes of 7 annotators (no identities)"
    ),
)
def load(data_dir: Path | None = None, seed: int = 0) -> CrowdDataset:
    """Loads the published split; `seed` changes nothing.

    Raises:
        DataError: files that are missing or not of the published layout.
    """
    folder = locate("hotel", list(SOURCE.files), data_dir, SOURCE)
    (features, annotations, _), *rest = (_read(folder / name) for name in SOURCE.files)
    validation, test = (
        Split(rows, labels, crowd.instance_names, crowd) for rows, crowd, labels in rest
    )
    return CrowdDataset(
        name="hotel",
        features=features,
        annotations=annotations,
        validation=validation,
        test=test,
        card=CARD,
        validation_is_truth=False,
        test_is_truth=False,
    )


def _read(path: Path) -> tuple[NDArray[np.float32], Annotations, NDArray[np.int64]]:
    """Returns features, votes and majority labels.

    A file has the label, the number of positive votes, then the features.
    """
    frame = read_csv(path, [LABEL, VOTES])
    positive = frame[VOTES].to_numpy()
    features = frame.drop(columns=[LABEL, VOTES]).to_numpy(dtype=np.float32)
    bad = np.flatnonzero(
        ~((positive >= 0) & (positive <= ANNOTATORS) & (positive == np.round(positive)))
    )
    if len(bad):
        raise DataError(
            f"{path}: row {bad[0]}, column {VOTES!r}: expected 0 to {ANNOTATORS} votes, received"
            f" {positive[bad[0]]}"
        )
    if not np.isfinite(features).all():
        row, column = np.argwhere(~np.isfinite(features))[0]
        raise DataError(
            f"{path}: row {row}, column {column!s}: expected a number, received"
            f" {features[row, column]}"
        )
    labels = frame[LABEL].to_numpy(dtype=np.int64)
    votes = np.stack([ANNOTATORS - positive, positive], axis=1).astype(np.int64)
    if (labels != (2 * positive > ANNOTATORS)).any():
        row = int(np.flatnonzero(labels != (2 * positive > ANNOTATORS))[0])
        raise DataError(
            f"{path}: row {row}, column {LABEL!r}: expected the majority of {int(positive[row])}"
            f" positive votes, received {labels[row]}"
        )
    names = np.array([f"{path.stem}-{row}" for row in range(len(frame))], dtype=object)
    return features, Annotations.from_votes(votes, instance_names=names, class_names=[0, 1]), labels
