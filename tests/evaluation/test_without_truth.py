"""Scores without truth, and the labels inferred by crowd and model together."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty import Calibration, Certainty, Estimate
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.evaluation.cached_consensus import certainty_without_gold
from neucrowd_tf.evaluation.inferred_labels import infer_labels
from neucrowd_tf.evaluation.metrics import classification_metrics
from neucrowd_tf.evaluation.scoring import score_test
from neucrowd_tf.evaluation.without_truth import (
    expected_metrics,
    joint_probas,
    judge,
    scaled_predictions,
)
from tests.certainty.test_opposed_groups import opposed
from tests.crowds import array_of


def test_expected_metrics_by_hand() -> None:
    """Two rows predict class 0 with .8 and class 1 with .6; the beliefs in these are .9 and .5.

    Accuracy (.9 + .5) / 2 = .7. Log loss: (-.9 ln .8 - .1 ln .2 - .5 ln .6 - .5 ln .4) / 2 =
    (.2008 + .1609 + .2554 + .4581) / 2 = .5376. Brier for two classes: ((.9 .04 + .1 .64) +
    (.5 .16 + .5 .36)) / 2 = (.1 + .26) / 2 = .18. Calibration error: |.8 - .9| and |.6 - .5| in
    bins of their own, one row each: .1.
    """
    result = expected_metrics(array_of("0.9 0.1; 0.5 0.5"), array_of("0.8 0.2; 0.4 0.6"))
    assert result == pytest.approx(
        {"accuracy": 0.7, "log_loss": 0.53760, "brier": 0.18, "ece": 0.1}, abs=1e-4
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_with_certain_beliefs_they_are_the_metrics(classes: int) -> None:
    rng = default_rng(0)
    truth = rng.integers(0, classes, 200)
    predictions = rng.dirichlet(np.ones(classes), 200)
    certain = classification_metrics(truth, predictions)
    for name, value in expected_metrics(np.eye(classes)[truth], predictions).items():
        assert value == pytest.approx(certain[name], abs=1e-5), name


def test_labels_that_say_nothing_leave_the_predictions_as_they_are() -> None:
    """With the same likelihood of all classes, t = 1 and b = 0."""
    predictions = default_rng(0).dirichlet(np.ones(3), 50)
    result = scaled_predictions(np.ones((50, 3)), predictions)
    assert_allclose(np.exp(result), predictions, atol=1e-5)


def certainty(votes: list[list[int]], gold: list[int] | None = None) -> Certainty:
    counts = np.array(votes)
    probas = (counts + 1e-9) / (counts + 1e-9).sum(axis=1, keepdims=True)
    codes = None if gold is None else np.array(gold)
    return Calibration.learned("majority_vote").apply(probas, counts, codes)


def test_instances_without_labels_have_the_predictions_alone() -> None:
    votes, rows = [[3, 0], [0, 3], [0, 0]] * 20, np.arange(60)
    model = np.tile([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]], (20, 1))
    posterior = judge(certainty(votes), rows, model).posterior
    assert (posterior[:2].argmax(axis=1) == [0, 1]).all()
    # The scale t is fitted to the crowd, which the model always agrees with: it is surer than .7.
    assert 0.7 < posterior[2, 0] < 1.0
    alone = judge(certainty([[0, 0]] * 60), rows, model).posterior
    assert_allclose(alone, model, atol=1e-5)


def test_gold_labels_are_certain_and_estimate_the_accuracy() -> None:
    """40 of 100 instances have gold labels, of which the model predicts 30: the crowd agrees with
    all of its predictions, and no mistake of these shows without gold labels.
    """
    votes, rows = [[3, 0], [0, 3]] * 50, np.arange(100)
    model = np.where(np.array(votes) > 0, 0.8, 0.2)
    gold = np.full(100, -1)
    gold[:40] = np.arange(40) % 2
    gold[:10] = 1 - gold[:10]
    result = judge(certainty(votes), rows, model, gold=gold)
    assert result.posterior[0].tolist() == [0.0, 1.0]
    value, low, high = result.accuracy("model")
    assert value == pytest.approx(0.75, abs=1e-6) and 0.6 < low < 0.7 and 0.8 < high < 0.9
    none = judge(certainty(votes), rows, model).accuracy("model")
    assert none.value > 0.85 and none.low < none.value < none.high
    right = judge(certainty(votes), rows, model, gold=np.arange(100) % 2).accuracy("model")
    assert right.value == 1.0 and right.low < 1.0  # Wilson's: no mistake is not certainty


def test_predictions_are_no_surer_than_labels_of_opposed_groups() -> None:
    votes = [[9, 0], [0, 9]] * 50
    model = np.where(np.array(votes) > 0, 0.9, 0.1)
    doubtful = dataclasses.replace(certainty(votes), least=0.1)
    result = judge(doubtful, np.arange(100), model)
    assert result.accuracy("model").low == 0.1 < 0.9 < result.accuracy("model").value
    assert judge(certainty(votes), np.arange(100), model).accuracy("model").low > 0.8
    few = np.where(np.arange(100) < 5, np.arange(100) % 2, -1)
    crowd = opposed()[0]
    assert certainty_without_gold(crowd, np.resize(few, crowd.num_instances)).least < 0.5


def test_an_interval_contains_its_value() -> None:
    """Also where draws are so skewed that their mean is below nine in ten of them."""
    draws = np.array([0.5, *[1.0] * 19])
    assert Estimate.of(float(draws.mean()), draws) == (0.975, 0.975, 1.0)
    assert Estimate.of(0.5, np.linspace(0.0, 1.0, 101), level=0.5) == pytest.approx(
        (0.5, 0.25, 0.75)
    )


@pytest.mark.parametrize("balanced", [False, True])
def test_the_commonest_class_and_differences(balanced: bool) -> None:
    """90 of 100 instances are of class 0: the balanced accuracy of always answering 0 is 1/2."""
    votes = [[9, 0]] * 90 + [[0, 9]] * 10
    model = np.where(np.array(votes) > 0, 0.9, 0.1)
    predicted = {"model": model.argmax(axis=1), "constant": np.zeros(100, dtype=np.int64)}
    result = judge(certainty(votes), np.arange(100), model, predicted, balanced=balanced)
    constant = result.accuracy("constant").value
    assert constant == pytest.approx(0.5 if balanced else 0.9, abs=0.1)
    difference = result.accuracy("model", minus="constant")
    expected = result.accuracy("model").value - constant
    assert difference.value == pytest.approx(expected) and difference.low > 0


@pytest.mark.parametrize("says", [0.6, 0.3])
def test_a_label_that_crowd_and_model_give_stays_where_both_may_share_a_lean(says: float) -> None:
    """Twelve items have two votes of three for class 0. The model gives it 0.6 or 0.3.

    Class 0 is the commonest, so that as independent evidence both speak for class 1. A model that
    is sure of class 1 still changes the label, with a probability between both.
    """
    votes = [[3, 0]] * 70 + [[2, 1]] * 12 + [[1, 2]] * 8 + [[0, 3]] * 10
    model = np.repeat([0.95, says, 0.4, 0.1], [70, 12, 8, 10])
    predicted = np.stack([model, 1 - model], axis=1)
    crowd = certainty(votes)
    rows = np.arange(100)
    independent = judge(crowd, rows, predicted).posterior
    labels = joint_probas(crowd, rows, predicted)
    assert crowd.probas[75, 0] > 0.5 and independent[75, 1] > 0.5
    assert labels[75].argmax() == int(says < 0.5)
    assert labels[75, 1] < independent[75, 1]
    assert_allclose(labels.sum(axis=1), 1.0)


def test_gold_labels_tell_whether_crowd_and_model_err_independently() -> None:
    """Gold labels of half the doubtful items change the probabilities of the others."""
    votes = [[3, 0]] * 60 + [[2, 1]] * 20 + [[1, 2]] * 10 + [[0, 3]] * 10
    model = np.repeat([0.95, 0.6, 0.4, 0.1], [60, 20, 10, 10])
    predicted = np.stack([model, 1 - model], axis=1)
    crowd = certainty(votes)
    rows = np.arange(100)
    shares = []
    for true in (0, -1, 1):
        gold = np.where((rows >= 60) & (rows < 70), true, -1)
        shares.append(joint_probas(crowd, rows, predicted, gold)[75, 1])
    mean = (crowd.probas[75, 1] + 0.4) / 2
    independent = judge(crowd, rows, predicted).posterior[75, 1]
    half = (mean + independent) / 2
    assert mean < shares[0] < half - 0.02 and half + 0.02 < shares[2] < independent
    assert shares[1] == pytest.approx(half)


class Model:
    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        return np.asarray(features[:, :2], dtype=np.float64)


def test_labels_of_all_instances_by_crowd_and_model() -> None:
    """Annotators a and b agree wherever they meet; the row without labels is the model's alone.

    The model has learned the labels of the other training rows, whose label is the crowd's.
    """
    crowd = Annotations.from_dense(
        array_of("0 0; 1 1; 0 -1; -1 -1"),
        instance_names=["t0", "t1", "t2", "t3"],
        annotator_names=["ann", "bob"],
        class_names=["no", "yes"],
    )
    test = Annotations.from_dense(
        [[1, -1]], instance_names=["t4"], annotator_names=["ann", "bob"], class_names=["no", "yes"]
    )
    features = array_of("0.9 0.1; 0.2 0.8; 0.6 0.4; 0.3 0.7", np.float32)
    split = Split(array_of("0.4 0.6;", np.float32), np.array([1]), test.instance_names, test)
    dataset = CrowdDataset("table", features, crowd, split)
    inferred = infer_labels(dataset, Model(), features)
    rows = pd.DataFrame(inferred.columns()).to_dict("records")
    assert [row["task"] for row in rows] == ["t0", "t1", "t2", "t3", "t4"]
    assert [row["label"] for row in rows] == ["no", "yes", "no", "yes", "yes"]
    assert rows[0]["votes"] == "no: 2"
    assert rows[3]["num_labels"] == 0 and rows[3]["votes"] == ""
    assert 0.5 < rows[3]["probability"] < 1
    assert [row["model_held_out"] for row in rows] == ["no"] * 3 + ["yes"] * 2
    assert_allclose(inferred.probas.sum(axis=1), 1.0)
    assert [line.split(",")[0] for line in inferred.held_out_csv().splitlines()] == [
        *("task", "t3", "t4")
    ]
    gold = array_of("1 -1 -1 0 -1")  # they are never contradicted
    labels = infer_labels(dataset, Model(), features, gold)
    assert labels.labels[[0, 3]].tolist() == [1, 0] and labels.probas[0].tolist() == [0.0, 1.0]


def test_votes_alone_have_labels_too() -> None:
    crowd = Annotations.from_votes(array_of("2 1; 0 3"))
    features = array_of("0.2 0.8; 0.5 0.5", np.float32)
    split = Split(features[:1], np.array([1]), np.array(["x"], dtype=object))
    inferred = infer_labels(CrowdDataset("table", features, crowd, split), Model(), features)
    assert inferred.labels.tolist() == [0, 1] and inferred.probas[1, 1] > inferred.probas[0, 0]
    assert inferred.columns()["votes"][0] == "0: 2; 1: 1"


class Head(Model):
    """Predicts that annotator 0 gives class 0 and annotator 1 class 1, whatever the instance."""

    def predict_annotators(self, features: np.ndarray) -> np.ndarray:
        return np.tile(np.eye(2), (len(features), 1, 1))


def test_soft_scores_of_test_rows_with_several_labels() -> None:
    """Shares (.5, .5) and (0, 1) against (.5, .5) and (.5, .5): distances 0 and 1. Annotator b is
    right once of twice, a once of twice, and c is not in training.
    """
    train = Annotations.from_dense([[0, 1]], annotator_names=["a", "b"], num_classes=2)
    test = Annotations.from_dense(
        array_of("0 -1 1; 1 1 -1; -1 0 -1"),
        annotator_names=["a", "b", "c"],
        num_classes=2,
        instance_names=["x", "y", "z"],
    )
    features = np.full((3, 2), 0.5, dtype=np.float32)
    split = Split(features, array_of("0 1 0"), test.instance_names, test)
    dataset = CrowdDataset("table", features[:1], train, split, test_is_truth=True)
    _, scores = score_test(dataset, features, Head())
    assert scores["test"]["soft_manhattan"] == pytest.approx(0.5)
    assert scores["test"]["perspectivist_error"] == pytest.approx(0.5)
    assert "perspectivist_error" not in score_test(dataset, features, Model())[1]["test"]
