"""Stratified cross-validation over the annotated rows of a dataset, without duplicates."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from neucrowd_tf.annotations import Annotations, as_name_array
from neucrowd_tf.annotations.votes import majority_labels
from neucrowd_tf.datasets import UNKNOWN, CrowdDataset, Split
from neucrowd_tf.declare.types import Array, Indices
from neucrowd_tf.errors import DataError, UsageError, warn
from neucrowd_tf.training.folds import stratified_folds

VALIDATION = 0.2  # share of the annotated rows outside the test fold


def first_of_each(features: Array) -> NDArray[np.intp]:
    """Returns the positions of the rows (or texts) that equal no earlier row, in order."""
    if features.ndim == 1:
        keys = features.tolist()
    else:  # -0.0 becomes 0.0, its equal
        rows = np.ascontiguousarray(features.reshape(len(features), -1)) + 0
        keys = [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in rows]
    return np.flatnonzero(~pd.Series(keys, dtype=object).duplicated().to_numpy())


def concatenate(parts: Sequence[Annotations]) -> Annotations:
    """Concatenates annotations of different instances; annotators are matched by name.

    Raises:
        DataError: other classes, or an instance in two of them.
        IdentitiesError: vote counts beside labels with identities.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    classes = first.class_names.tolist()
    instances: list[Hashable] = []
    annotators: dict[Hashable, None] = {}
    for crowd in parts:
        if crowd.class_names.tolist() != classes:
            raise DataError(
                f"cross-validation: expected the classes {classes}, received"
                f" {crowd.class_names.tolist()}"
            )
        instances += crowd.instance_names.tolist()
        annotators |= dict.fromkeys(crowd.annotator_names.tolist())
    names = as_name_array(instances)
    if len(set(instances)) != len(names):
        raise DataError("cross-validation: expected each task in one part only")
    if not first.has_identities:
        votes = np.vstack(list(map(Annotations.vote_counts, parts)))
        return Annotations.from_votes(votes, instance_names=names, class_names=first.class_names)
    table = pd.concat(map(Annotations.to_frame, parts))
    return Annotations.from_arrays(
        *map(table.__getitem__, table),
        instance_names=names,
        annotator_names=list(annotators),
        class_names=first.class_names,
        duplicates="all",  # those that each part may have
    )


def annotated_parts(dataset: CrowdDataset) -> list[Split]:
    """Returns those of the validation and the test split that have annotations."""
    splits = []
    for split in (dataset.validation, dataset.test):
        if split is not None and split.annotations is not None:
            splits.append(split)
    return splits


def whole_crowd(dataset: CrowdDataset) -> Annotations:
    """Returns the annotations of the training rows, then those of the other splits."""
    crowds = [dataset.annotations]
    for split in annotated_parts(dataset):
        if split.annotations is not None:
            crowds.append(split.annotations)
    return concatenate(crowds)


def whole_truth(dataset: CrowdDataset) -> Indices | None:
    """Returns the true class codes of `whole_crowd`'s rows, -1 if unknown.

    None if the dataset has no truth of training rows.
    """
    if dataset.truth is None:
        return None
    labels = [dataset.truth]
    for split in annotated_parts(dataset):
        is_truth = dataset.test_is_truth
        if split is dataset.validation:
            is_truth = dataset.validation_is_truth
        labels.append(np.where(is_truth, split.labels, UNKNOWN))
    return np.concatenate(labels).astype(np.int64)


def _test_rows(labels: Indices, folds: int, seed: int) -> list[NDArray[np.intp]]:
    """Returns the test rows of each fold, stratified by label."""
    labelled = np.flatnonzero(labels != UNKNOWN)
    rows = np.bincount(labels[labelled]).max(initial=0)
    if rows < folds:
        raise DataError(
            f"cross-validation: expected a class with a row for each of {folds} folds, received at"
            f" most {rows} of one class"
        )
    return [labelled[test] for test in stratified_folds(labels[labelled], folds, seed)]


def _hold_out(votes: Indices, rows: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """Returns `VALIDATION` of the annotated `rows`, stratified by their votes.

    At least one row of each class stays in training.
    """
    chosen = [rows[:0]]
    for code in np.unique(votes[rows[votes[rows] != UNKNOWN]]):
        of_class = rows[votes[rows] == code]
        size = min(round(VALIDATION * len(of_class)), len(of_class) - 1)
        chosen.append(rng.permutation(of_class)[:size])
    return np.sort(np.concatenate(chosen))


def fold_dataset(
    dataset: CrowdDataset,
    *,
    repeat: int,
    fold: int,
    folds: int = 5,
    seed: int = 0,
    hold_out: bool = True,
) -> CrowdDataset:
    """Returns one fold of repeated stratified cross-validation as a dataset.

    The training rows and those of validation and test that have annotations are pooled. Of several
    rows with the same features only the first is used, and a warning counts the others. Test rows
    are scored against the truth if the dataset has one, else against majority votes; rows with
    neither are only trained on. A fifth of the remaining annotated rows is for validation: their
    labels are majority votes, even if their truth is available, and their annotations leave the
    training set, so test labels never enter a choice. The same arguments always give the same fold.

    Args:
        dataset: to split.
        repeat: from 0; each repeat shuffles the rows differently.
        fold: from 0 to `folds - 1`, the test rows.
        folds: number of parts.
        seed: of all draws.
        hold_out: whether there are validation rows; otherwise they are trained on.

    Raises:
        UsageError: numbers out of range.
        DataError: fewer rows than folds.
    """
    if folds < 2 or not 0 <= fold < folds or repeat < 0:
        raise UsageError(
            "expected at least 2 folds, a fold from 0 to folds - 1 and a repeat from 0, received"
            f" folds={folds}, fold={fold}, repeat={repeat}"
        )
    further = [split.features for split in annotated_parts(dataset)]
    features = np.concatenate([dataset.features, *further])
    crowd = whole_crowd(dataset)
    votes = np.where(crowd.annotated, majority_labels(crowd.vote_counts(), "random", seed), UNKNOWN)
    truth = whole_truth(dataset)
    distinct = first_of_each(features)
    if left_out := len(features) - len(distinct):
        warn(
            f"cross-validation: {left_out:,} of {len(features):,} items have the features of an"
            " earlier item and are left out, with their labels",
            stacklevel=2,
        )
    features = features[distinct]
    crowd = crowd[distinct]
    votes = votes[distinct]
    labels = votes if truth is None else truth[distinct]
    shuffle = int(np.random.default_rng([seed, repeat, 1]).integers(2**31))
    test = _test_rows(labels, folds, shuffle)[fold]
    outside = np.setdiff1d(np.arange(len(labels)), test)
    validation = outside[:0]
    if hold_out:
        rng = np.random.default_rng([seed, repeat, fold, 2])
        validation = _hold_out(votes, outside, rng)
    train = np.setdiff1d(outside, validation)

    def split(rows: NDArray[np.intp], codes: Indices) -> Split:
        return Split(features[rows], codes[rows], crowd[rows].instance_names, crowd[rows])

    return dataset.replace(
        features=features[train],
        annotations=crowd[train],
        truth=None if truth is None else labels[train],
        validation=split(validation, votes) if len(validation) else None,
        test=split(test, labels),
        validation_is_truth=False,
        test_is_truth=truth is not None,
    )
