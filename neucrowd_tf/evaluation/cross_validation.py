"""Repeated stratified cross-validation over the annotated rows of a dataset, pooled and without
duplicates.
"""

from __future__ import annotations

import dataclasses
import hashlib
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from neucrowd_tf.aggregation.majority_vote import majority_labels
from neucrowd_tf.annotations import Annotations, as_name_array
from neucrowd_tf.datasets import UNKNOWN, CrowdDataset, Split
from neucrowd_tf.errors import DataError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class Pool:
    """The rows that cross-validation splits.

    Attributes:
        features: `[N, ...]`.
        annotations: the crowd's labels of all N rows.
        labels: `[N]` class codes that a test part is scored against: the truth where the dataset
            has one, else the majority vote; -1 where there is neither, and such rows are only
            trained on.
        votes: `[N]` majority vote, the labels of validation parts; -1 without annotations.
        labels_are_truth: which of the two `labels` are.
        num_duplicates: how many rows were dropped because an earlier row has the same features.
    """

    features: NDArray[Any]
    annotations: Annotations
    labels: NDArray[np.int64]
    votes: NDArray[np.int64]
    labels_are_truth: bool
    num_duplicates: int


@dataclasses.dataclass(frozen=True)
class Fold:
    """One training and test part: `dataset.test` is the fold, `dataset.validation` is held out of
    the rest.
    """

    repeat: int
    fold: int
    dataset: CrowdDataset


def first_of_each(features: NDArray[Any]) -> NDArray[np.intp]:
    """Returns the positions of the rows of `features` (or texts) that no earlier row equals, in
    order.
    """
    if features.ndim == 1:
        keys = features.tolist()
    else:  # -0.0 becomes 0.0, its equal
        rows = np.ascontiguousarray(features.reshape(len(features), -1)) + 0
        keys = [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in rows]
    return np.flatnonzero(~pd.Series(keys, dtype=object).duplicated().to_numpy())


def concatenate(parts: Sequence[Annotations]) -> Annotations:
    """Puts annotations of different instances below each other; annotators are matched by name.

    Raises:
        DataError: other classes, an instance that stands in two parts, or vote counts beside labels
            with identities.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    for part in parts[1:]:
        if part.class_names.tolist() != first.class_names.tolist():
            raise DataError(
                f"cross-validation: expected the classes {first.class_names.tolist()}, received"
                f" {part.class_names.tolist()}"
            )
        if part.has_identities != first.has_identities:
            raise DataError(
                "cross-validation: expected annotator identities in all parts or in none"
            )
    names = as_name_array([name for part in parts for name in part.instance_names.tolist()])
    if len(set(names.tolist())) != len(names):
        raise DataError("cross-validation: expected each task in one part only")
    if not first.has_identities:
        return Annotations.from_votes(
            np.vstack([part.vote_counts() for part in parts]),
            instance_names=names,
            class_names=first.class_names,
        )
    people, annotators = pd.factorize(
        as_name_array([name for part in parts for name in part.annotator_names.tolist()])
    )
    rows = np.cumsum([0, *(part.num_instances for part in parts[:-1])])
    columns = np.cumsum([0, *(part.num_annotators for part in parts[:-1])])
    triples = [
        (part.instances + row, people[part.annotators + column], part.labels)
        for part, row, column in zip(parts, rows, columns, strict=True)
    ]
    return Annotations(
        *map(np.concatenate, zip(*triples, strict=True)),
        num_instances=len(names),
        instance_names=names,
        annotator_names=as_name_array(annotators.tolist()),
        class_names=first.class_names,
    )


def annotated_parts(dataset: CrowdDataset) -> list[Split]:
    """Returns the validation and the test split, as far as they have annotations."""
    return [
        split
        for split in (dataset.validation, dataset.test)
        if split is not None and split.annotations is not None
    ]


def whole_crowd(dataset: CrowdDataset) -> Annotations:
    """Returns the annotations of the training rows, then those of the splits that have any."""
    crowds = [split.annotations for split in annotated_parts(dataset)]
    return concatenate([dataset.annotations, *(crowd for crowd in crowds if crowd is not None)])


def all_annotated(dataset: CrowdDataset) -> tuple[NDArray[Any], Annotations]:
    """Returns the features of `whole_crowd`'s rows, and their annotations."""
    rest = [split.features for split in annotated_parts(dataset)]
    return np.concatenate([dataset.features, *rest]), whole_crowd(dataset)


def whole_truth(dataset: CrowdDataset) -> NDArray[np.int64] | None:
    """Returns the true class codes of `whole_crowd`'s rows, -1 where one is not known; None where
    no training row's is.
    """
    if dataset.truth is None:
        return None
    real = {
        id(dataset.validation): dataset.validation_is_truth,
        id(dataset.test): dataset.test_is_truth,
    }
    rest = [np.where(real[id(split)], split.labels, UNKNOWN) for split in annotated_parts(dataset)]
    return np.concatenate([dataset.truth, *rest]).astype(np.int64)


