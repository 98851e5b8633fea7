"""CPC: its objective by hand and against a naive loop, its gradient, its optimum, fusion, and
awkward crowds.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.optimize import check_grad
from sklearn.linear_model import LogisticRegression

from baselines.cpc import ClusteredPersonalClassifiers, Fusion, PersonalLosses, objective
from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.errors import IdentitiesError, UnsupportedDataError, UsageError
from tests.cases import raises
from tests.crowds import Crowd


def crowd(classes: int = 2, n: int = 90) -> Crowd:
    rng = default_rng(0)
    truth = rng.integers(classes, size=n)
    x = 2.0 * np.eye(3)[truth] + rng.normal(size=(n, 3))
    matrices = simulation.class_skill_annotators(4, classes, 0, low=0.7)
    return x, simulation.simulate(truth, matrices, 0, rates=0.7), truth


@pytest.mark.parametrize("classes", [2, 3])
def test_objective_against_a_naive_loop(classes: int) -> None:
    x, annotations, _ = crowd(classes)
    losses = PersonalLosses(x, annotations)
    weights = default_rng(1).normal(size=losses.shape)
    total = 0.0
    for i, j, label in zip(
        annotations.instances, annotations.annotators, annotations.labels, strict=True
    ):
        scores = x[i] @ weights[j + 1]
        scores = np.array([0.0, scores[0]]) if classes == 2 else scores
        total -= np.log(np.exp(scores[label]) / np.exp(scores).sum())
    total += 0.5 * 7 * (weights[0] ** 2).sum()
    total += 5 / 4 * sum(np.linalg.norm(a - b) for a, b in itertools.combinations(weights, 2))
    assert objective(losses, weights, 5.0, 7.0) == pytest.approx(total)


@pytest.mark.parametrize("classes", [2, 3])
def test_gradients(classes: int) -> None:
    x, annotations, _ = crowd(classes, n=20)
    losses = PersonalLosses(x, annotations)
    count, size = losses.shape[0], losses.shape[1] * losses.shape[2]
    fusion = Fusion(count, size, 3.0)

    def value(v: np.ndarray) -> float:
        return losses(v.reshape(losses.shape))[0] + fusion(v.reshape(count, size), 0.3)[0]

    def gradient(v: np.ndarray) -> np.ndarray:
        return (
            losses(v.reshape(losses.shape))[1].ravel()
            + fusion(v.reshape(count, size), 0.3)[1].ravel()
        )

    assert check_grad(value, gradient, default_rng(0).normal(size=count * size)) < 1e-3


def with_intercept(model: ClusteredPersonalClassifiers, x: np.ndarray) -> np.ndarray:
    """Standardised features and a column of ones."""
    return np.hstack([(x - model.head_.mean_) / model.head_.scale_, np.ones((len(x), 1))])


def test_the_optimum_is_no_worse_than_anything_near_it() -> None:
    x, annotations, _ = crowd()
    model = ClusteredPersonalClassifiers(mu=8.0, eta=2.0).fit(x, annotations)
    losses = PersonalLosses(with_intercept(model, x.astype(np.float32)), annotations)
    target = np.concatenate([model.head_.kernel_, model.head_.bias_[None]])[:, 1:]
    best = np.concatenate([target[None], model.personal_weights_])
    value = objective(losses, best, 8.0, 2.0)
    assert value == pytest.approx(model.history_[-1])
    rng = default_rng(0)
    for size in (1e-2, 1e-1, 1.0):
        assert all(
            objective(losses, best + size * rng.normal(size=best.shape), 8.0, 2.0) > value
            for _ in range(10)
        )


def test_everyone_fused_is_one_regression_on_all_annotations() -> None:
    x, annotations, _ = crowd()
    model = ClusteredPersonalClassifiers(mu=1e5, eta=2.0, max_iter=2000).fit(x, annotations)
    assert (model.clusters_ == 0).all()
    z = with_intercept(model, x)
    pooled = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-8).fit(
        z[annotations.instances], annotations.labels
    )
    target = np.concatenate([model.head_.kernel_[:, 1], model.head_.bias_[1:]])
    assert target == pytest.approx(pooled.coef_[0], abs=0.02)


def test_an_adversary_stands_alone_and_does_not_move_the_target() -> None:
    x, _, truth = crowd(n=300)
    matrices = np.concatenate(
        [simulation.from_skills(np.full((4, 2), 0.9)), simulation.from_skills(np.full((1, 2), 0.1))]
    )
    annotations = simulation.simulate(truth, matrices, 0)
    model = ClusteredPersonalClassifiers(mu=60.0, eta=1.0).fit(x, annotations)
    assert model.score(x, truth) > 0.85
    assert model.clusters_.tolist() == [0, 0, 0, 0, -1]
    assert model.confusion_matrices_[0, 0, 0] > 0.6 > 0.5 > model.confusion_matrices_[4, 0, 0]
    assert model.confusion_matrices_.sum(axis=2) == pytest.approx(np.ones((5, 2)))


def test_awkward_crowds_and_arguments() -> None:
    x, annotations, _ = crowd(3)
    dense = annotations.to_dense()
    dense[:, 2] = -1  # an annotator without labels
    dense[(dense == -1).all(axis=1), 0] = 1
    model = ClusteredPersonalClassifiers().fit(
        np.ones_like(x), Annotations.from_dense(dense, num_classes=4)
    )
    assert np.isfinite(model.predict_proba(np.ones_like(x))).all()
    raises(UsageError, "mu", ClusteredPersonalClassifiers(mu=0).fit, x, annotations)
    with pytest.raises(IdentitiesError):
        ClusteredPersonalClassifiers().fit(x, Annotations.from_votes(annotations.vote_counts()))
    raises(UnsupportedDataError, "every pair", Fusion, 2000, 10_000, 1.0)
    with warnings.catch_warnings(record=True) as message:
        warnings.simplefilter("always")
        ClusteredPersonalClassifiers(max_iter=1).fit(x, annotations)
    assert any("did not converge" in str(w.message) for w in message)
