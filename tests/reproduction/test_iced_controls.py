"""The controls of ICED: balancing by weights, other inferences, other warm-ups."""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf.aggregation import majority_labels
from neucrowd_tf.annotations import simulation
from neucrowd_tf.iced.inference import infer_labels
from reproduction.controls.iced import (
    ControlledICED,
    balancing_weights,
    cumulative_schedule,
    evened_rows,
    infer_by_votes,
    infer_with_two_priors,
)

CROWD = simulation.simulate(
    np.repeat([0, 1], [20, 3]), simulation.class_skill_annotators(6, 2, 0), 0
)


def test_separate_priors_are_those_of_each_part() -> None:
    # Annotators who are nearly always right: the priors are the shares of each part's classes.
    truth = np.repeat([0, 1, 0, 1], [90, 10, 5, 95])
    annotations = simulation.simulate(
        truth, simulation.class_skill_annotators(9, 2, 0, low=0.97, high=0.99), 0
    )
    one_hot = annotations.one_hot()
    apart = infer_with_two_priors(one_hot, 2, 100, smoothing=0.01)
    assert apart.priors == pytest.approx([0.9, 0.1], abs=0.01)
    assert apart.errors.shape == (9, 2, 2) and np.allclose(apart.errors.sum(axis=2), 1.0)
    together = infer_labels(one_hot, 2, prior="update")
    assert together.priors == pytest.approx([95 / 200, 105 / 200], abs=0.01)
    # A row without labels is judged by the prior of its own part alone.
    bare = one_hot.tolil()
    bare[0], bare[100] = 0, 0
    probas = infer_with_two_priors(bare.tocsr(), 2, 100, smoothing=0.01).probas
    assert probas[0] == pytest.approx([89 / 99, 10 / 99], abs=0.01)
    assert probas[100] == pytest.approx([4 / 99, 95 / 99], abs=0.01)


def test_majority_votes_in_place_of_em_break_ties_by_the_seed() -> None:
    one_hot, votes = CROWD.one_hot(), CROWD.vote_counts()
    assert (votes[:, 0] == votes[:, 1]).any()
    for seed in (0, 1):
        inference = infer_by_votes(one_hot, 2, 0.01, seed)
        assert np.array_equal(inference.labels, majority_labels(votes, "random", seed))
        assert set(np.unique(inference.probas)) == {0.0, 1.0} and not inference.permuted


def test_schedules_and_evened_rows() -> None:
    groups = np.array([1, 4, 3, 2, 1])
    expected = [[2], [2], [2, 3], [2, 3, 0, 4]]
    assert [rows.tolist() for rows in cumulative_schedule(groups, 4)] == expected
    rows, labels = np.array([0, 1, 2, 7]), np.array([0, 0, 0, 1, 1, 1, 1, 1])
    # Three rows of class 0; class 1's only row, 7, is there three times.
    even = evened_rows(rows, labels, np.random.default_rng(0))
    assert sorted(even.tolist()) == [0, 1, 2, 7, 7, 7]
    assert evened_rows(rows[:3], labels, np.random.default_rng(0)).tolist() == [0, 1, 2]


def test_balancing_weights_make_classes_count_alike() -> None:
    # Three rows of class 0, one of class 1, none of class 2: 4 / (2 * 3) and 4 / (2 * 1).
    targets = np.eye(3)[[0, 0, 0, 1]]
    assert balancing_weights(targets).ravel() == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2.0])
    soft = np.random.default_rng(0).dirichlet([4.0, 1.0], size=50)
    assert balancing_weights(soft).mean() == pytest.approx(1.0)


@pytest.mark.ci
@pytest.mark.filterwarnings("error::UserWarning")  # of too few candidates there is nothing to say
def test_without_synthesis_nothing_is_synthesised_and_the_votes_stand() -> None:
    x = np.random.default_rng(0).normal(size=(23, 3)).astype(np.float32)
    model = ControlledICED(
        rounds=2, autoencoder_epochs=1, encoder={"hidden_units": (8, 4)}, balance="weights",
        em="majority", warm_up_evened=True,
    ).fit(x, CROWD)  # fmt: skip
    assert not model.synthetic_history_.any() and model.history_["synthetic"] == [0.0, 0.0]
    assert (model.labels_history_ == majority_labels(CROWD.vote_counts(), "random", 0)).all()
    first = ControlledICED(
        rounds=1, autoencoder_epochs=1, encoder={"hidden_units": (8, 4)}, candidates="inferred",
        first_labels="inferred", prior="separate", warm_up="cumulative", k=1,
    )  # fmt: skip
    first.fit(x, CROWD)
    assert np.array_equal(first.candidates_history_[0], first.labels_history_[0])
