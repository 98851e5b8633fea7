"""SMOTE after truth inference. The linear classifier needs no TensorFlow."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from baselines.smote_two_stage import SmoteTwoStage, smote
from neucrowd_tf import registry
from neucrowd_tf.aggregation import majority_labels
from neucrowd_tf.annotations import simulation
from neucrowd_tf.errors import IdentitiesError, UsageError


def task() -> tuple[np.ndarray, Any, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [150, 30, 10])
    x = (3.0 * np.eye(4)[truth] + rng.normal(size=(190, 4))).astype(np.float32)
    return (
        x,
        simulation.simulate(truth, simulation.class_skill_annotators(7, 3, 0, low=0.7), 0),
        truth,
    )


def test_classes_are_filled_up_within_their_own_range() -> None:
    x, _, truth = task()
    features, labels = smote(x, truth, 3, k=4, seed=1)
    assert np.bincount(labels).tolist() == [150, 150, 150]
    assert np.array_equal(features[:190], x) and np.array_equal(labels[:190], truth)
    for code in (1, 2):
        own, made = x[truth == code], features[190:][labels[190:] == code]
        assert (made >= own.min(axis=0) - 1e-5).all() and (made <= own.max(axis=0) + 1e-5).all()
        assert len(np.unique(made, axis=0)) > 0.9 * len(made)
    again, _ = smote(x, truth, 3, k=4, seed=1)
    assert np.array_equal(again, features)
    assert not np.array_equal(smote(x, truth, 3, k=4, seed=2)[0], features)


def test_imbalanced_learn_makes_as_many_of_the_same_kind() -> None:
    pytest.importorskip("imblearn")
    x, _, truth = task()
    own, labels = smote(x, truth, 3, k=5)
    theirs, codes = smote(x, truth, 3, k=5, backend="imblearn")
    assert np.array_equal(labels, codes) and own.shape == theirs.shape
    for code in (1, 2):
        a, b = own[190:][labels[190:] == code], theirs[190:][labels[190:] == code]
        assert a.mean(axis=0) == pytest.approx(b.mean(axis=0), abs=0.35)


def test_a_missing_package_and_unknown_backends_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _, truth = task()
    with pytest.raises(UsageError, match="'own' or 'imblearn'"):
        smote(x, truth, 3, backend="adasyn")
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("imblearn"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match="imbalanced-learn to be installed"):
        smote(x, truth, 3, backend="imblearn")


@pytest.mark.parametrize("name", ["mv_smote", "ds_smote"])
def test_two_stages_with_a_linear_classifier(name: str) -> None:
    x, crowd, truth = task()
    model = registry.method(name).make(classifier="linear", seed=1).fit(x, crowd)
    right = model.predict(x) == truth
    assert all(right[truth == c].mean() > 0.6 for c in range(3))
    counts = np.bincount(model.labels_, minlength=3)
    assert model.num_synthetic_ == (counts.max() - counts).sum()
    if name == "mv_smote":
        assert np.array_equal(model.labels_, majority_labels(crowd.vote_counts(), "random", 1))
    assert model.confusion_matrices_.shape == (7, 3, 3)


def test_a_class_of_one_is_left_as_it_is_and_votes_alone_will_do_for_majority_vote() -> None:
    x, crowd, _ = task()
    votes = np.zeros((190, 3), int)
    votes[:, 0] = 3
    votes[:20] = [0, 3, 0]
    votes[5] = [0, 0, 3]
    from neucrowd_tf.annotations import Annotations

    with pytest.warns(UserWarning, match="fewer than two instances to synthesise from: class 2"):
        model = SmoteTwoStage(classifier="linear").fit(x, Annotations.from_votes(votes))
    assert model.num_synthetic_ == 170 - 19
    with pytest.raises(IdentitiesError):
        SmoteTwoStage("ds", classifier="linear").fit(x, Annotations.from_votes(crowd.vote_counts()))


def test_network_and_resampling_reach_rare_classes() -> None:
    x, crowd, truth = task()
    model = SmoteTwoStage(hidden_units=(16,), epochs=8, learning_rate=5e-3).fit(x, crowd)
    right = model.predict(x) == truth
    assert all(right[truth == c].mean() > 0.6 for c in range(3))
    outputs = model.inference_model()(x[:5])["probabilities"]
    assert np.asarray(outputs) == pytest.approx(model.predict_proba(x[:5]), abs=1e-5)
    with pytest.raises(UsageError, match="classifier"):
        SmoteTwoStage(classifier="forest").fit(x, crowd)  # type: ignore[arg-type]
