"""CIFAR-10H (Peterson et al., 2019): CIFAR-10's test images with 2,571 annotators.

It has the subsets of CrowdInG and DASC.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from data import catalogue
from data.cifar import CLASS_NAMES, as_features, class_name_array, long_tail, read_batch
from data.download import find
from data.tables import read_csv
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.registry import register_dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

RAW = "cifar10h-raw.csv"
IMAGES = "test_batch.bin"
PLACES = ("", "cifar-10-batches-bin")
COLUMNS = "annotator_id cifar10_test_test_idx chosen_label true_label is_attn_check"
WORKER, TASK, CHOSEN, TRUE, CHECK = COLUMNS.split()
SUBSETS = ("crowding", "dasc", "all")
ANNOTATORS = {"crowding": 103, "dasc": 49}
TEST_PER_CLASS = 100
RATIO = 5.0


@register_dataset(
    "cifar10h",
    summary="CIFAR-10 test images, the 103 annotators of lowest accuracy (CrowdInG; --data_dir"
    " only)",
    options=("subset", "annotators"),
)
def load(
    data_dir: Path | None = None,
    seed: int = 0,
    *,
    subset: str = "crowding",
    annotators: int | None = None,
) -> CrowdDataset:
    """Loads a subset of CIFAR-10H; `seed` changes nothing.

    Args:
        data_dir: a folder with `cifar10h/` that holds `cifar10h-raw.csv` and CIFAR-10's
            `test_batch.bin` (also in a folder `cifar-10-batches-bin/`); or that folder.
        seed: not used.
        subset: "crowding" (annotators of low accuracy), "dasc" (fewer of them, long-tailed) or
            "all".
        annotators: how many annotators of lowest accuracy to take instead of the paper's number;
            not for "all".

    Raises:
        UsageError: an unknown subset.
        DataError: files that are missing or not of the published layout, or no image left for
            training or test.
    """
    if subset not in SUBSETS or (annotators is not None and (annotators < 1 or subset == "all")):
        raise UsageError(
            f"cifar10h: expected a subset of {', '.join(SUBSETS)} and annotators of 1 or more,"
            f" received {subset!r} and {annotators}"
        )
    images, truth = read_batch(find("cifar10h", IMAGES, data_dir, PLACES))
    answers = _read_answers(find("cifar10h", RAW, data_dir, PLACES), truth)
    if subset != "all":
        answers = answers[
            answers[WORKER].isin(_least_accurate(answers, annotators or ANNOTATORS[subset]))
        ]
    if subset == "crowding":
        test = np.setdiff1d(np.arange(len(truth)), answers[TASK].unique())
    else:
        test = np.sort(
            np.concatenate(
                [np.flatnonzero(truth == code)[:TEST_PER_CLASS] for code in range(len(CLASS_NAMES))]
            )
        )
    train = np.setdiff1d(answers[TASK].unique(), test)
    if subset == "dasc" and len(train):
        train = train[long_tail(truth[train], RATIO)]
    if not len(train) or not len(test):
        raise DataError(
            f"cifar10h: expected images for training and test, received {len(train)} and"
            f" {len(test)}"
        )
    answers = answers[answers[TASK].isin(train)]
    classes = class_name_array()
    crowd = Annotations.from_arrays(
        answers[TASK],
        answers[WORKER],
        classes[answers[CHOSEN]],
        instance_names=train,
        class_names=classes,
        duplicates="first",
    )
    return CrowdDataset(
        name="cifar10h",
        features=as_features(images[train]),
        annotations=crowd,
        truth=truth[train],
        test=Split(as_features(images[test]), truth[test], test),
        card=catalogue.card(f"cifar10h_{subset}"),
    )


@register_dataset(
    "cifar10h_lt",
    summary="CIFAR-10 test images, 49 annotators, long-tailed 5 to 1 (DASC; --data_dir only)",
    options=("annotators",),
)
def load_long_tailed(
    data_dir: Path | None = None, seed: int = 0, *, annotators: int | None = None
) -> CrowdDataset:
    """Loads DASC's subset; see `load`."""
    return dataclasses.replace(
        load(data_dir, seed, subset="dasc", annotators=annotators), name="cifar10h_lt"
    )


def _read_answers(path: Path, truth: NDArray[np.int64]) -> pd.DataFrame:
    """Returns the labels without attention checks, checked against the images."""
    columns = [WORKER, TASK, CHOSEN, TRUE, CHECK]
    frame = read_csv(path, columns, dtype=str)[columns].apply(pd.to_numeric, errors="coerce")
    frame = frame[(frame[CHECK] != 1) & (frame[TASK] >= 0)]
    bad = np.flatnonzero(
        (
            frame.isna().any(axis=1)
            | (frame[TASK] >= len(truth))
            | ~frame[CHOSEN].between(0, len(CLASS_NAMES) - 1)
        ).to_numpy()
    )
    if len(bad):
        row = frame.iloc[bad[0]]
        raise DataError(
            f"{path}: row {frame.index[bad[0]]}: expected an image from 0 to {len(truth) - 1} and a"
            f" label from 0 to {len(CLASS_NAMES) - 1}, received {TASK} {row[TASK]:g} and {CHOSEN}"
            f" {row[CHOSEN]:g}"
        )
    frame = frame.astype(np.int64)
    other = np.flatnonzero(frame[TRUE].to_numpy() != truth[frame[TASK].to_numpy()])
    if len(other):
        row = frame.iloc[other[0]]
        raise DataError(
            f"{path}: row {frame.index[other[0]]}: expected the image's class {truth[row[TASK]]} as"
            f" {TRUE}, received {row[TRUE]}"
        )
    return frame


def _least_accurate(answers: pd.DataFrame, number: int) -> NDArray[np.int64]:
    """Returns the ids of the annotators of lowest accuracy, the lower id first if equal.

    Deviation: the papers say "low-quality" annotators, not how they were chosen.
    """
    accuracy = (answers[CHOSEN] == answers[TRUE]).groupby(answers[WORKER]).mean()
    return accuracy.sort_index().sort_values(kind="stable").index[:number].to_numpy()
