"""Dawid-Skene: one step by hand, the objective by formula, the bound, gold, priors, crowd-kit."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from crowdkit.aggregation import DawidSkene as CrowdKitDawidSkene
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from neucrowd_tf.aggregation import DawidSkene
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import DataError, UsageError
from tests.cases import raises
from tests.crowds import array_of, one_hot

HAND = array_of("0 0; 1 1; 0 1")


def _log_posterior(outcome: DawidSkene, crowd: Annotations, smoothing: float) -> float:
    """The objective, recomputed from the fitted parameters."""
    logs = np.log(outcome.errors_)
    labels = one_hot(crowd.to_dense(), crowd.num_classes)
    joint = outcome.priors_ * np.exp(np.einsum("irl,rcl->ic", labels, logs))
    return smoothing * logs.sum() + np.log(joint.sum(axis=1)).sum()


def test_one_iteration_by_hand() -> None:
    # Start: votes give (1,0), (0,1), (.5,.5). Without smoothing the first M-step gives both
    # annotators the prior (.5, .5) and annotator 0: true 0 -> 0 in 1 + .5 of 1.5; true 1 -> 1 in 1,
    # 0 in .5 of 1.5: [[1, 0], [1/3, 2/3]] annotator 1: true 0 -> 0 in 1, 1 in .5 of 1.5; true 1 ->
    # 1 in 1.5 of 1.5: [[2/3, 1/3], [0, 1]]. E-step: (0,0): 1 * 2/3 against 1/3 * 0 -> (1, 0);
    # (1,1): 0 against 2/3 -> (0, 1); (0,1): 1 * 1/3 against 1/3 * 1 -> (.5, .5). Likelihood: .5 *
    # 2/3 = 1/3, 1/3, .5 * (1/3 + 1/3) = 1/3: log 1/27.
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 iterations"):
        outcome = DawidSkene(smoothing=0.0, max_iter=1).fit(HAND)
    assert_allclose(outcome.errors_, [[[1, 0], [1 / 3, 2 / 3]], [[2 / 3, 1 / 3], [0, 1]]])
    assert_allclose(outcome.probas_, array_of("1 0; 0 1; 0.5 0.5"), atol=1e-12)
    assert_allclose(outcome.priors_, [0.5, 0.5])
    assert_allclose(outcome.history_, [np.log(1 / 27)])
    assert_allclose(outcome.skills_, array_of("5/6 5/6"))


def test_one_coin_by_hand() -> None:
    # Both annotators agree with the start in 1 + 1 + .5 of 3 labels; smoothing .3 a class: (2.5 +
    # .3) / (3 + .6) = 7/9.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        outcome = DawidSkene(smoothing=0.3, one_coin=True, max_iter=1).fit(HAND)
    assert_allclose(outcome.errors_, np.tile([[7 / 9, 2 / 9], [2 / 9, 7 / 9]], (2, 1, 1)))
    # (7/9)^2 against (2/9)^2: 49 / 53.
    assert_allclose(outcome.probas_[0], array_of("49/53 4/53"))


def test_history_is_the_log_posterior(crowd: Annotations) -> None:
    outcome = DawidSkene(smoothing=0.1).fit(crowd)
    assert outcome.converged_
    assert outcome.history_[-1] == pytest.approx(_log_posterior(outcome, crowd, 0.1))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_agrees_with_crowd_kit(classes: int, make_crowd: Callable) -> None:
    """The same number of steps from the same start, without smoothing (crowd-kit floors counts at
    1e-10).
    """
    crowd, _ = make_crowd(2, instances=400, annotators=20, classes=classes, labels_each=6)
    theirs = CrowdKitDawidSkene(n_iter=15, tol=-np.inf).fit(crowd.to_frame())
    ours = DawidSkene(smoothing=0, max_iter=15, tol=-np.inf).fit(crowd)
    assert_allclose(
        ours.probas_, theirs.probas_.loc[crowd.instance_names, crowd.class_names], atol=1e-6
    )
    assert_array_equal(ours.labels_, theirs.labels_.loc[crowd.instance_names])
    # Their errors are from one M-step more; index (worker, observed), columns true class.
    errors = DawidSkene(smoothing=0, max_iter=16, tol=-np.inf).fit(crowd).errors_
    for (worker, observed), row in theirs.errors_.iterrows():
        assert_allclose(errors[worker, :, observed], row[list(range(classes))], atol=1e-6)


def test_gold_labels_teach(crowd: Annotations, truth: np.ndarray) -> None:
    gold = {int(task): int(truth[task]) for task in range(0, 300, 2)}
    outcome = DawidSkene().fit(crowd, gold)
    rest = np.arange(1, 300, 2)
    assert (outcome.labels_[rest] == truth[rest]).mean() >= (
        DawidSkene().fit(crowd).labels_[rest] == truth[rest]
    ).mean() - 0.01
    flipped = DawidSkene().fit(
        crowd, (truth + 1) % 3
    )  # every label gold, and all wrong: the annotators look bad
    assert flipped.skills_.mean() < 0.3


def test_prior_held(crowd: Annotations) -> None:
    assert_array_equal(DawidSkene(prior="uniform").fit(crowd).priors_, np.full(3, 1 / 3))
    assert_allclose(DawidSkene(prior=[0.3, 0.2, 0.5]).fit(crowd).priors_, [0.3, 0.2, 0.5])
    raises(DataError, "expected 3 probabilities", DawidSkene(prior=[0.5, 0.6, 0.2]).fit, crowd)
    raises(UsageError, "'flat'", DawidSkene(prior="flat").fit, crowd)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    hnp.arrays(
        np.int64, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=st.integers(-1, 3)
    )
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_crowd_gives_finite_results_that_do_not_depend_on_the_order(dense: np.ndarray) -> None:
    if (dense < 0).all():
        raises(DataError, "at least one annotation", DawidSkene().fit, dense)
        return
    outcome = DawidSkene(max_iter=30).fit(Annotations.from_dense(dense, num_classes=4))
    for name in ("probas_", "priors_", "errors_", "skills_", "history_"):
        assert np.isfinite(getattr(outcome, name)).all()
    assert (np.diff(outcome.history_) >= -1e-8 * (1 + np.abs(outcome.history_[:-1]))).all()
    rows, columns = (default_rng(0).permutation(size) for size in dense.shape)
    mixed = DawidSkene(max_iter=30).fit(
        Annotations.from_dense(dense[rows][:, columns], num_classes=4)
    )
    assert_allclose(mixed.probas_, outcome.probas_[rows], atol=1e-6)
