"""neucrowd_joint: its posterior by hand, two and more classes, resume, export, odd crowds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import neucrowd_tf
from baselines.neucrowd_joint import (
    NeuCrowdJoint,
    crowd_posterior,
    posterior_assurance,
    refreshed_posterior,
)
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.training import Run
from neucrowd_tf.two_stage.softprob import SoftProb

TINY: dict[str, Any] = {
    "members": 2, "epochs": 2, "steps_per_epoch": 2, "batch_size": 16,
    "encoder": {"hidden_units": (8, 4)},
    "rounds": 2, "folds": 3, "Cs": (0.01, 0.1, 1.0),
}  # fmt: skip


def crowd(classes: int = 2, identities: bool = True) -> tuple[np.ndarray, Annotations, np.ndarray]:
    x, y = make_blobs(90, 6, centers=classes, cluster_std=3.0, random_state=0)
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((90, 5)) < 0.7, y[:, None], rng.integers(classes, size=(90, 5)))
    dense[:, 3:] = -1
    annotations = Annotations.from_dense(dense, num_classes=classes)
    if not identities:
        annotations = Annotations.from_votes(annotations.vote_counts())
    return x.astype(np.float32), annotations, y


def test_posterior_by_hand() -> None:
    # One annotator, right on both of two sure instances: with .1 pseudo-answers P(0|0) = 1.1/1.2.
    # The classifier says .2 of class 0 for the first; its label 0 makes that
    # .2 * 11/12 / (.2 * 11/12 + .8 * 1/12) = 2.2/3.
    annotations = Annotations.from_dense(np.array([[0], [1]]), num_classes=2)
    result = refreshed_posterior(annotations, np.eye(2), np.array([[0.2, 0.8], [0.5, 0.5]]))
    np.testing.assert_allclose(result, [[2.2 / 3.0, 0.8 / 3.0], [1 / 12, 11 / 12]])
    np.testing.assert_allclose(posterior_assurance(result), [1.4 / 3.0, 10 / 12], rtol=1e-6)


def test_posterior_against_a_loop_and_without_identities() -> None:
    _, annotations, _ = crowd(3)
    start = crowd_posterior(annotations)
    rng = np.random.default_rng(1)
    predicted = rng.dirichlet(np.ones(3), 90)
    counts = np.full((annotations.num_annotators, 3, 3), 0.1)  # true, given
    triples = list(
        zip(annotations.instances, annotations.annotators, annotations.labels, strict=True)
    )
    for i, r, label in triples:
        for true in range(3):
            counts[r, true, label] += start[i, true]
    wanted = predicted.copy()
    for i, r, label in triples:
        for true in range(3):
            wanted[i, true] *= counts[r, true, label] / counts[r, true].sum()
    wanted /= wanted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        refreshed_posterior(annotations, start, predicted), wanted, rtol=1e-6
    )
    _, votes, _ = crowd(3, identities=False)
    shares = votes.vote_counts() / votes.vote_counts().sum(axis=1, keepdims=True)
    np.testing.assert_allclose(refreshed_posterior(votes, start, predicted), shares)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("classes", "identities"), [(3, True), pytest.param(2, False, marks=pytest.mark.slow)]
)
def test_learns_exports_and_loads(classes: int, identities: bool, tmp_path: Path) -> None:
    x, annotations, y = crowd(classes, identities)
    model = NeuCrowdJoint(**TINY, seed=1).fit(x, annotations)
    probabilities = model.predict_proba(x)
    assert model.score(x, y) > 0.8 and model.transform(x).shape == (90, 8)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)
    model.save(tmp_path / "model")
    loaded = neucrowd_tf.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(x), probabilities, atol=1e-6)
    assert 0.0 <= model.residual_share_ <= 1.0 and len(model.history_["loss"]) == 4


def test_without_members_it_is_softprob() -> None:
    x, annotations, _ = crowd(identities=False)
    # All have three votes: SoftProb's C counts each of them, ours each instance once.
    ours = NeuCrowdJoint(members=0, Cs=(0.3,), seed=1).fit(x, annotations)
    theirs = SoftProb(Cs=(0.1,)).fit(x, annotations)
    np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), atol=1e-3)


@pytest.mark.ci
def test_the_residual_begins_at_the_linear_classifier_and_is_shrunk() -> None:
    x, annotations, _ = crowd()
    model = NeuCrowdJoint(**TINY, learning_rate=1e-12, seed=1).fit(x, annotations)
    linear = NeuCrowdJoint(**{**TINY, "members": 0}, seed=1).fit(x, annotations)
    np.testing.assert_allclose(model.predict_proba(x), linear.predict_proba(x), atol=1e-5)


@pytest.mark.slow
def test_resumes_where_it_stopped(tmp_path: Path) -> None:
    x, annotations, _ = crowd()
    whole = NeuCrowdJoint(**TINY, seed=1).fit(x, annotations).predict_proba(x)
    run = Run(checkpoints=tmp_path, checkpoint_seconds=0.0)
    NeuCrowdJoint(**{**TINY, "members": 1}, seed=1).fit(x, annotations, run=run)
    assert (tmp_path / "linear.npz").exists() and (tmp_path / "member-0").exists()
    resumed = NeuCrowdJoint(**TINY, seed=1).fit(x, annotations, run=run)
    np.testing.assert_array_equal(resumed.predict_proba(x), whole)


@pytest.mark.slow
def test_awkward_crowds() -> None:
    x, _, _ = crowd()
    few = Annotations.from_dense(np.array([[0], [1], [1], [1]]), num_classes=2)
    model = NeuCrowdJoint(**TINY).fit(x[:4], few)  # no class has three others for negatives
    assert np.isfinite(model.predict_proba(x)).all()
    absent = Annotations.from_dense(np.array([[0], [1]] * 20), num_classes=3)
    assert (NeuCrowdJoint(**TINY).fit(x[:40], absent).predict_proba(x)[:, 2] < 1e-3).all()
