"""SMOTE after truth inference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from baselines.smote_two_stage import SmoteTwoStage, smote
from neucrowd_tf.aggregation import majority_labels
from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import IdentitiesError
from tests.crowds import corners


def task() -> tuple[np.ndarray, Any, np.ndarray]:
    rng = default_rng(0)
    truth = np.repeat([0, 1, 2], [150, 30, 10])
    x = corners(rng, truth, 4, 3)
    matrices = simulation.class_skill_annotators(7, 3, 0, low=0.7)
    return x, simulation.simulate(truth, matrices, 0), truth


def test_classes_are_filled_up_within_their_own_range() -> None:
    x, _, truth = task()
    features, labels = smote(x, truth, 3, k=4, seed=1)
    assert np.bincount(labels).tolist() == [150, 150, 150]
    assert np.array_equal(features[:190], x) and np.array_equal(labels[:190], truth)
    for code in (1, 2):
        custom, created = x[truth == code], features[190:][labels[190:] == code]
        assert (created >= custom.min(axis=0) - 1e-5).all()
        assert (created <= custom.max(axis=0) + 1e-5).all()
        assert len(np.unique(created, axis=0)) > 0.9 * len(created)
    again, _ = smote(x, truth, 3, k=4, seed=1)
    assert np.array_equal(again, features)
    assert not np.array_equal(smote(x, truth, 3, k=4, seed=2)[0], features)


FAST = {"hidden_units": (16,), "epochs": 8, "learning_rate": 5e-3}


@pytest.mark.parametrize("name", ["mv_smote", "ds_smote"])
def test_network_and_resampling_reach_rare_classes(name: str) -> None:
    x, crowd, truth = task()
    model = registry.method(name).make(**FAST, seed=1).fit(x, crowd)
    right = model.predict(x) == truth
    assert all(right[truth == c].mean() > 0.6 for c in range(3))
    counts = np.bincount(model.labels_, minlength=3)
    assert model.num_synthetic_ == (counts.max() - counts).sum()
    if name == "mv_smote":
        assert np.array_equal(model.labels_, majority_labels(crowd.vote_counts(), "random", 1))
    assert model.confusion_matrices_.shape == (7, 3, 3)
    outputs = model.inference_model()(x[:5])["probabilities"]
    assert np.asarray(outputs) == pytest.approx(model.predict_proba(x[:5]), abs=1e-5)


def test_a_class_of_one_is_left_as_it_is_and_votes_alone_will_do_for_majority_vote() -> None:
    x, crowd, _ = task()
    votes = np.zeros((190, 3), int)
    votes[:, 0] = 3
    votes[:20] = [0, 3, 0]
    votes[5] = [0, 0, 3]
    with pytest.warns(UserWarning, match="fewer than two instances to synthesise from: class 2"):
        model = SmoteTwoStage(epochs=1).fit(x, Annotations.from_votes(votes))
    assert model.num_synthetic_ == 170 - 19
    with pytest.raises(IdentitiesError):
        SmoteTwoStage("ds", epochs=1).fit(x, Annotations.from_votes(crowd.vote_counts()))


def test_it_has_no_argument_without_an_effect() -> None:
    assert "labels" not in SmoteTwoStage().get_params()
