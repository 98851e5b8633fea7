"""The newer methods: values worked out by hand, their formulas, agreement with crowd-kit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from crowdkit import aggregation as crowdkit
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma

from neucrowd_tf.aggregation import (
    BWA,
    EBCC,
    IBCC,
    DawidSkene,
    GoldMajorityVote,
    IterativeWeightedMajorityVote,
    Kos,
    Mace,
    Mmsr,
    Wawa,
    ZeroBasedSkill,
)
from neucrowd_tf.aggregation.ebcc import EBCCModel
from neucrowd_tf.aggregation.ibcc import diagonal_counts
from neucrowd_tf.aggregation.sums import Shard, run
from neucrowd_tf.annotations import Annotations
from tests.crowds import array_of, noisy_labels, one_hot, softmax

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

HAND = array_of("0 0 1; 1 1 1; 0 1 1; 0 0 0")


def test_wawa_by_hand() -> None:
    # The votes are 0, 1, 1, 0: annotator 0 agrees in 3 of 4, annotator 1 in all, annotator 2 in 3.
    result = Wawa().fit(HAND)
    assert_allclose(result.skills_, array_of("3/4 1 3/4"))
    assert_allclose(result.probas_[:, 0], array_of("1.75/2.5 0 0.75/2.5 1"))


def test_full_ties_follow_the_rule() -> None:
    # Instance 1 is a tie of all classes, and 1 is the commoner class. With "first" its vote is 0:
    # annotator 0 agrees with the votes 1, 0, 1 in two of three cases, annotator 1 always.
    dense = array_of("1 1; 1 0; 1 1")
    for rule, skills in (("first", [2 / 3, 1]), ("prior", [1, 2 / 3])):
        assert_allclose(Wawa(ties=rule).fit(dense).skills_, skills)
        result = ZeroBasedSkill(ties=rule, max_iter=1).fit(dense)
        assert_allclose(result.skills_, skills)
        result = IterativeWeightedMajorityVote(ties=rule).fit(dense)
        assert_allclose(result.weights_, 2 * np.array(skills) - 1)


def test_weights_that_cancel_are_a_tie() -> None:
    # Both annotators weigh -.5 each: no class has votes above the least, yet there are votes.
    shard = Shard(Annotations.from_dense(array_of("0 1; 1 1")).one_hot(), 2)
    assert_array_equal(Wawa(ties="first")._labels(shard, array_of("-0.5 -0.5")), [0, 0])


def test_iwmv_by_hand() -> None:
    # Weights 2 p - 1 = .5, 1, .5; the votes stay, so that the second vote ends it. Instance 0:
    # 1.5 against .5.
    result = IterativeWeightedMajorityVote().fit(HAND)
    assert_allclose(result.weights_, [0.5, 1, 0.5])
    assert_allclose(result.probas_[:, 0], [0.75, 0, 0.25, 1])
    assert result.converged_
    assert result.n_iter_ == 1


def test_gold_majority_vote_by_hand() -> None:
    # Of instances 0 (truth 1) and 1 (truth 1): annotators 0 and 1 are right once of twice, 2
    # always.
    result = GoldMajorityVote().fit(HAND, {0: 1, 1: 1})
    assert_allclose(result.skills_, [0.5, 0.5, 1])
    assert_allclose(result.probas_[2:, 0], [0.25, 1])
    assert_array_equal(result.labels_, [1, 1, 1, 0])


def test_kos_by_hand() -> None:
    # One round from messages of one: instance 0 (labels -, -, +) tells each annotator the others'
    # sum: 0, 0, -2; annotators hear from the other instances and answer.
    signs = np.where(HAND == 1, 1.0, -1.0)
    beliefs = signs.sum(axis=1, keepdims=True) - signs
    heard = signs * beliefs
    answers = heard.sum(axis=0) - heard
    assert_array_equal((signs * answers).sum(axis=1) > 0, [False, True, True, False])
    assert_array_equal(Kos().fit(HAND).labels_, [0, 1, 1, 0])


def _ibcc(crowd: Annotations, iterations: int) -> np.ndarray:
    labels = one_hot(crowd.to_dense(), 3)
    z = labels.sum(axis=1) / labels.sum(axis=(1, 2))[:, None]
    for _ in range(iterations):
        counts = np.einsum("ic,iry->rcy", z, labels) + np.eye(3) * 3 + 1
        logs = digamma(counts) - digamma(counts.sum(axis=2, keepdims=True))
        z = softmax(digamma(z.sum(axis=0) + 1) + np.einsum("iry,rcy->ic", labels, logs))
    return z


def test_ibcc_is_its_updates(make_crowd: Callable) -> None:
    crowd, _ = make_crowd(1, instances=40, annotators=6)
    result = IBCC(max_iter=5, tol=-np.inf).fit(crowd)
    assert_allclose(result.probas_, _ibcc(crowd, 5), atol=1e-9)


def test_ebcc_with_one_group_is_ibcc(crowd: Annotations) -> None:
    """One group a class has a share of one, whose divergence is zero."""
    shard = Shard(crowd.one_hot(), 3)
    prior = diagonal_counts(3, 4.0, 1.0)
    joint = run(EBCCModel(prior, np.ones(3), 1, 0, 1), shard, max_iter=20, tol=-np.inf)
    alone = IBCC(max_iter=20, tol=-np.inf).fit(crowd)
    assert_allclose(joint.beliefs, alone.probas_, atol=1e-9)
    assert_allclose(joint.history, alone.history_)


def test_ebcc_keeps_the_best_bound(crowd: Annotations) -> None:
    result = EBCC(restarts=6).fit(crowd)
    assert result.bounds_.shape == (6,)
    assert result.history_[-1] == result.bounds_.max()


def test_bwa_agrees_with_the_paper_s_updates_on_dense_arrays(make_crowd: Callable) -> None:
    crowd, _ = make_crowd(2, instances=30, annotators=6)
    dense = crowd.to_dense()
    observed = dense >= 0
    values = np.empty((30, 3))
    for c in range(3):
        says = dense == c
        z = says.sum(axis=1) / observed.sum(axis=1)
        variance = (observed.sum(axis=1) * z * (1 - z)).sum() / observed.sum()
        rate = 15 * 4 * (1 - 1 / 3) * variance
        for _ in range(4):
            apart = (observed * (z[:, None] - says) ** 2).sum(axis=0)
            v = (15 + observed.sum(axis=0)) / (rate + apart)
            z = (z.mean() + says @ v) / (1 + observed @ v)
        values[:, c] = z
    result = BWA(max_iter=4, tol=-np.inf).fit(crowd)
    assert_allclose(result.probas_, values / values.sum(axis=1, keepdims=True), atol=1e-9)


def test_mace_finds_who_knows_and_what_spammers_say() -> None:
    rng = default_rng(0)
    truth = rng.integers(0, 3, 500)
    theta = array_of("0.9 0.8 0.7 0.6 0.1 0.0")
    labels = np.where(rng.random((500, 6)) < theta, truth[:, None], 2)
    for method in ("vb", "em"):
        result = Mace(method=method).fit(labels)
        assert_allclose(result.competences_, theta, atol=0.08)
        assert (result.habits_[3:, 2] > 0.85).all()
        assert (result.labels_ == truth).mean() > 0.93


def test_mace_agrees_with_crowd_kit(make_crowd: Callable) -> None:
    """crowd-kit gives annotators and labels the habits of others unless their sorted order is that
    in which they appear, so they are named by that.
    """
    crowd, _ = make_crowd(7, instances=150, annotators=15, classes=3, labels_each=5)
    frame = crowd.to_frame()
    codes, labels = pd.factorize(frame["label"])
    frame["label"], frame["worker"] = codes, pd.factorize(frame["worker"])[0]
    theirs = crowdkit.MACE(n_restarts=1, n_iter=50).fit(frame).labels_.loc[crowd.instance_names]
    assert (Mace().fit(crowd).labels_ == labels[theirs.to_numpy()]).mean() > 0.98


def test_kos_and_mmsr_agree_with_crowd_kit(make_crowd: Callable) -> None:
    crowd, _ = make_crowd(4, instances=200, annotators=15, classes=2, labels_each=7)
    frame = crowd.to_frame()
    kos = crowdkit.KOS(n_iter=20).fit_predict(frame).loc[crowd.instance_names]
    assert (Kos().fit(crowd).labels_ == kos.to_numpy()).mean() > 0.98
    theirs = crowdkit.MMSR().fit(frame)
    ours = Mmsr().fit(crowd)
    assert ours.converged_
    expected = theirs.predict(frame).loc[crowd.instance_names].to_numpy()
    assert (ours.labels_ == expected).mean() >= 0.95
    weights = theirs.skills_.loc[crowd.annotator_names].to_numpy()
    assert np.corrcoef(ours.weights_, weights)[0, 1] > 0.9


def test_mmsr_trims_half_of_the_least_connected() -> None:
    # All 8 annotators meet: degrees are 7, so that 7 // 2 - 1 = 2 values are trimmed at either end.
    # Row 0's product with two others is off: without trimming the factors would follow.
    skills = array_of("0.9 0.8 0.7 0.6 0.5 0.8 0.7 0.6")
    magnitudes = np.outer(skills, skills)
    magnitudes[0, 1] = magnitudes[1, 0] = magnitudes[0, 2] = magnitudes[2, 0] = 0.0
    observed = ~np.eye(8, dtype=bool)
    assert_allclose(Mmsr()._complete(magnitudes, observed), skills, atol=1e-3)


def test_mmsr_is_not_moved_by_adversaries() -> None:
    rng = default_rng(1)
    truth = rng.integers(0, 2, 400)
    good = noisy_labels(rng, truth, 12, 0.75)
    bad = np.tile((1 - truth)[:, None], (1, 4))
    result = Mmsr().fit(np.hstack([good, bad]))
    assert (result.labels_ == truth).mean() > 0.95
    assert (result.weights_[12:] < 0).all()


def test_fast_dawid_skene_by_hand() -> None:
    # Votes 0, 1, 1, 0; smoothing 0: annotator 0 says 0 to both of class 0, and 1, 0 to class 1;
    # annotator 1 is always right; annotator 2 says 1, 0 to class 0, 1, 1 to class 1.
    result = DawidSkene(hard=True, smoothing=0.0).fit(HAND)
    assert_allclose(result.errors_, [[[1, 0], [0.5, 0.5]], [[1, 0], [0, 1]], [[0.5, 0.5], [0, 1]]])
    assert_array_equal(result.labels_, [0, 1, 1, 0])
    # log(1/2) for each instance's class, and log(1/2) for each of four uncertain labels.
    assert result.history_[-1] == pytest.approx(8 * np.log(0.5))
