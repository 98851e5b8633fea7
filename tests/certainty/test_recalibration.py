"""Recalibrated probabilities, gold labels and annotators' skills."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from scipy.special import expit, logit

from benchmarks.certainty.calibration import learn, shifts
from benchmarks.certainty.crowds import Crowd
from neucrowd_tf.aggregation import Consensus, ShrunkDawidSkene
from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.certainty import Calibration, annotator_skills, gold_agreement
from neucrowd_tf.certainty.inference import infer
from neucrowd_tf.certainty.recalibration import evidence, spread_of, unlike
from tests.cases import cases
from tests.crowds import Labelled, array_of


def crowd(seed: int = 0, each: int = 5, accuracy: float = 0.7) -> Labelled:
    rng = default_rng(seed)
    truth = rng.integers(3, size=400)
    matrices = simulation.confusion_annotators(30, 3, seed, accuracy=accuracy)
    return simulation.simulate(truth, matrices, seed, rates=each / 30), truth


def test_evidence_by_hand() -> None:
    # Krippendorff's alpha of one item is 0, 0.2 below the limit; it has four labels.
    features = evidence(array_of("0.9 0.1;"), array_of("3 1;"))
    expected = [np.log(9), logit((3 + 0.5) / 5), -0.2, np.log(4), 0.0]
    assert features == pytest.approx(np.array([expected]))
    four = evidence(array_of("0.9 0.1 0.0 0.0;"), array_of("3 1 0 0;"))
    assert four[0, 4] == pytest.approx(-0.2 * np.log(2))


def test_a_probability_by_hand() -> None:
    calibration = Calibration(array_of("0.1 0.5 0.2 1.0 0.3 9.0"), np.zeros(2), np.eye(2) * 0.01)
    certainty = calibration.apply(array_of("0.9 0.1;"), array_of("3 1;"))
    right = expit(0.1 + 0.5 * np.log(9) + 0.2 * logit(0.7) - 0.2 + 0.3 * np.log(4))
    assert certainty.probas == pytest.approx(np.array([[right, 1 - right]]))


def test_labels_do_not_change_and_rows_sum_to_one() -> None:
    labels, _ = crowd()
    model = Consensus().fit(labels)
    certainty = Calibration.learned().apply(model.probas_, labels.vote_counts())
    assert (certainty.probas.argmax(axis=1) == model.probas_.argmax(axis=1)).all()
    assert certainty.probas.sum(axis=1) == pytest.approx(np.ones(400))
    assert (certainty.probas > 0).all()


def test_rows_of_ordered_classes_sum_to_one_where_another_class_is_as_probable() -> None:
    dense = np.clip(np.arange(60)[:, None] % 3 + default_rng(0).integers(-1, 2, (60, 2)), 0, 2)
    result = infer(Annotations.from_dense(dense), "ordinal", skills=False)
    assert result.certainty.num_tied.max() == 1 < result.certainty.tied.sum(axis=1).max()
    assert result.probas.sum(axis=1) == pytest.approx(1.0)
    assert (result.probas.argmax(axis=1) == result.labels).all()


def test_gold_labels_are_certain_and_never_contradicted() -> None:
    labels, _truth = crowd()
    model = ShrunkDawidSkene().fit(labels)
    wrong = (model.labels_ + 1) % 3
    gold = np.where(np.arange(400) < 50, wrong, -1)
    certainty = Calibration.learned().apply(model.probas_, labels.vote_counts(), gold)
    assert (certainty.probas[:50].argmax(axis=1) == wrong[:50]).all()
    assert certainty.probas[:50].max(axis=1) == pytest.approx(np.ones(50))


@pytest.mark.parametrize("correct", [True, False])
def test_gold_labels_move_the_expected_accuracy(correct: bool) -> None:
    labels, _ = crowd()
    probas, votes = ShrunkDawidSkene().fit(labels).probas_, labels.vote_counts()
    inferred = probas.argmax(axis=1)
    gold = np.full(400, -1)
    gold[:100] = inferred[:100] if correct else (inferred[:100] + np.arange(100) % 2) % 3
    before = Calibration.learned()
    after = before.fitted(probas, votes, gold)
    first, second = (each.apply(probas, votes).accuracy() for each in (before, after))
    assert (second.value > first.value) is correct
    assert second.high - second.low < 0.7 * (first.high - first.low)


def test_the_shift_is_the_posterior_mode() -> None:
    labels, truth = crowd()
    probas, votes = ShrunkDawidSkene().fit(labels).probas_, labels.vote_counts()
    gold = np.where(np.arange(400) < 80, truth, -1)
    start = Calibration.learned()
    after = start.fitted(probas, votes, gold)
    z = start.logits(probas, votes)[:80]
    right = probas[:80].argmax(axis=1) == truth[:80]

    def log_posterior(shift: np.ndarray) -> float:
        chances = expit(z + shift[0] + shift[1] * z)
        prior = -0.5 * shift @ np.linalg.inv(start.widened(votes).covariance) @ shift
        return float(np.log(np.where(right, chances, 1 - chances)).sum() + prior)

    best = log_posterior(after.shift)
    for step in cases("""