def pool(dataset: CrowdDataset, seed: int = 0) -> Pool:
    """Pools the training rows and those of validation and test that have annotations (hotel's), and
    drops duplicates.

    Splits without annotations are left out: nobody could learn from them as from a crowd. Of rows
    with the same features the first stays, in the order training, validation, test.

    Args:
        seed: for tied votes.
    """
    features, crowd = all_annotated(dataset)
    votes = np.where(crowd.annotated, majority_labels(crowd.vote_counts(), "random", seed), UNKNOWN)
    truth = whole_truth(dataset)
    labels = votes if truth is None else truth
    kept = first_of_each(features)
    return Pool(
        features[kept],
        crowd[kept],
        labels[kept],
        votes[kept],
        truth is not None,
        len(features) - len(kept),
    )


def _test_parts(
    labels: NDArray[np.int64], folds: int, seed: int, repeat: int
) -> list[NDArray[np.intp]]:
    """Returns the test rows of each fold, stratified by label."""
    known = np.flatnonzero(labels != UNKNOWN)
    splitter = StratifiedKFold(
        folds,
        shuffle=True,
        random_state=int(np.random.default_rng([seed, repeat, 1]).integers(2**31)),
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # a class with fewer members than folds is absent from some
            return [known[test] for _, test in splitter.split(known, labels[known])]
    except ValueError:
        rows = np.bincount(labels[known]).max(initial=0) if len(known) else 0
        raise DataError(
            f"cross-validation: expected a class with a row for each of {folds} folds, received at"
            f" most {rows} of one class"
        ) from None


def _hold_out(
    votes: NDArray[np.int64], rows: NDArray[np.intp], share: float, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Returns `share` of the annotated `rows`, stratified by their votes; one of each class at
    least stays in training.
    """
    chosen = []
    for code in np.unique(votes[rows]):
        mine = rows[votes[rows] == code]
        if code != UNKNOWN:
            chosen.append(rng.permutation(mine)[: min(round(share * len(mine)), len(mine) - 1)])
    return np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, dtype=np.intp)


def fold_dataset(
    dataset: CrowdDataset,
    *,
    repeat: int,
    fold: int,
    folds: int = 5,
    seed: int = 0,
    validation_share: float = 0.2,
) -> CrowdDataset:
    """Returns one fold as a dataset: the same arguments give the same fold, whatever else is drawn.

    Args:
        repeat: from 0; each shuffles anew.
        fold: from 0 to `folds - 1`, the test part.
        folds: how many parts.
        seed: of all draws.
        validation_share: of the remaining annotated rows to hold out for choices. Their labels are
            majority votes, whatever is known of their truth, and their annotations leave the
            training set, so test labels never enter a choice.

    Raises:
        UsageError: numbers out of range.
        DataError: fewer rows than folds.
    """
    _check(folds, validation_share)
    if not 0 <= fold < folds or repeat < 0:
        raise UsageError(
            f"fold: expected 0 to {folds - 1} of a repeat from 0, received fold {fold} of repeat"
            f" {repeat}"
        )
    pooled = pool(dataset, seed)
    test = _test_parts(pooled.labels, folds, seed, repeat)[fold]
    rng = np.random.default_rng([seed, repeat, fold, 2])
    return _one_fold(dataset, pooled, test, validation_share, rng)


def repeated_stratified_folds(
    dataset: CrowdDataset,
    *,
    folds: int = 5,
    repeats: int = 1,
    seed: int = 0,
    validation_share: float = 0.2,
) -> Iterator[Fold]:
    """Yields every fold of repeated stratified cross-validation; see `fold_dataset`."""
    _check(folds, validation_share)
    pooled = pool(dataset, seed)
    for repeat in range(repeats):
        for fold, test in enumerate(_test_parts(pooled.labels, folds, seed, repeat)):
            rng = np.random.default_rng([seed, repeat, fold, 2])
            yield Fold(repeat, fold, _one_fold(dataset, pooled, test, validation_share, rng))


def _check(folds: int, validation_share: float) -> None:
    if folds < 2:
        raise UsageError(f"folds: expected at least 2, received {folds}")
    if not 0.0 < validation_share < 1.0:
        raise UsageError(
            f"validation_share: expected a number between 0 and 1, received {validation_share}"
        )


def _one_fold(
    dataset: CrowdDataset,
    pooled: Pool,
    test: NDArray[np.intp],
    validation_share: float,
    rng: np.random.Generator,
) -> CrowdDataset:
    """Returns the pooled rows as a dataset that is tested on those at positions `test`."""
    rest = np.setdiff1d(np.arange(len(pooled.labels)), test)
    validation = _hold_out(pooled.votes, rest, validation_share, rng)
    train = np.setdiff1d(rest, validation)

    def split(rows: NDArray[np.intp], labels: NDArray[np.int64]) -> Split:
        crowd = pooled.annotations[rows]
        return Split(pooled.features[rows], labels[rows], crowd.instance_names, crowd)

    return dataset.replace(
        features=pooled.features[train],
        annotations=pooled.annotations[train],
        truth=pooled.labels[train] if pooled.labels_are_truth else None,
        validation=split(validation, pooled.votes) if len(validation) else None,
        test=split(test, pooled.labels),
        validation_is_truth=False,
        test_is_truth=pooled.labels_are_truth,
    )
