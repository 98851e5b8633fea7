"""Scores without truth, and the labels inferred by crowd and model together."""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.simulation import from_skills
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.evaluation.inferred_labels import HEADER, infer_labels
from neucrowd_tf.evaluation.without_truth import (
    expected_metrics,
    informed_posterior,
    score_without_truth,
)
from neucrowd_tf.metrics import classification_metrics
from neucrowd_tf.training.validation import consensus_labels


def test_expected_metrics_by_hand() -> None:
    """Two rows predict class 0 with .8 and class 1 with .6; the beliefs in these are .9 and .5.

    Accuracy (.9 + .5) / 2 = .7. Log loss: (-.9 ln .8 - .1 ln .2 - .5 ln .6 - .5 ln .4) / 2 =
    (.2008 + .1609 + .2554 + .4581) / 2 = .5376. Brier for two classes: ((.9 .04 + .1 .64) +
    (.5 .16 + .5 .36)) / 2 = (.1 + .26) / 2 = .18. Calibration error: |.8 - .9| and |.6 - .5| in
    bins of their own, one row each: .1.
    """
    found = expected_metrics(np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([[0.8, 0.2], [0.4, 0.6]]))
    assert found == pytest.approx(
        {"accuracy": 0.7, "log_loss": 0.53760, "brier": 0.18, "ece": 0.1}, abs=1e-4
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_with_certain_beliefs_they_are_the_metrics(classes: int) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, classes, 200)
    predictions = rng.dirichlet(np.ones(classes), 200)
    known = classification_metrics(truth, predictions)
    for name, value in expected_metrics(np.eye(classes)[truth], predictions).items():
        assert value == pytest.approx(known[name], abs=1e-5), name


def test_certain_labels_are_believed_and_silent_ones_leave_the_prediction() -> None:
    """Labels that say nothing (the same likelihood of all classes) leave the calibrated model; with
    none that say something it is the model as it is, t = 1 and b = 0.
    """
    predictions = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    np.testing.assert_allclose(informed_posterior(np.ones((50, 3)), predictions), predictions)
    sure = np.eye(3)[np.arange(50) % 3] + 1e-30
    assert (informed_posterior(sure, predictions).argmax(axis=1) == np.arange(50) % 3).all()


def simulated(
    seed: int, size: int = 1500
) -> tuple[Annotations, np.ndarray, np.ndarray, np.ndarray]:
    """Three labels an instance by annotators between .4 and .95; predictions that are right .86 of
    the time and calibrated.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, size)
    errors = from_skills(np.repeat(rng.uniform(0.4, 0.95, 40)[:, None], 3, axis=1))
    who = np.argsort(rng.random((size, 40)), axis=1)[:, :3]
    rows = np.repeat(np.arange(size), 3)
    likely = errors[who.ravel(), truth[rows]].cumsum(axis=1)
    labels = (rng.random((len(rows), 1)) > likely).sum(axis=1).clip(max=2)
    crowd = Annotations(rows, who.ravel(), labels, num_classes=3)
    said = np.where(rng.random(size) < 0.86, truth, (truth + rng.integers(1, 3, size)) % 3)
    predictions = np.full((size, 3), 0.07)
    predictions[np.arange(size), said] = 0.86
    return crowd, truth, predictions, np.arange(0, size, 5)


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
def test_it_is_nearer_the_truth_than_majority_votes_are(seed: int) -> None:
    crowd, truth, predictions, rows = simulated(seed)
    scores, posterior = score_without_truth(crowd, rows, predictions[rows])
    known = classification_metrics(truth[rows], predictions[rows])
    voted = classification_metrics(consensus_labels(crowd, seed)[rows], predictions[rows])
    for name, limit in (("accuracy", 0.06), ("log_loss", 0.15), ("ece", 0.05)):
        off = abs(scores[name] - known[name])
        assert off < limit, name
        assert off < abs(voted[name] - known[name]), name
    assert posterior.shape == (len(rows), 3)


class Model:
    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        return np.asarray(features[:, :2], dtype=np.float64)


def test_labels_of_all_instances_by_crowd_and_model() -> None:
    """Annotators a and b agree wherever they meet; the row without labels is the model's alone."""
    crowd = Annotations.from_dense(
        [[0, 0], [1, 1], [0, -1], [-1, -1]],
        instance_names=["t0", "t1", "t2", "t3"],
        annotator_names=["ann", "bob"],
        class_names=["no", "yes"],
    )
    test = Annotations.from_dense(
        [[1, -1]], instance_names=["t4"], annotator_names=["ann", "bob"], class_names=["no", "yes"]
    )
    features = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]], dtype=np.float32)
    split = Split(np.array([[0.4, 0.6]], np.float32), np.array([1]), test.instance_names, test)
    dataset = CrowdDataset("table", features, crowd, split)
    inferred = infer_labels(dataset, Model(), features)
    rows = [dict(zip(HEADER, row, strict=True)) for row in inferred.rows()]
    assert [row["task"] for row in rows] == ["t0", "t1", "t2", "t3", "t4"]
    assert [row["label"] for row in rows] == ["no", "yes", "no", "yes", "yes"]
    assert rows[0]["votes"] == "no: 2" and rows[0]["annotators"] == "no: ann, bob"
    assert rows[3]["num_labels"] == 0 and rows[3]["annotators"] == ""
    assert 0.5 < rows[3]["probability"] < 1
    assert [row["model_held_out"] for row in rows] == ["no"] * 4 + ["yes"]
    np.testing.assert_allclose(inferred.probas.sum(axis=1), 1.0)


def test_votes_alone_have_labels_too() -> None:
    """Two votes for no, one for yes, and the model's .8 for yes: (1 + .8) / 4 = .45."""
    crowd = Annotations.from_votes([[2, 1], [0, 3]])
    features = np.array([[0.2, 0.8], [0.5, 0.5]], dtype=np.float32)
    split = Split(features[:1], np.array([1]), np.array(["x"], dtype=object))
    inferred = infer_labels(CrowdDataset("table", features, crowd, split), Model(), features)
    np.testing.assert_allclose(inferred.probas[0], [0.55, 0.45])
    assert next(inferred.rows())[5] == ""
