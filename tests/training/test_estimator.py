"""The estimator contract on a classifier that is small enough to see through; none of it needs
TensorFlow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import neucrowd_tf.saving.loading as persistence
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.training import CrowdEstimator, Run, TrainingData, hold_out
from tests.cases import raises
from tests.crowds import Crowd, array_of


class Centroids(CrowdEstimator):
    """The nearest class centre under majority vote; `sharpness` scales its certainty."""

    def __init__(self, sharpness: float = 1.0, flipped: bool = False) -> None:
        self.sharpness = sharpness
        self.flipped = flipped

    def _fit(self, data: TrainingData, run: Run) -> None:
        votes = data.annotations.vote_counts().argmax(axis=1)
        self.centres_ = np.stack(
            [data.features[votes == c].mean(axis=0) for c in range(len(self.classes_))]
        )
        self.used_, self.validated_ = data.rows, data.validation is not None

    def _predict_proba(self, features: np.ndarray) -> np.ndarray:
        distance = (
            np.linalg.norm(features[:, None] - self.centres_[None], axis=2)
            * self.sharpness
            * (-1 if self.flipped else 1)
        )
        scores = np.exp(-(distance - distance.min(axis=1, keepdims=True)))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))


def crowd(names: tuple[Any, ...] = ("cat", "dog")) -> Crowd:
    rng = default_rng(0)
    y = rng.integers(0, len(names), 60)
    x = rng.normal(size=(60, 3)) + 4 * y[:, None]
    labels = np.where(
        rng.uniform(size=(60, 4)) < 0.9, y[:, None], rng.integers(0, len(names), (60, 4))
    )
    labels[rng.uniform(size=labels.shape) < 0.2] = -1
    labels[:, 0] = y
    return x, Annotations.from_dense(labels, class_names=list(names)), y


def test_predicts_class_names_and_scores_against_three_kinds_of_labels() -> None:
    x, annotations, y = crowd()
    model = Centroids().fit(x, annotations)
    names = np.array(["cat", "dog"], dtype=object)[y]
    assert set(model.predict(x)) == {"cat", "dog"}
    assert model.score(x, names) == pytest.approx((model.predict(x) == names).mean())
    votes = annotations.vote_counts().argmax(axis=1)
    against_votes = (model.predict_proba(x).argmax(axis=1) == votes).mean()
    assert model.score(x, annotations) == pytest.approx(against_votes)
    assert model.score(x, annotations.to_dense()) == pytest.approx(against_votes)


@pytest.mark.parametrize("kind", ["nullable", "boolean", "object", "sparse", "sparse_array"])
def test_tables_of_other_kinds_train_as_arrays_do(kind: str) -> None:
    x, annotations, _ = crowd()
    x = np.round(x).astype(int)
    x[:, 2] = x[:, 2] > 0
    frame = pd.DataFrame(x, columns=list("abc"))
    tables = {
        "nullable": lambda: frame.astype({"a": "Int64", "b": "Float64"}),
        "boolean": lambda: frame.astype({"c": "boolean", "a": "Int16"}),
        "object": lambda: frame.astype(object).assign(c=(x[:, 2] > 0).astype(object)),
        "sparse": lambda: sparse.csr_matrix(x),
        "sparse_array": lambda: sparse.coo_array(x),
    }
    table = tables[kind]()
    expected = Centroids().fit(x, annotations).predict_proba(x)
    model = make_pipeline(FunctionTransformer(), Centroids()).fit(table, annotations)
    assert_allclose(model.predict_proba(table), expected)


def test_a_missing_value_or_a_word_in_a_table_is_one_clear_error() -> None:
    x, annotations, _ = crowd()
    frame = pd.DataFrame(x).astype("Float64")
    frame.iloc[3, 1] = pd.NA
    with pytest.raises(DataError, match="features: row 3, column 1: expected a finite number"):
        Centroids().fit(frame, annotations)
    words = frame.astype(object)
    words.iloc[4, 2] = "7"
    with pytest.raises(DataError, match="row 4, column 2: expected numbers, received '7'"):
        Centroids().fit(words, annotations)


def test_clone_and_params() -> None:
    model = Centroids(sharpness=3.0).fit(*crowd()[:2])
    copy = clone(model)
    assert copy.get_params() == {"sharpness": 3.0, "flipped": False}
    raises(NotFittedError, "fit first", copy.predict, crowd()[0])


def test_instances_without_annotations_are_left_out_with_a_warning() -> None:
    x, annotations, _ = crowd()
    dense = annotations.to_dense()
    dense[[3, 7]] = -1
    with pytest.warns(UserWarning, match="2 instances have no annotations.*3, 7"):
        model = Centroids().fit(x, dense)
    assert 3 not in model.used_ and len(model.used_) == 58


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, a: (x[:-1], a), "received 59 and 60"),
        (lambda x, a: (np.where(np.arange(3) == 1, np.inf, x), a), "row 0, column 1"),
        (lambda x, a: (x.astype(str), a), "expected numbers"),
        (lambda x, a: (x[:, 0], a), r"shape \[instances, features\]"),
        (lambda x, a: (x, np.full((60, 2), -1)), r"two classes, received \[\]"),
        (lambda x, a: (x, np.full((60, 2), 1)), r"received \[1\]"),
        (lambda x, a: (x, np.full((60, 2), 0.5)), "expected a label from 0"),
        (lambda x, a: (x, np.full((60, 2), -3)), "received -3"),
    ],
)
def test_bad_input_is_one_clear_error(change, message: str) -> None:
    x, annotations, _ = crowd()
    raises(DataError, message, Centroids().fit, *change(x, annotations))


def test_bad_validation_and_bad_prediction_input() -> None:
    x, annotations, _ = crowd()
    with pytest.raises(DataError, match=r"row 1.*'bird'"):
        Centroids().fit(x, annotations, validation=(x[:2], ["cat", "bird"]))
    with pytest.raises(DataError, match="validation features"):
        Centroids().fit(x, annotations, validation=(x[:2, :2], ["cat", "dog"]))
    raises(DataError, r"shape \[\*, 3\]", Centroids().fit(x, annotations).predict, x[:, :2])


@pytest.mark.parametrize("names", [("cat", "dog"), (3, 5), (False, True)])
def test_saves_and_loads_without_pickle(tmp_path: Path, names: tuple[Any, ...]) -> None:
    x, annotations, _ = crowd(names)
    model = Centroids(sharpness=0.5).fit(x, annotations)
    model.crowd_, model.nothing_, model.parts_ = annotations, float("inf"), {"a": (1, [2.5, None])}
    model.save(tmp_path / "model")
    model.save(tmp_path / "model")
    again = persistence.load(tmp_path / "model")
    assert_array_equal(model.predict_proba(x), again.predict_proba(x))
    assert_array_equal(model.predict(x), again.predict(x))
    assert again.get_params() == model.get_params()
    assert again.crowd_ == annotations
    assert again.nothing_ == float("inf")
    assert again.parts_ == model.parts_
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_a_value_that_no_folder_holds_is_not_saved(tmp_path: Path) -> None:
    model = Centroids().fit(*crowd()[:2])
    model.odd_ = object()
    raises(TypeError, "odd_", model.save, tmp_path / "odd")
    assert not (tmp_path / "odd").exists()


def test_held_out_rows_are_the_others_with_their_own_labels_and_other_seeds_hold_out_others() -> (
    None
):
    x, annotations, _ = crowd()
    dense = annotations.to_dense()
    dense[:10] = -1
    with pytest.warns(UserWarning, match="10 instances"):
        data = Centroids()._check(x, dense, None)
    votes = data.annotations.vote_counts().argmax(axis=1)
    piece, remaining = hold_out(data, 1, fraction=0.3, labels=votes)
    held = np.setdiff1d(np.arange(50), remaining)
    assert len(held) == 15
    assert_array_equal(piece.validation[0], data.features[held])
    assert_array_equal(piece.validation[1], votes[held])
    assert_array_equal(piece.rows, remaining + 10)  # positions in what fit was given
    assert_array_equal(piece.annotations.to_dense(), dense[piece.rows])
    assert not np.array_equal(hold_out(data, 2, fraction=0.3, labels=votes)[1], remaining)


def test_hold_out_needs_instances_to_train_on() -> None:
    data = Centroids()._check([[0.0, 1.0]], array_of("0 1;"), None)
    with pytest.raises(
        DataError,
        match=(
            r"1 annotated instances are too few to hold out a share of 0\.2 for validation\. Pass"
            r" validation data"
        ),
    ):
        hold_out(data, 0, labels=np.array([0]))
    data = Centroids()._check(np.eye(6), array_of("0; 1; 2; 0; 1; 2"), None)
    assert len(hold_out(data, 0, fraction=0.7)[1]) == 1  # fewer than there are classes
