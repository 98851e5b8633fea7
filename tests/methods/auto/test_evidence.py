"""The crowd's labels as evidence: two criteria, the consensus' mistakes, and members' weights."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.methods.auto.candidate_selection import Selected, select
from neucrowd_tf.methods.auto.evidence import FOLDS, Evidence, determinant, label_log_likelihood
from neucrowd_tf.methods.auto.pooling import (
    MOST_ROWS,
    calibrate,
    consensus_mistakes,
    fit_weights,
    weigh,
)
from tests.crowds import array_of


def _crowd(size: int) -> Annotations:
    truth = default_rng([61, 0]).integers(0, 3, size)
    return simulation.simulate(truth, simulation.from_skills(np.full((4, 3), 0.8)), 0)


def test_a_label_s_likelihood_is_of_the_fits_to_other_folds() -> None:
    crowd = _crowd(30)
    rng = default_rng([61, 1])
    predicted = rng.dirichlet(np.ones(3), 30)
    evidence = Evidence.of(crowd, crowd.vote_counts().argmax(axis=1), 0)
    logs = []
    for fold in range(FOLDS):
        matrices = evidence.errors(predicted * (evidence.folds != fold)[:, None])
        emitted = matrices[crowd.annotators, :, crowd.labels]
        here = evidence.folds[crowd.instances] == fold
        logs += np.log((predicted[crowd.instances] * emitted).sum(axis=1))[here].tolist()
    assert label_log_likelihood(predicted, evidence) == pytest.approx(np.mean(logs))
    assert_allclose(evidence.errors(predicted).sum(axis=2), 1.0)


def test_the_determinant_by_hand_and_blind_to_names_of_classes() -> None:
    """Two instances of each class, labelled rightly and predicted so: the table is diag(2, 2) with
    half a label added to each cell and divided by the sum of 6: det = (2.5^2 - .5^2) / 36 = 1 / 6.
    """
    crowd = Annotations([0, 1, 2, 3], [0, 0, 0, 0], [0, 0, 1, 1], num_classes=2)
    evidence = Evidence.of(crowd, array_of("0 0 1 1"), 0)
    predicted = np.eye(2)[[0, 0, 1, 1]]
    assert determinant(predicted, evidence) == pytest.approx(np.log(1 / 6))
    assert determinant(predicted[:, ::-1], evidence) == pytest.approx(np.log(1 / 6))
    assert determinant(np.eye(2)[[0, 1, 0, 1]], evidence) < np.log(1 / 6)


def test_predictions_tell_how_often_the_consensus_is_wrong() -> None:
    """Two labels an instance, each right in two of three cases, and so is their consensus; labels
    alone think better of it. Predictions that are right in 95 of 100 cases tell it.
    """
    rng = default_rng(3)
    truth = rng.integers(0, 3, 600)
    skills = simulation.from_skills(np.full((6, 3), 2 / 3))
    crowd = simulation.simulate(truth, skills, 3, rates=1 / 3)
    consensus = crowd.vote_counts().argmax(axis=1)
    evidence = Evidence.of(crowd, consensus, 0)
    predicted = np.where(rng.random(600) < 0.95, truth, (truth + 1) % 3)
    right = float((consensus == truth).mean())
    result = np.diag(consensus_mistakes(evidence, predicted)).mean()
    alone = np.diag(consensus_mistakes(evidence, consensus)).mean()
    assert abs(result - right) < 0.1 and abs(result - right) < abs(alone - right) / 3


def test_a_temperature_takes_no_matrix_for_each_instance() -> None:
    rng = default_rng(4)
    codes = rng.integers(0, 100, 400)
    evidence = Evidence.of(Annotations.from_dense(codes[:, None], num_classes=100), codes, 0)
    held_out = {"mv_lr": 0.5 * np.eye(100)[codes] + 0.005}
    selected = Selected(["mv_lr"], {"mv_lr": np.zeros(100)})
    tracemalloc.start()
    result = calibrate(held_out, selected, [1.0], evidence)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400 * 100 * 100 * 8 / 2 and result.temperature < 1


def test_two_members_by_hand() -> None:
    """One instance surely of the first class; a member gives it .8, the other .2. With weights a
    and b, d = a - b, the loss is log(1 + 4^-d) + .3 d^2, least where log(4) / (1 + 4^d) = .6 d: at
    d = .6602. Many such instances leave the second little.
    """
    likely = array_of("0.0 -30.0;")
    members = [array_of("0.8 0.2;"), array_of("0.2 0.8;")]
    result = fit_weights(members, likely, np.ones(1))
    assert result[0] - result[1] == pytest.approx(0.6602, abs=1e-3)
    many = [np.repeat(one, 500, axis=0) for one in members]
    more = fit_weights(many, np.repeat(likely, 500, axis=0), np.ones(500))
    assert more[0] > 5 * more[1]


def test_known_labels_and_the_crowd_weigh() -> None:
    rng = default_rng(5)
    truth = rng.integers(0, 2, 400)
    crowd = simulation.simulate(truth, simulation.from_skills(np.full((5, 2), 0.7)), 5, rates=0.6)
    consensus = crowd.vote_counts().argmax(axis=1)
    evidence = Evidence.of(crowd, consensus, 0)

    def member(right: float) -> np.ndarray:
        classes = np.where(rng.random(400) < right, truth, 1 - truth)
        return np.where(np.eye(2)[classes] > 0, 0.8, 0.2)

    held = {"good": member(0.9), "bad": member(0.6)}
    zeros = dict.fromkeys(held, np.zeros(2))
    selected = Selected(["good", "bad"], zeros)
    good, bad = weigh(held, selected, evidence)
    assert good + bad == pytest.approx(1) and good > 0.55
    certain, _ = weigh(held, selected, Evidence.of(crowd, consensus, 0, truth))
    assert certain > good
    assert weigh(held, Selected(["good"], zeros), evidence) == [1.0]
    assert MOST_ROWS > 400


def test_a_rare_class_is_corrected_as_far_as_labels_tell() -> None:
    """Ninety of a hundred are of class 0, labels are right. Predictions of .3 for the rare class
    where it is true, of .05 elsewhere, miss it until most of its log share is taken off; those that
    are right already are left alone.
    """
    truth = np.repeat([0, 1], [90, 10])
    crowd = Annotations(np.arange(100), np.zeros(100, int), truth, num_classes=2)
    evidence = Evidence.of(crowd, truth, 0)
    rare = np.where(truth == 1, 0.3, 0.05)
    held = {
        "timid": np.stack([1 - rare, rare], axis=1),
        "even": np.where(np.eye(2)[truth] > 0, 0.9, 0.1),
    }
    scored = select(held, evidence, balanced=True)
    shares = np.log(held["timid"].mean(axis=0))
    # log(.7 / .3) = .85, and the log shares differ by log(.925 / .075) = 2.5: a half suffices.
    assert_allclose(scored.corrections["timid"], 0.5 * shares)
    assert not scored.corrections["even"].any()
    assert not select(held, evidence).corrections["timid"].any()
