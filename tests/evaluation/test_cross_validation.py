"""Cross-validation: no row twice, no test label in a choice, the same folds for the same seed."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.evaluation import fold_dataset, repeated_stratified_folds
from neucrowd_tf.evaluation.cross_validation import concatenate, first_of_each, pool


def _dataset(seed: int = 0, rows: int = 60, truth: bool = True) -> CrowdDataset:
    rng = np.random.default_rng(seed)
    labels = (np.arange(rows) % 3 == 0).astype(np.int64)
    dense = np.where(rng.random((rows, 5)) < 0.8, labels[:, None], 1 - labels[:, None])
    dense[rng.random((rows, 5)) < 0.3] = -1
    dense[0] = -1
    features = rng.normal(size=(rows, 4)).astype(np.float32)
    features[7] = features[3]
    crowd = Annotations.from_dense(
        dense, num_classes=2, instance_names=[f"t{i}" for i in range(rows)]
    )
    test = Split(rng.normal(size=(8, 4)).astype(np.float32), rng.integers(0, 2, 8), np.arange(8))
    return CrowdDataset("made", features, crowd, test, truth=labels if truth else None)


def _names(split: Split | None) -> list:
    return [] if split is None else split.names.tolist()


def test_each_row_is_tested_once_a_repeat_and_never_trained_on() -> None:
    data = _dataset()
    folds = list(repeated_stratified_folds(data, folds=4, repeats=2, seed=5))
    assert [(part.repeat, part.fold) for part in folds] == [
        (r, f) for r in range(2) for f in range(4)
    ]
    everything = set(data.annotations.instance_names.tolist()) - {"t7"}  # the same features as t3
    for repeat in range(2):
        tested = [
            name for part in folds if part.repeat == repeat for name in _names(part.dataset.test)
        ]
        assert len(tested) == len(set(tested)) == 59
        assert set(tested) == everything
    for part in folds:
        parts = [
            set(part.dataset.annotations.instance_names.tolist()),
            set(_names(part.dataset.validation)),
            set(_names(part.dataset.test)),
        ]
        assert sum(map(len, parts)) == len(set.union(*parts)) == 59
        assert len(part.dataset.features) == part.dataset.annotations.num_instances
    assert {tuple(_names(part.dataset.test)) for part in folds[:4]}.isdisjoint(
        {tuple(_names(part.dataset.test)) for part in folds[4:]}
    )


def test_folds_are_stratified() -> None:
    for part in repeated_stratified_folds(_dataset(), folds=4):
        assert 4 <= part.dataset.test.labels.sum() <= 6  # 20 positives in 4 folds
        assert part.dataset.validation is not None
        assert 0.2 < part.dataset.validation.labels.mean() < 0.5


def test_rows_keep_their_features_labels_and_annotations() -> None:
    data = _dataset()
    position = {name: i for i, name in enumerate(data.annotations.instance_names.tolist())}
    dense = data.annotations.to_dense()
    part = fold_dataset(data, repeat=0, fold=1, folds=3)
    assert part.truth is not None
    for split_features, split_names, crowd in (
        (part.features, part.annotations.instance_names, part.annotations),
        (part.test.features, part.test.names, part.test.annotations),
    ):
        rows = [position[name] for name in split_names.tolist()]
        np.testing.assert_array_equal(split_features, data.features[rows])
        np.testing.assert_array_equal(crowd.to_dense(), dense[rows])
    np.testing.assert_array_equal(
        part.truth,
        data.truth[[position[name] for name in part.annotations.instance_names.tolist()]],
    )
    np.testing.assert_array_equal(
        part.test.labels, data.truth[[position[name] for name in part.test.names.tolist()]]
    )
    assert part.test_is_truth


def test_truth_never_enters_training_or_validation() -> None:
    """Other truth with the same classes in the same fold moves no row and no validation label."""
    data = _dataset()
    part = fold_dataset(data, repeat=0, fold=0, folds=3)
    validation = part.validation
    assert validation is not None
    assert not part.validation_is_truth
    votes = dict(
        zip(data.annotations.instance_names.tolist(), data.annotations.vote_counts(), strict=True)
    )
    for name, label in zip(validation.names.tolist(), validation.labels, strict=True):
        assert votes[name][label] == votes[name].max() > 0
    assert "t0" not in validation.names.tolist()  # no annotation, so no vote
    assert any(
        label != data.truth[int(name[1:])]
        for name, label in zip(validation.names.tolist(), validation.labels, strict=True)
    )


def test_one_fold_is_the_same_alone_and_among_others() -> None:
    data = _dataset()
    for part in repeated_stratified_folds(data, folds=3, repeats=2, seed=9):
        alone = fold_dataset(data, repeat=part.repeat, fold=part.fold, folds=3, seed=9)
        assert alone.annotations == part.dataset.annotations
        assert _names(alone.test) == _names(part.dataset.test)
        assert _names(alone.validation) == _names(part.dataset.validation)
    other = fold_dataset(data, repeat=0, fold=0, folds=3, seed=10)
    assert _names(other.test) != _names(fold_dataset(data, repeat=0, fold=0, folds=3, seed=9).test)


def test_without_truth_votes_are_tested_against_and_unvoted_rows_only_trained_on() -> None:
    folds = [part.dataset for part in repeated_stratified_folds(_dataset(truth=False), folds=3)]
    assert not any(part.test_is_truth for part in folds)
    assert all(part.truth is None for part in folds)
    assert all("t0" in part.annotations.instance_names.tolist() for part in folds)


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
    pooled = pool(data)
    assert pooled.num_duplicates == 1
    assert len(pooled.labels) == 15
    assert pooled.annotations.num_annotators == 7
    np.testing.assert_array_equal(pooled.annotations.vote_counts()[12:], [[4, 3], [3, 4], [6, 1]])
    np.testing.assert_array_equal(pooled.labels[12:], [0, 1, 0])
    part = fold_dataset(data, repeat=0, fold=0, folds=3)
    assert not part.annotations.has_identities


def test_hotel(data_dir: pathlib.Path) -> None:
    hotel = pytest.importorskip("data.hotel").load(data_dir)
    pooled = pool(hotel)
    assert (
        len(np.unique(pooled.features, axis=0))
        == len(pooled.features)
        == 699 - pooled.num_duplicates
    )
    assert pooled.num_duplicates >= 15
    tested = [part.dataset for part in repeated_stratified_folds(hotel, folds=5)]
    assert sum(len(part.test) for part in tested) == len(pooled.labels)
    shares = [part.test.labels.mean() for part in tested]
    assert max(shares) - min(shares) < 0.02


def test_identities_are_matched_by_name() -> None:
    first = Annotations.from_arrays(["a", "a", "b"], ["ann", "bob", "ann"], [0, 1, 1])
    second = Annotations.from_arrays(["c", "c"], ["bob", "cat"], [0, 1])
    both = concatenate([first, second])
    expected = [("a", "ann", 0), ("a", "bob", 1), ("b", "ann", 1), ("c", "bob", 0), ("c", "cat", 1)]
    assert list(both.to_frame().itertuples(index=False, name=None)) == expected
    with pytest.raises(DataError, match="one part only"):
        concatenate([first, first])
    with pytest.raises(DataError, match="classes"):
        concatenate([first, Annotations.from_arrays(["d"], ["ann"], [2])])
    with pytest.raises(DataError, match="identities"):
        concatenate(
            [first, Annotations.from_votes([[1, 0]], instance_names=["d"], class_names=[0, 1])]
        )


def test_first_of_each_row() -> None:
    rows = np.array([[0.0, 1], [1, 1], [-0.0, 1], [1, 1], [2, 1]], dtype=np.float32)
    np.testing.assert_array_equal(first_of_each(rows), [0, 1, 4])
    np.testing.assert_array_equal(first_of_each(np.zeros((3, 2, 2), dtype=np.uint8)), [0])


def test_numbers_out_of_range() -> None:
    data = _dataset()
    with pytest.raises(UsageError, match="folds"):
        fold_dataset(data, repeat=0, fold=0, folds=1)
    with pytest.raises(UsageError, match="fold 3"):
        fold_dataset(data, repeat=0, fold=3, folds=3)
    with pytest.raises(UsageError, match="validation_share"):
        fold_dataset(data, repeat=0, fold=0, validation_share=1.0)
    with pytest.raises(DataError, match="each of 50 folds"):
        fold_dataset(data, repeat=0, fold=0, folds=50)
