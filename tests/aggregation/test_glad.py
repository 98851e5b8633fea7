"""GLAD: posterior by hand and by its formula, gradient, the bound, gold labels, crowd-kit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, stats
from scipy.special import expit

from neucrowd_tf.aggregation import Glad, MajorityVote
from neucrowd_tf.aggregation.glad import _Model
from neucrowd_tf.annotations import Annotations
from tests.crowds import array_of


def _naive_joint(crowd: Annotations, theta: np.ndarray, priors: np.ndarray) -> np.ndarray:
    """`[N, C]` joint probabilities, straight from the model's definition."""
    dense, annotators = crowd.to_dense(), crowd.num_annotators
    right = expit(theta[:annotators] * np.exp(theta[annotators:, None]))[..., None]
    says = dense[..., None] == np.arange(crowd.num_classes)
    factors = np.where(says, right, (1 - right) / (crowd.num_classes - 1))
    return priors * np.where(dense[..., None] < 0, 1, factors).prod(axis=1)


def test_posterior_and_expectation_are_their_formulas(make_crowd: Callable) -> None:
    crowd, _ = make_crowd(1, instances=30, annotators=6)
    theta = default_rng(0).normal(0.5, 0.8, 36)
    priors = array_of("0.5 0.3 0.2")
    joint = _naive_joint(crowd, theta, priors)
    model = _Model(crowd)
    probas, objective = model.posterior(theta, priors)
    assert_allclose(probas, joint / joint.sum(axis=1, keepdims=True))
    normal = stats.norm.logpdf(theta, 1.0, 1.0).sum() + 36 * 0.5 * np.log(2 * np.pi)
    assert objective == pytest.approx(np.log(joint.sum(axis=1)).sum() + normal)
    # Q: expectation of the log joint under any posterior; leaves out constants (prior of classes,
    # log(C - 1) of errors).
    weights = default_rng(1).dirichlet(np.ones(3), 30)
    dense = crowd.to_dense()
    right = expit(theta[:6] * np.exp(theta[6:, None]))
    chosen = np.take_along_axis(weights, dense, axis=1)
    logs = chosen * np.log(right) + (1 - chosen) * np.log(1 - right)
    expected = logs[dense >= 0].sum()
    value, _ = model.expected(theta, weights.reshape(-1)[model.cells])
    assert -value == pytest.approx(expected + normal)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_class_prior_is_the_mean_posterior_of_annotated_instances() -> None:
    # The first M-step follows the start under a uniform prior, whose posteriors are (a, 1 - a) with
    # a = s(1 * e) for both labels.
    dense = array_of("0; 0; 0; 1; -1")
    result = Glad(prior="update", max_iter=1, tol=-np.inf).fit(dense)
    a = expit(np.exp(1.0))
    assert_allclose(result.priors_, [(3 * a + 1 - a) / 4, (a + 3 * (1 - a)) / 4])
    assert_allclose(result.probas_[4], result.priors_)
    assert_array_equal(Glad(max_iter=1, tol=-np.inf).fit(dense).priors_, [0.5, 0.5])


def test_stops_when_the_objective_rises_by_less_than_tol_an_annotation(crowd: Annotations) -> None:
    result = Glad(tol=1e-3).fit(crowd)
    rises = np.diff(result.history_) / crowd.num_annotations
    assert result.converged_
    assert result.n_iter_ > 2
    assert rises[-1] < 1e-3 <= rises[:-1].min()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_skills_are_averaged_over_annotated_instances_and_ties_drawn_by_the_seed() -> None:
    # Ability a over difficulties exp(-b): the mean of s(a exp(b)) over the annotated; 40 others
    # would pull it to their prior's.
    dense = np.full((60, 4), -1)
    dense[:20] = default_rng(0).integers(0, 2, (20, 4))
    result = Glad().fit(dense)
    exact = expit(result.abilities_[:, None] / result.difficulties_[None, :20]).mean(axis=1)
    assert_allclose(result.skills_, exact, atol=5e-3)
    # Two annotators who disagree on every instance, and alike: all ties.
    tied = np.tile([0, 1], (40, 1))
    one, two = (Glad(ties="random", seed=seed, max_iter=1).fit(tied) for seed in (1, 2))
    assert_allclose(one.probas_, 0.5)
    assert (one.labels_ != two.labels_).any()


def test_gradient_agrees_with_finite_differences(make_crowd: Callable) -> None:
    crowd, _ = make_crowd(2, instances=20, annotators=5, labels_each=4)
    rng = default_rng(0)
    model, right, theta = _Model(crowd), rng.random(80), rng.normal(0, 1.5, 25)
    numeric = optimize.approx_fprime(theta, lambda t: model.expected(t, right)[0], 1e-6)
    assert_allclose(model.expected(theta, right)[1], numeric, rtol=1e-4, atol=1e-4)


def test_finds_abilities_difficulties_and_labels() -> None:
    rng = default_rng(4)
    ability, easiness = rng.uniform(-0.5, 3, 40), rng.normal(0.3, 1, 400)
    truth = rng.integers(0, 2, 400)
    right = rng.random((400, 40)) < expit(ability * np.exp(easiness)[:, None])
    dense = np.where(
        rng.random((400, 40)) < 0.4, np.where(right, truth[:, None], 1 - truth[:, None]), -1
    )
    result = Glad().fit(dense)
    assert np.corrcoef(result.abilities_, ability)[0, 1] > 0.95
    assert stats.spearmanr(result.difficulties_, -easiness).statistic > 0.5
    assert (result.labels_ == truth).mean() > (MajorityVote().fit(dense).labels_ == truth).mean()
    expected = expit(ability[:, None] * np.exp(easiness)).mean(axis=1)
    assert np.abs(result.skills_ - expected).mean() < 0.05
