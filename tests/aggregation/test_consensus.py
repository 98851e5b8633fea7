"""Consensus: when annotators err together, when they don't, and how held-out labels are scored."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.aggregation import (
    EBCC,
    Consensus,
    DawidSkene,
    Glad,
    MajorityVote,
    Wawa,
    many_classes,
)
from neucrowd_tf.aggregation.annotator_offset import annotator_offsets
from neucrowd_tf.aggregation.consensus import (
    CANDIDATES,
    deal,
    geometric_mean,
    held_out_logs,
    moved,
    overturned,
    read_out,
)
from neucrowd_tf.aggregation.shrunk_dawid_skene import ShrunkDawidSkene
from neucrowd_tf.annotations import Annotations
from tests.crowds import Labelled, array_of, noisy_labels, one_hot, softmax

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def _together(seed: int) -> Labelled:
    """Annotators of two kinds: twelve of twenty are all misled by the same third of the instances
    of class 1.
    """
    rng = default_rng(seed)
    truth = (rng.random(600) < 0.5).astype(int)
    misleading = (truth == 1) & (rng.random(600) < 0.35)
    right = np.full((600, 20), 0.9)
    right[np.ix_(misleading, np.arange(12))] = 0.15
    labels = noisy_labels(rng, truth, 20, right)
    return Annotations.from_dense(np.where(rng.random((600, 20)) < 0.5, labels, -1)), truth


def test_annotators_who_err_together_are_told_by_the_bound() -> None:
    crowd, _ = _together(0)
    result = Consensus().fit(crowd)
    assert result.chosen_ == ("ebcc",)
    assert result.gain_ > 5
    assert result.scores_ == {}
    joint = EBCC(restarts=10, tol=1e-5).fit(crowd).probas_
    offsets = annotator_offsets(crowd).probas
    weights = (1 - 100 / 600, 100 / 600)  # offsets count as in 100 of 600 instances
    expected = geometric_mean(joint, offsets, weights=weights)
    assert_allclose(result.probas_, expected, rtol=1e-12)


def test_independent_annotators_are_averaged_over_the_best_methods(
    crowd: Annotations, truth: np.ndarray
) -> None:
    result = Consensus().fit(crowd)
    assert result.gain_ < 5
    assert len(result.chosen_) == 3
    worst_chosen = min(result.scores_[name] for name in result.chosen_)
    assert sum(score > worst_chosen for score in result.scores_.values()) == 2
    right = (result.labels_ == truth).mean()
    rivals = [MajorityVote(), DawidSkene(), Glad()]
    assert right >= max((m.fit(crowd).labels_ == truth).mean() for m in rivals) - 0.01


def test_methods_that_merge_classes_are_left_out() -> None:
    rng = default_rng(0)
    truth = np.arange(120)[:, None] % 6
    labels = np.where(rng.random((120, 2)) < 0.3, truth, rng.integers(6, size=(120, 2)))
    once = rng.permutation(240)  # annotators have one label each
    crowd = Annotations(np.repeat(np.arange(120), 2), once, labels.ravel(), num_classes=6)
    votes, merging = crowd.vote_counts(), (DawidSkene(smoothing=1.0, tol=1e-5), ShrunkDawidSkene())
    for method in merging:
        inferred = method.fit(crowd).labels_
        assert overturned(votes, inferred) > 0.4
        assert moved(votes, inferred) > 0.6
    result = Consensus().fit(crowd)
    assert "dawid_skene, smoothing 1" not in result.chosen_
    assert overturned(votes, result.labels_) < 0.05


def test_overturned_and_moved_by_hand() -> None:
    votes, labels = array_of("2 0; 3 0; 1 0; 1 1"), array_of("1 0 1 1")
    assert overturned(votes, labels) == 0.5  # of the first two instances
    assert overturned(votes, array_of("1 -1 -1 -1")) == 1.0
    assert moved(votes, labels) == pytest.approx(5 / 8)  # shares 7/8 and 1/8, then 1/4 and 3/4


def test_held_out_logs_by_hand() -> None:
    # One annotator said 0, 0, 1 of instances believed to be 0, 0, 1 for sure: with no pull its
    # matrix is the identity (but for .001), so that a further 0 for an instance believed to be 0
    # with .8 has probability .8.
    crowd = Annotations([0, 1, 2], [0, 0, 0], [0, 0, 1], num_instances=4)
    probas = array_of("1 0; 1 0; 0 1; 0.8 0.2")
    assert_allclose(read_out(crowd, probas, 0.0)[0], np.eye(2), atol=2e-3)
    held = Annotations([3], [0], [0], num_instances=4, num_classes=2)
    assert held_out_logs(crowd, held, probas, 0.0) == pytest.approx(np.log(0.8), abs=2e-3)
    # Pulled without end towards everyone's, the same matrix here.
    assert held_out_logs(crowd, held, probas, 1e6) == pytest.approx(np.log(0.8), abs=2e-3)


def test_a_large_crowd_is_decided_with_less_work(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = default_rng(0)
    truth = rng.integers(3, size=400)
    right = rng.random((400, 8)) < np.linspace(0.5, 0.9, 8)
    dense = np.where(right, truth[:, None], rng.integers(3, size=(400, 8)))
    crowd = Annotations.from_dense(np.where(rng.random((400, 8)) < 0.6, dense, -1))
    plain = Consensus(restarts=2).fit(crowd)
    monkeypatch.setattr("neucrowd_tf.aggregation.consensus.LARGE", 0)
    quick = Consensus(restarts=2).fit(crowd)
    assert quick.scores_ == plain.scores_ and quick.gain_ == 0.0
    assert_array_equal(quick.probas_, plain.probas_)
    monkeypatch.setattr("neucrowd_tf.aggregation.consensus.ENOUGH", 700)
    fits: list[int] = []
    monkeypatch.setitem(CANDIDATES, "wawa", lambda seed: fits.append(seed) or Wawa(seed=seed))
    less = Consensus(restarts=2).fit(crowd)
    assert len(fits) == 2  # of five parts, with 380 labels each
    assert set(less.chosen_) == set(plain.chosen_)
    assert_allclose(list(less.scores_.values()), list(plain.scores_.values()), atol=0.05)
    together, _ = _together(0)
    assert Consensus().fit(together).chosen_ == ("ebcc",)


@pytest.mark.parametrize(("annotators", "counts"), [(60, True), (10, False)])
def test_weighted_votes_count_where_annotators_have_few_labels(
    annotators: int, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = default_rng(0)
    who = np.concatenate([rng.permutation(annotators)[:3] for _ in range(60)])
    crowd = Annotations(np.repeat(np.arange(60), 3), who, rng.integers(2, size=180))
    combined = []

    def record(*probas: np.ndarray, weights=None) -> np.ndarray:
        combined.append(probas)
        return geometric_mean(*probas)

    monkeypatch.setattr("neucrowd_tf.aggregation.consensus.geometric_mean", record)
    Consensus(restarts=2).fit(crowd)
    votes = Wawa(seed=0).fit(crowd).probas_
    assert any(np.array_equal(one, votes) for one in combined[0]) == counts


def test_annotations_of_an_instance_are_dealt_out_evenly(crowd: Annotations) -> None:
    folds = deal(crowd, 5, 0)
    for instance in range(20):
        assert sorted(folds[crowd.instances == instance]) == [0, 1, 2, 3, 4]
    assert (deal(crowd, 5, 1) != folds).any()


def _one_coin(
    crowd: Annotations, gold: np.ndarray, iterations: int
) -> tuple[np.ndarray, np.ndarray]:
    """Beliefs from the odds of skills, and skills from beliefs and two labels more."""
    size = crowd.num_classes
    labels = one_hot(crowd.to_dense(), size)
    votes = labels.sum(axis=1)
    beliefs = votes / votes.sum(axis=1, keepdims=True)
    typical = np.clip(votes[votes > 1].sum() / votes.sum(), 2 / (size + 1), 0.99)
    for _ in range(iterations):
        right = np.einsum("irc,ic->r", labels, beliefs) + 2 * typical
        skills = right / (labels.sum(axis=(0, 2)) + 2)
        odds = np.log(skills * (size - 1) / (1 - skills))
        beliefs = softmax(np.einsum("irc,r->ic", labels, odds))
        beliefs[gold >= 0] = np.eye(size)[gold[gold >= 0]]
    return beliefs, skills


def test_one_coin_over_named_classes_is_that_of_all(
    crowd: Annotations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_classes, "MOST_ITER", 3)
    wide = crowd.align(class_names=[0, 1, 2, 3, 4])
    gold = np.where(np.arange(wide.num_instances) < 4, 4, -1)  # of which nobody named class 4
    probas, skills = many_classes.sparse_one_coin(wide, gold)
    expected = _one_coin(wide, gold, 3)
    assert_allclose(probas, expected[0])
    assert_allclose(skills, expected[1])


def test_an_annotators_repeated_labels_do_not_confirm_each_other() -> None:
    items = np.repeat(np.arange(50), 2)
    annotators = np.arange(100) % 2
    labels = 2 * items + annotators
    labels[0] = 2  # both labels of one annotator for one item are different
    items[1] = annotators[1] = 0
    triples = np.stack([items, annotators, labels])
    once = Annotations(*triples, duplicates="all")
    twice = Annotations(*np.repeat(triples, 2, axis=1), duplicates="all")
    assert twice.num_annotations == 2 * once.num_annotations
    probas, skills = many_classes.sparse_one_coin(twice)
    assert_allclose(probas, many_classes.sparse_one_coin(once)[0])
    assert (skills < 0.05).all()


def test_many_classes_beat_the_vote_by_annotators_skills() -> None:
    rng = default_rng(0)
    truth = rng.integers(1000, size=400)
    dense = np.full((400, 30), -1)
    for row, true in enumerate(truth):
        who = rng.choice(30, 5, replace=False)
        skilled = rng.random(5) < np.where(who < 6, 0.95, 0.35)
        dense[row, who] = np.where(skilled, true, rng.integers(1000, size=5))
    crowd = Annotations.from_dense(dense, num_classes=1000)
    gold = np.where(np.arange(400) < 5, (truth + 1) % 1000, -1)
    model = Consensus().fit(crowd, gold)
    votes = crowd.vote_counts().argmax(axis=1)
    assert (model.labels_[5:] == truth[5:]).mean() > (votes[5:] == truth[5:]).mean()
    assert (model.labels_[:5] == gold[:5]).all() and model.errors_ is None
    assert np.allclose(model.probas_.sum(axis=1), 1.0)
    assert model.skills_[:6].min() > model.skills_[6:].max()
