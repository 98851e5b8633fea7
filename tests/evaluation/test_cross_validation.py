"""Cross-validation: no row twice, no test label in a choice, the same folds for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_array_equal

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.datasets.bundled import load_cancer
from neucrowd_tf.errors import DataError, IdentitiesError, UsageError
from neucrowd_tf.evaluation import fold_dataset
from neucrowd_tf.evaluation.cross_validation import concatenate
from tests.cases import raises
from tests.crowds import noisy_labels


def _dataset(seed: int = 0, rows: int = 60, truth: bool = True) -> CrowdDataset:
    rng = default_rng(seed)
    labels = (np.arange(rows) % 3 == 0).astype(np.int64)
    dense = noisy_labels(rng, labels, 5, 0.8)
    dense[rng.random((rows, 5)) < 0.3] = -1
    dense[0] = -1
    features = rng.normal(size=(rows, 4)).astype(np.float32)
    features[7] = features[3]
    crowd = Annotations.from_dense(
        dense, num_classes=2, instance_names=[f"t{i}" for i in range(rows)]
    )
    test = Split(rng.normal(size=(8, 4)).astype(np.float32), rng.integers(0, 2, 8), np.arange(8))
    return CrowdDataset("made", features, crowd, test, truth=labels if truth else None)


def _folds(data: CrowdDataset, folds: int, repeat: int = 0, seed: int = 0) -> list[CrowdDataset]:
    return [fold_dataset(data, repeat=repeat, fold=f, folds=folds, seed=seed) for f in range(folds)]


def _names(split: Split | None) -> list:
    return [] if split is None else split.names.tolist()


def test_each_row_is_tested_once_a_repeat_and_never_trained_on() -> None:
    data = _dataset()
    everything = set(data.annotations.instance_names.tolist()) - {"t7"}  # the same features as t3
    tested = []
    for repeat in range(2):
        folds = _folds(data, 4, repeat, seed=5)
        names = [name for piece in folds for name in _names(piece.test)]
        assert len(names) == 59 and set(names) == everything
        tested.append({tuple(_names(piece.test)) for piece in folds})
        for piece in folds:
            parts = [
                set(piece.annotations.instance_names.tolist()),
                set(_names(piece.validation)),
                set(_names(piece.test)),
            ]
            assert sum(map(len, parts)) == len(set.union(*parts)) == 59
            assert len(piece.features) == piece.annotations.num_instances
            assert 4 <= piece.test.labels.sum() <= 6  # stratified: 20 positives in 4 folds
            assert 0.2 < piece.validation.labels.mean() < 0.5
    assert tested[0].isdisjoint(tested[1])


def test_rows_keep_their_features_labels_and_annotations() -> None:
    data = _dataset()
    dense = data.annotations.to_dense()
    with pytest.warns(UserWarning, match="1 of 60 items have the features of an earlier item"):
        piece = fold_dataset(data, repeat=0, fold=1, folds=3)
    for features, crowd, labels in (
        (piece.features, piece.annotations, piece.truth),
        (piece.test.features, piece.test.annotations, piece.test.labels),
    ):
        rows = [int(name[1:]) for name in crowd.instance_names.tolist()]
        assert_array_equal(features, data.features[rows])
        assert_array_equal(crowd.to_dense(), dense[rows])
        assert_array_equal(labels, data.truth[rows])
    assert piece.test_is_truth


def test_truth_never_enters_training_or_validation() -> None:
    """Validation labels are majority votes, some of which are wrong."""
    data = _dataset()
    piece = fold_dataset(data, repeat=0, fold=0, folds=3)
    assert not piece.validation_is_truth
    rows = [int(name[1:]) for name in _names(piece.validation)]
    votes, labels = data.annotations.vote_counts()[rows], piece.validation.labels
    assert (votes[np.arange(len(rows)), labels] == votes.max(axis=1)).all()
    assert 0 not in rows  # no annotation, so no vote
    assert (labels != data.truth[rows]).any()


def test_the_same_arguments_give_the_same_fold() -> None:
    data = _dataset()
    first, again, other = (
        fold_dataset(data, repeat=1, fold=0, folds=3, seed=seed) for seed in (9, 9, 10)
    )
    assert first.annotations == again.annotations
    assert _names(first.test) == _names(again.test) != _names(other.test)
    assert _names(first.validation) == _names(again.validation)


def test_without_truth_votes_are_tested_against_and_unvoted_rows_only_trained_on() -> None:
    folds = _folds(_dataset(truth=False), 3)
    assert not any(piece.test_is_truth for piece in folds)
    assert all(piece.truth is None for piece in folds)
    assert all("t0" in piece.annotations.instance_names.tolist() for piece in folds)


def test_vote_counts_of_all_splits_are_pooled() -> None:
    def split(votes: list, first: int) -> tuple[np.ndarray, Annotations]:
        crowd = Annotations.from_votes(
            votes, instance_names=[f"r{first + i}" for i in range(len(votes))]
        )
        return np.arange(first, first + len(votes), dtype=np.float32)[:, None], crowd

    (train, crowd), (valid, valid_crowd), (test, test_crowd) = (
        split([[5, 2], [1, 6], [0, 7], [7, 0]] * 3, 0),
        split([[4, 3], [3, 4]], 12),
        split([[6, 1], [2, 5]], 14),
    )
    test[1] = train[0]  # a row that stands in two splits
    data = CrowdDataset(
        "votes",
        train,
        crowd,
        Split(test, np.array([0, 1]), test_crowd.instance_names, test_crowd),
        Split(valid, np.array([0, 1]), valid_crowd.instance_names, valid_crowd),
        validation_is_truth=False,
        test_is_truth=False,
    )
    folds = _folds(data, 3)
    labels = {
        n: y for piece in folds for n, y in zip(_names(piece.test), piece.test.labels, strict=True)
    }
    assert len(labels) == 15 and "r15" not in labels
    assert (labels["r12"], labels["r13"], labels["r14"]) == (0, 1, 0)
    assert folds[0].annotations.num_annotators == 7
    assert not folds[0].annotations.has_identities


def test_identities_are_matched_by_name() -> None:
    first = Annotations.from_arrays(["a", "a", "b"], ["ann", "bob", "ann"], [0, 1, 1])
    second = Annotations.from_arrays(["c", "c"], ["bob", "cat"], [0, 1])
    both = concatenate([first, second])
    expected = [("a", "ann", 0), ("a", "bob", 1), ("b", "ann", 1), ("c", "bob", 0), ("c", "cat", 1)]
    assert list(both.to_frame().itertuples(index=False, name=None)) == expected
    twice = Annotations([0, 0], [0, 0], [0, 1], duplicates="all")
    both = concatenate([first, twice.replace(instance_names=["d"], annotator_names=["ann"])])
    assert both.vote_counts().tolist() == [[1, 1], [0, 1], [1, 1]]
    raises(DataError, "one part only", concatenate, [first, first])
    raises(DataError, "classes", concatenate, [first, Annotations.from_arrays(["d"], ["ann"], [2])])
    with pytest.raises(IdentitiesError):
        concatenate(
            [first, Annotations.from_votes([[1, 0]], instance_names=["d"], class_names=[0, 1])]
        )


@pytest.mark.parametrize("numbers", [{"fold": 5}, {"fold": -1}, {"repeat": -1}, {"folds": 1}])
def test_a_fold_that_there_is_not(numbers: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="a fold from 0 to folds - 1"):
        fold_dataset(load_cancer(), **{"repeat": 0, "fold": 0, **numbers})