[0.02, 0],
[-0.02, 0],
[0, 0.02],
[0, -0.02]
"""):
        assert log_posterior(after.shift + np.array(step)) < best


def test_agreement_with_gold_labels_by_hand() -> None:
    probas = array_of("0.9 0.1; 0.2 0.8; 0.6 0.4; 0.5 0.5")
    votes = array_of("1 0; 0 1; 1 0; 0 0")
    agreed, total, share = gold_agreement(probas, votes, array_of("0 0 -1 1"))
    assert (agreed, total, share.value) == (1, 2, 0.5)
    assert 0 < share.low < 0.5 < share.high < 1


def test_an_unlike_crowd_is_noted_and_widened() -> None:
    labels, _ = crowd(each=5)
    votes = labels.vote_counts()
    assert unlike(votes) == []
    single = np.eye(3, dtype=int)[votes.argmax(axis=1)]
    assert "labels per item" in " ".join(unlike(single))
    probas = ShrunkDawidSkene().fit(labels).probas_
    calibration = Calibration.learned()
    wide, narrow = (calibration.apply(probas, each) for each in (single, votes))
    ratio = np.diag(wide.calibration.covariance) / np.diag(narrow.calibration.covariance)
    spreads = [spread_of(each) for each in (single, votes)]
    assert ratio == pytest.approx([4.0 * spreads[0] / spreads[1]] * 2)


def test_less_agreement_widens_and_gold_labels_do_not_widen_again() -> None:
    alike, apart = np.tile([[4, 0], [0, 4]], (40, 1)), np.tile([[2, 2], [2, 2]], (40, 1))
    assert spread_of(alike) == 1 and spread_of(apart) == pytest.approx(np.exp(2))
    labels, truth = crowd()
    probas, votes = ShrunkDawidSkene().fit(labels).probas_, labels.vote_counts()
    fitted = Calibration.learned().fitted(probas, votes, truth)
    assert fitted.widened(votes) is fitted


def test_crowds_count_by_family_and_agreement() -> None:
    crowds, gaps = [], []  # the slope of the intercept, which has no penalty, is 0
    for seed, accuracy in enumerate((0.9, 0.8, 0.6)):
        labels, truth = crowd(seed, accuracy=accuracy)
        probas = {"consensus": ShrunkDawidSkene().fit(labels).probas_}
        crowds.append(Crowd(str(seed), "ab"[seed == 2], "first", "full", labels, truth, probas))
    for one, members in zip(crowds, (2, 2, 1), strict=True):
        expected = expit(learn(crowds).logits(one.probas["consensus"], one.votes))[one.rows]
        gaps.append((expected - one.right()).mean() / members / spread_of(one.votes))
    assert sum(gaps) == pytest.approx(0, abs=1e-5) and max(map(abs, gaps)) > 1e-3


def test_skills_find_spammers_and_adversaries() -> None:
    rng = default_rng(1)
    truth = rng.integers(3, size=300)
    good = simulation.confusion_annotators(14, 3, 1, accuracy=0.85)
    bad = np.concatenate([simulation.spammers(3, 3, 1), simulation.adversaries(3, 3, 1)])
    labels = simulation.simulate(truth, np.concatenate([good, bad]), 1, rates=0.3)
    model = Consensus().fit(labels)
    skills = annotator_skills(
        labels, Calibration.learned().apply(model.probas_, labels.vote_counts())
    )
    assert (skills.note[14:] == "unreliable").all()
    assert (skills.note[:14] == "").all()
    assert (skills.low <= skills.skill).all() and (skills.skill <= skills.high).all()


def test_annotators_without_comparison_get_no_verdict() -> None:
    # a and b share twelve items; c labels items of its own; d has three shared items.
    triples = [(i, r, i % 2) for i in range(12) for r in (0, 1)]
    triples += [(12 + i, 2, i % 2) for i in range(12)] + [(i, 3, 1 - i % 2) for i in range(3)]
    triples += [(i, 4, 0) for i in range(0, 12, 2)] + [(24 + i, 4, 0) for i in range(8)]
    triples += [(24 + i, 0, 0) for i in range(8)]
    columns = np.array(triples, dtype=np.int32).T
    labels = Annotations(*columns, num_annotators=5, num_classes=2)
    model = ShrunkDawidSkene().fit(labels)
    skills = annotator_skills(
        labels, Calibration.learned().apply(model.probas_, labels.vote_counts())
    )
    assert skills.note.tolist() == ["", "", "no shared items", "few labels", "one class only"]


def test_an_annotators_repeated_labels_are_compared_with_nobody() -> None:
    rows = [(i, r, i % 2) for i in range(12) for r in (0, 1)]
    rows += [(12 + i, 2, i % 2) for i in range(12)] * 2
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    labels = Annotations.from_frame(frame, duplicates="all")
    certainty = Calibration.learned().apply(
        ShrunkDawidSkene().fit(labels).probas_, labels.vote_counts()
    )
    assert annotator_skills(labels, certainty).note.tolist() == ["", "", "no shared items"]


def test_evidence_of_sure_posteriors_keeps_their_order() -> None:
    probas = np.array([[1 - 1e-6, 1e-6], [1 - 1e-9, 1e-9]])
    features = evidence(probas, array_of("3 0; 3 0"))[:, 0]
    assert features == pytest.approx([7 + 0.1 * (logit(p) - 7) for p in probas[:, 0]])
    assert features[1] > features[0] + 0.5


def test_ties_of_posteriors_and_of_votes() -> None:
    votes = array_of("1 1 0; 2 1 0; 1 1 0; 1 1 1")
    probas = array_of("0.48 0.47 0.05; 0.48 0.47 0.05; 0.55 0.4 0.05; 0.4 0.4 0.2")
    certainty = Calibration.learned().apply(probas, votes)
    # Nearly equal with equal votes; nearly equal; far; equal.
    assert certainty.num_tied.tolist() == [2, 1, 1, 2]
    assert (certainty.right() <= 1 / certainty.num_tied).all()
    assert (certainty.probas.argmax(axis=1) == 0).all()
    assert certainty.probas.sum(axis=1) == pytest.approx(np.ones(4))
    gold = array_of("1 -1 -1 -1")
    assert Calibration.learned().apply(probas, votes, gold).num_tied.tolist() == [1, 1, 1, 2]
    # Gold labels of ties say nothing about how the crowd differs from others.
    tied = array_of("1 -1 -1 0")
    assert (Calibration.learned().fitted(probas, votes, tied).shift == 0).all()


def test_few_gold_labels_do_not_diverge() -> None:
    """Undamped steps end far away where sure labels are wrong."""
    wide = Calibration(np.zeros(6), np.zeros(2), np.diag([4.0, 4.0]))
    logits, right = array_of("2.0 3.0 4.0 5.0 3.5"), array_of("1.0 0.0 0.0 0.0 1.0")
    shift, _ = wide.shift_of(logits, right)
    mean = expit(logits + shift[0] + shift[1] * logits)
    slope = np.array([(right - mean).sum(), ((right - mean) * logits).sum()]) - shift / 4
    assert slope == pytest.approx(np.zeros(2), abs=1e-4)
    assert abs(mean.mean() - right.mean()) < 0.1
    # Many crowds at once, as the benchmark learns: the second has the first four labels.
    used = np.array([[1.0] * 5, [1.0] * 4 + [0.0]])
    several, errors = shifts(
        logits * used, right * used, used, np.tile(np.diag([4.0, 4.0]), (2, 1, 1))
    )
    one = wide.shift_of(logits[:4], right[:4])
    assert several == pytest.approx(np.array([shift, one[0]]), abs=1e-4)
    assert errors[1] == pytest.approx(one[1], abs=1e-4)
