"""NeuCrowd's data sets in the authors' layout: Hotel, and their own files of Syn1 (section 4.1).

A file has a majority label, the number of positive votes of seven annotators, whose identities are
not published, and the features; the files of Syn1 have the true labels too.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.declare.types import Indices

from . import catalogue
from .arrays import check_each, checked_features, row_names
from .download import locate
from .tables import read_csv

ANNOTATORS = 7
VOTES = "votes"
FILES = ("train.csv", "valid.csv", "test.csv")


def _load(
    name: str, label: str, truth: str, data_dir: Path | None = None, seed: int = 0
) -> CrowdDataset:
    """Loads a published split; `seed` changes nothing.

    Validation labels are majority votes; test labels are too if the files have no true labels.

    Raises:
        DataError: files that are missing or not of the published layout.
    """
    folder = locate(name, FILES, data_dir, None if truth else catalogue.source(name))
    (crowd, train, true), (_, validation, _), (_, test, test_true) = (
        _read(folder / file, label, truth) for file in FILES
    )
    return CrowdDataset(
        name=name,
        features=train.features,
        annotations=crowd,
        truth=true if truth else None,
        validation=validation,
        test=dataclasses.replace(test, labels=test_true),
        card=catalogue.card(name),
        validation_is_truth=False,
        test_is_truth=bool(truth),
    )


def _read(path: Path, label: str, truth: str = "") -> tuple[Annotations, Split, Indices]:
    """Returns the votes, the features with the majority labels, and the column `truth`."""
    columns = [label, VOTES, *([truth] if truth else [])]
    frame = read_csv(path, columns)
    positive = frame[VOTES].to_numpy()
    labels = frame[label].to_numpy()
    true = frame[truth or label].to_numpy()
    features = checked_features(frame.drop(columns=columns), path)
    possible = np.isin(positive, np.arange(ANNOTATORS + 1))
    check_each(path, positive, possible, f"0 to {ANNOTATORS} {VOTES}")
    majority = 2 * positive > ANNOTATORS
    check_each(path, labels, labels == majority, f"the majority of the {VOTES} as {label}")
    check_each(path, true, np.isin(true, (0, 1)), f"0 or 1 as {truth or label}")
    votes = np.stack([ANNOTATORS - positive, positive], axis=1).astype(np.int64)
    names = row_names(path.stem, len(frame))
    crowd = Annotations.from_votes(votes, instance_names=names, class_names=[0, 1])
    split = Split(features, labels.astype(np.int64), names, crowd)
    return crowd, split, true.astype(np.int64)


load = functools.partial(_load, "hotel", "mv_fluency", "")
catalogue.register("hotel", module=__name__)(load)
catalogue.register("neucrowd_syn", module=__name__)(
    functools.partial(_load, "neucrowd_syn", "label", "ground_truth")
)
