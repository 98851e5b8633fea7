"""CIFAR-10H (Peterson et al., 2019): CIFAR-10's test images with 2,571 annotators.

It has the subsets of CrowdInG and DASC.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.declare.declarations import whole
from neucrowd_tf.declare.types import Indices

from . import catalogue
from .arrays import check_each
from .cifar import CLASS_NAMES, as_features, first_of_each, long_tail, read_batch
from .download import locate
from .tables import read_csv

WORKER = "annotator_id"
TASK = "cifar10_test_test_idx"
CHOSEN = "chosen_label"
TRUE = "true_label"
CHECK = "is_attn_check"
COLUMNS = [WORKER, TASK, CHOSEN, TRUE, CHECK]
TEST_PER_CLASS = 100
RATIO = 5.0


@catalogue.register("cifar10h", options=("annotators",))
def load(data_dir: Path | None = None, seed: int = 0, *, annotators: int = 103) -> CrowdDataset:
    """Loads CrowdInG's subset of CIFAR-10H; `seed` changes nothing.

    Args:
        data_dir: a folder with `cifar10h/` that holds `cifar10h-raw.csv` and CIFAR-10's
            `test_batch.bin`; or that folder.
        seed: not used.
        annotators: how many annotators of lowest accuracy to take.

    Raises:
        DataError: files that are missing or not of the published layout.
    """
    images, truth, answers = _read(data_dir, annotators)
    train = np.unique(answers[TASK])
    test = np.setdiff1d(np.arange(len(truth)), train)
    return _dataset("cifar10h", images, truth, answers, train, test)


@catalogue.register("cifar10h_lt", options=("annotators",))
def load_long_tailed(
    data_dir: Path | None = None, seed: int = 0, *, annotators: int = 49
) -> CrowdDataset:
    """Loads DASC's subset, fewer annotators and a long tail; arguments as for `load`."""
    images, truth, answers = _read(data_dir, annotators)
    test = first_of_each(truth, [TEST_PER_CLASS] * len(CLASS_NAMES))
    train = np.setdiff1d(answers[TASK], test)
    train = train[long_tail(truth[train], RATIO)]
    return _dataset("cifar10h_lt", images, truth, answers, train, test)


def _dataset(
    name: str,
    images: NDArray[np.uint8],
    truth: Indices,
    answers: pd.DataFrame,
    train: Indices,
    test: Indices,
) -> CrowdDataset:
    """Returns a dataset of the images with these numbers."""
    answers = answers[answers[TASK].isin(train)]
    crowd = Annotations.from_arrays(
        answers[TASK],
        answers[WORKER],
        CLASS_NAMES[answers[CHOSEN]],
        instance_names=train,
        class_names=CLASS_NAMES,
        duplicates="first",
    )
    training = Split(as_features(images[train]), truth[train], train)
    held_out = Split(as_features(images[test]), truth[test], test)
    return catalogue.dataset(name, training, crowd, held_out)


def _read(
    data_dir: Path | None, annotators: int
) -> tuple[NDArray[np.uint8], Indices, pd.DataFrame]:
    """Returns all images, their classes, and the labels of the least accurate annotators.

    Attention checks are left out.
    """
    whole(1).check("annotators", annotators)
    folder = locate("cifar10h", ["test_batch.bin", "cifar10h-raw.csv"], data_dir)
    images, truth = read_batch(folder / "test_batch.bin")
    path = folder / "cifar10h-raw.csv"
    frame = read_csv(path, COLUMNS, dtype=dict.fromkeys(COLUMNS, np.int64))
    frame = frame[(frame[CHECK] != 1) & (frame[TASK] >= 0)]
    check_each(path, frame[TASK], frame[TASK] < len(truth), "the number of an image")
    possible = frame[CHOSEN].between(0, len(CLASS_NAMES) - 1)
    check_each(path, frame[CHOSEN], possible, f"a class code as {CHOSEN}")
    right = frame[TRUE] == truth[frame[TASK]]
    check_each(path, frame[TRUE], right, f"the image's class as {TRUE}")
    return images, truth, frame[frame[WORKER].isin(_least_accurate(frame, annotators))]


def _least_accurate(answers: pd.DataFrame, number: int) -> Indices:
    """Returns the ids of the annotators of lowest accuracy, the lower id first if equal.

    Deviation: the papers say "low-quality" annotators, not how they were chosen.
    """
    accuracy = (answers[CHOSEN] == answers[TRUE]).groupby(answers[WORKER]).mean()
    return accuracy.sort_index().sort_values(kind="stable").index[:number].to_numpy()
