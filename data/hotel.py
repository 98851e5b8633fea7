"""NeuCrowd's data sets in the authors' layout: Hotel, and their own files of Syn1 (section 4.1).

A file has a majority label, the number of positive votes of seven annotators, whose identities are
not published, and the features; the files of Syn1 have the true labels too.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data import catalogue
from data.arrays import check_each, checked_features
from data.download import locate
from data.tables import read_csv
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.registry import register_dataset

ANNOTATORS = 7
VOTES, TRUTH = "votes", "ground_truth"
FILES = ("train.csv", "valid.csv", "test.csv")

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
    folder = locate("hotel", FILES, data_dir, SOURCE)
    (crowd, train, _), (_, validation, _), (_, test, _) = (
        _read(folder / name, "mv_fluency") for name in FILES
    )
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


@register_dataset(
    "neucrowd_syn",
    summary="the authors' files of Syn1, where --data_dir has them: votes of 7 annotators, no"
    " identities",
)
def load_syn(data_dir: Path | None = None, seed: int = 0) -> CrowdDataset:
    """Loads the authors' split of Syn1; `seed` changes nothing.

    Test labels are the truth, validation labels majority votes.

    Raises:
        DataError: files that are missing or not of the published layout.
    """
    folder = locate("neucrowd_syn", FILES, data_dir)
    (crowd, train, truth), (_, validation, _), (_, test, test_truth) = (
        _read(folder / name, "label", TRUTH) for name in FILES
    )
    return CrowdDataset(
        name="neucrowd_syn",
        features=train.features,
        annotations=crowd,
        truth=truth,
        validation=validation,
        test=dataclasses.replace(test, labels=test_truth),
        card=catalogue.card("neucrowd_syn"),
        validation_is_truth=False,
    )


def _read(path: Path, label: str, truth: str = "") -> tuple[Annotations, Split, NDArray[np.int64]]:
    """Returns the votes, the features with the majority labels, and the column `truth`."""
    columns = [label, VOTES, *([truth] if truth else [])]
    frame = read_csv(path, columns)
    positive, labels = frame[VOTES].to_numpy(), frame[label].to_numpy()
    true = frame[truth or label].to_numpy()
    features = checked_features(frame.drop(columns=columns), path)
    possible = np.isin(positive, np.arange(ANNOTATORS + 1))
    check_each(path, positive, possible, f"0 to {ANNOTATORS} {VOTES}")
    majority = 2 * positive > ANNOTATORS
    check_each(path, labels, labels == majority, f"the majority of the {VOTES} as {label}")
    check_each(path, true, np.isin(true, (0, 1)), f"0 or 1 as {truth or label}")
    votes = np.stack([ANNOTATORS - positive, positive], axis=1).astype(np.int64)
    names = np.array([f"{path.stem}-{row}" for row in range(len(frame))], dtype=object)
    crowd = Annotations.from_votes(votes, instance_names=names, class_names=[0, 1])
    split = Split(features, labels.astype(np.int64), names, crowd)
    return crowd, split, true.astype(np.int64)
