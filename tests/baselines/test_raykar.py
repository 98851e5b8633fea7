"""Raykar's joint EM: its two steps by hand and by loop, its objective, and what it gains."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import baselines  # noqa: F401
from baselines.raykar import Raykar, _SoftRegression
from neucrowd_tf.aggregation.crowd_and_classifier import error_matrices
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import IdentitiesError, UsageError
from neucrowd_tf.training.logistic_head import fit_logistic
from tests.cases import raises
from tests.crowds import array_of, blobs


def crowd_data(classes: int, rows: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns features, labels with missing ones, and the truth; two good ones and four poor
    ones."""
    skill = [0.95, 0.9, 0.1, 0.1, 0.1, 0.1]
    return blobs(rows, classes, apart=2.0, annotators=6, right=skill, missing=0.3)


def test_steps_by_hand() -> None:
    # One annotator with errors ((.9, .1), (.3, .7)) says 1; the classifier says p(1) = .4:
    # posterior of 1: .4 * .7 / (.4 * .7 + .6 * .1) = .28 / .34; log likelihood log .34.
    crowd = Annotations.from_dense([[1]], num_classes=2)
    errors = np.array([[[0.9, 0.1], [0.3, 0.7]]])
    probas, likelihood = Raykar._e_step(crowd.one_hot(), errors, np.log([[0.6, 0.4]]))
    assert probas[0, 1] == pytest.approx(0.28 / 0.34) and likelihood == pytest.approx(np.log(0.34))
    # Posteriors (.75, .25) and (.2, .8) with labels 0 and 1, smoothing .05:
    # true 0: (.8, .25) / 1.05; true 1: (.3, .85) / 1.15.
    both = Annotations.from_dense([[0], [1]])
    result = error_matrices(both.one_hot(), array_of("0.75 0.25; 0.2 0.8"), 0.05)
    assert_allclose(result, [[[0.8 / 1.05, 0.25 / 1.05], [0.3 / 1.15, 0.85 / 1.15]]])


@pytest.mark.parametrize("classes", [2, 3])
def test_soft_regression_is_scikit_learns_on_certain_labels(classes: int) -> None:
    x, _, truth = crowd_data(classes, 80)
    start = fit_logistic(x, np.roll(truth, 1), classes, Cs=(0.3,))  # from elsewhere
    model = _SoftRegression(x, np.arange(classes), classes, start)
    probas = np.eye(classes)[truth]
    value, gradient = model.loss(model.weights.ravel(), probas)
    step = 1e-6 * np.eye(len(gradient))
    numeric = [(model.loss(model.weights.ravel() + e, probas)[0] - value) / 1e-6 for e in step]
    assert_allclose(gradient, numeric, atol=1e-3)
    model.m_step(probas)
    expected = fit_logistic(x, truth, classes, Cs=(0.3,)).predict_proba(x)
    assert_allclose(np.exp(model.log_probabilities(model.weights)), expected, atol=2e-3)
    assert_allclose(
        model.head.predict_proba(x), np.exp(model.log_probabilities(model.weights)), atol=1e-9
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_objective_never_falls_and_errors_are_found(classes: int) -> None:
    x, dense, truth = crowd_data(classes)
    fitted = Raykar(Cs=(0.1,)).fit(x, Annotations.from_dense(dense, num_classes=classes))
    assert fitted.converged_ and fitted.n_iter_ == len(fitted.history_) > 2
    assert (np.diff(fitted.history_) > -1e-6 * abs(fitted.history_[0])).all()
    assert_allclose(fitted.confusion_matrices_.sum(axis=2), 1.0)
    result = fitted.confusion_matrices_.diagonal(axis1=1, axis2=2).mean(axis=1)
    assert result[:2].min() > result[2:].max() + 0.1
    votes = Annotations.from_dense(dense, num_classes=classes).vote_counts().argmax(axis=1)
    assert np.mean(fitted.labels_ == truth) > np.mean(votes == truth) + 0.06


def test_a_class_that_nobody_gave() -> None:
    x, dense, _ = crowd_data(2, 60)
    fitted = Raykar(Cs=(0.1,)).fit(x, Annotations.from_dense(dense, num_classes=3))
    assert np.isfinite(fitted.probas_).all() and fitted.predict_proba(x)[:, 2].max() < 1e-9


def test_what_it_refuses() -> None:
    x, dense, _ = crowd_data(2, 60)
    method = registry.method("raykar")
    assert method.requires_identities
    with pytest.raises(IdentitiesError):
        method.make().fit(x, Annotations.from_votes(Annotations.from_dense(dense).vote_counts()))
    raises(UsageError, "smoothing", Raykar(smoothing=0.0).fit, x, dense)
    raises(UsageError, "max_iter", Raykar(max_iter=0).fit, x, dense)
    raises(UsageError, "tol: expected a number, received 'a'", Raykar(tol="a").fit, x, dense)
    with pytest.warns(ConvergenceWarning, match="Raykar"):
        Raykar(max_iter=1, Cs=(0.1,)).fit(x, dense)
