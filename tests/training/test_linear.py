"""The linear head: values by hand, scikit-learn as the plain reference, and what must not
change."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import keras
import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

import neucrowd_tf.saving.loading as persistence
from neucrowd_tf.nn.logistic_regression import linear_model
from neucrowd_tf.training.logistic_head import fit_logistic


def blobs(classes: int, rows: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = default_rng(seed)
    codes = np.arange(rows) % classes
    return (
        rng.normal(size=(rows, 4)) * [1, 10, 0.1, 1]
        + np.eye(classes, 4)[codes] * [2, 20, 0.2, 2]
        + [5, -3, 0, 100],
        codes,
    )


def test_folded_weights_apply_to_raw_features() -> None:
    x, codes = blobs(3)
    head = fit_logistic(x, codes, 3, [1.0])
    kernel, bias = head.folded()
    assert_allclose(x @ kernel + bias, head.decision_function(x), atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_agrees_with_scikit_learn(classes: int) -> None:
    x, codes = blobs(classes)
    head = fit_logistic(x, codes, classes, [0.5])
    z = StandardScaler().fit_transform(x)
    plain = LogisticRegression(C=0.5, max_iter=1000).fit(z, codes)
    assert_allclose(head.predict_proba(x), plain.predict_proba(z), atol=1e-6)
    assert head.C_ == 0.5 and head.scores_ == []


def test_sample_weights_count_as_repeated_rows() -> None:
    x, codes = blobs(2, 40)
    weight = np.arange(40) % 3
    head = fit_logistic(x, codes, 2, [1.0], sample_weight=weight)
    repeated = fit_logistic(np.repeat(x, weight, axis=0), np.repeat(codes, weight), 2, [1.0])
    assert_allclose(head.predict_proba(x), repeated.predict_proba(x), atol=1e-5)


def test_classes_that_never_occur_get_no_probability() -> None:
    x, codes = blobs(2)
    head = fit_logistic(x, codes * 2 + 1, 5)
    proba = head.predict_proba(x)
    assert proba.shape == (60, 5) and (proba[:, [0, 2, 4]] < 1e-30).all()
    assert_allclose(proba.sum(axis=1), 1.0)
    only = fit_logistic(x, np.full(60, 2), 3).predict_proba(x)
    assert_allclose(only, [[0, 0, 1]] * 60, atol=1e-30)


def test_validation_chooses_the_strength() -> None:
    # One informative column in 40 and few rows: the validation rows prefer strong regularisation to
    # none.
    rng = default_rng(1)
    codes = np.arange(400) % 2
    x = rng.normal(size=(400, 40))
    x[:, 0] += codes
    head = fit_logistic(x[:50], codes[:50], 2, (1e-2, 1e4), validation=(x[50:], codes[50:]))
    proba = [fit_logistic(x[:50], codes[:50], 2, [C]).predict_proba(x[50:]) for C in (1e-2, 1e4)]
    naive = [
        np.mean([np.log(max(row[code], 1e-15)) for row, code in zip(p, codes[50:], strict=True)])
        for p in proba
    ]
    assert_allclose(
        head.scores_, naive, rtol=2e-2
    )  # the weak strength starts from the other's solution
    assert head.C_ == 1e-2 and naive[0] > naive[1]
    # Validation rows are standardised with the training rows' moments: other units change nothing.
    other = fit_logistic(
        x[:50] * 50 + 7, codes[:50], 2, (1e-2, 1e4), validation=(x[50:] * 50 + 7, codes[50:])
    )
    assert_allclose(other.scores_, head.scores_, rtol=1e-3)


@pytest.mark.parametrize("grouped", [False, True])
def test_strengths_are_scored_as_a_naive_cross_validation_scores_them(grouped: bool) -> None:
    x, codes = blobs(3, 48)
    weight = default_rng(2).choice([0.5, 1.0, 4.0], 48)
    strengths, groups = (1e-2, 0.1, 1.0), np.arange(48) // 6 if grouped else None
    if grouped:
        codes = np.repeat(np.arange(8) % 3, 6)
    splitter = (
        StratifiedGroupKFold(5, shuffle=True, random_state=3)
        if grouped
        else StratifiedKFold(5, shuffle=True, random_state=3)
    )
    mean = np.average(x, axis=0, weights=weight)
    z = (x - mean) / np.sqrt(np.average((x - mean) ** 2, axis=0, weights=weight))
    expected = np.zeros(3)
    for train, test in splitter.split(z, codes, groups):
        for place, strength in enumerate(strengths):
            plain = LogisticRegression(C=strength, max_iter=1000).fit(
                z[train], codes[train], sample_weight=weight[train]
            )
            custom = plain.predict_proba(z[test])[np.arange(len(test)), codes[test]]
            expected[place] += np.average(np.log(custom), weights=weight[test]) / 5
    head = fit_logistic(x, codes, 3, strengths, sample_weight=weight, seed=3, groups=groups)
    assert_allclose(head.scores_, expected, rtol=5e-3)
    assert strengths[int(np.argmax(head.scores_))] == head.C_


def test_weak_strengths_are_left_out_once_two_are_worse_than_the_best() -> None:
    """Noise: every weaker regularisation overfits more, so the third and the rest are not tried."""
    rng = default_rng([17, 3])
    x, codes = rng.normal(size=(60, 30)), rng.integers(0, 2, 60)
    strengths = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
    head = fit_logistic(x, codes, 2, strengths)
    best = int(np.argmax(head.scores_))
    assert len(head.scores_) == best + 3 < len(strengths) and strengths[best] == head.C_
    assert_array_equal(head.kernel_, fit_logistic(x, codes, 2, [head.C_]).kernel_)


def test_constant_column_and_save(tmp_path) -> None:  # type: ignore[no-untyped-def]
    x, codes = blobs(2)
    x[:, 1] = 7.1
    head = fit_logistic(x, codes, 2)
    assert np.isfinite(head.kernel_).all()
    # Constant but for rounding: not blown up to a column that could tell the classes apart.
    x[:, 1] += 1e-14 * codes
    assert fit_logistic(x, codes, 2).scale_[1] == 1.0
    head.save(tmp_path / "head")
    assert_array_equal(persistence.load(tmp_path / "head").predict_proba(x), head.predict_proba(x))


def test_saved_layers_keep_the_digits_of_features_far_from_zero(tmp_path: Path) -> None:
    x, codes = blobs(2)
    x = (x * 1e-2 + 1.7e3).astype(np.float32)
    head = fit_logistic(x, codes, 2)
    model = linear_model((4,), head.kernel_, head.bias_, head.mean_, head.scale_)
    model.save(tmp_path / "model.keras")
    for one in (model, keras.models.load_model(tmp_path / "model.keras")):
        assert_allclose(one(x)["probabilities"], head.predict_proba(x), atol=1e-6)


def test_folds_keep_no_copies_of_their_rows() -> None:
    features = default_rng(0).normal(size=(2000, 100)).astype(np.float32)
    codes = (features[:, 0] > 0).astype(int)
    fit_logistic(features, codes, 2, (0.01, 0.1))  # loads what it needs
    tracemalloc.start()
    fit_logistic(features, codes, 2, (0.01, 0.1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # In float64: all rows, those of one fold, and what scikit-learn makes of them.
    assert peak < 8 * features.nbytes
