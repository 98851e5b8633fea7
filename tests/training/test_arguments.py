"""Hyper-parameters that cannot be used are one clear line, before anything is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from baselines.metric_learning import MetricLearning
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import none, number, one_of, strengths, whole, widths
from neucrowd_tf.errors import UsageError
from neucrowd_tf.neucrowd import NeuCrowd
from neucrowd_tf.rll import RLL
from neucrowd_tf.training import Run
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.networks import ENCODERS, configuration
from neucrowd_tf.training.representation import RepresentationEstimator

RATE = "a number above 0 or a Keras configuration or a Keras schedule, received "
ENCODER = "'dense', a configuration of one, a Keras model or a function that makes one"
OPTIONS = ("dropout", "l2", "hidden_units", "activation", "initializer")
WRONG: list[tuple[str, Any, str]] = [
    ("learning_rate", 0.0, RATE + "0.0"),
    ("learning_rate", "fast", RATE + "'fast'"),
    ("learning_rate", float("nan"), RATE + "nan"),
    ("dropout", 1.0, "a number from 0 and below 1, received 1.0"),
    ("dropout", -0.1, "a number from 0 and below 1, received -0.1"),
    ("dropout", None, "a number from 0 and below 1, received None"),
    ("l2", -1e-3, "a number from 0, received -0.001"),
    ("Cs", (), "a list of numbers above 0, received ()"),
    ("Cs", 1.0, "a list of numbers above 0, received 1.0"),
    ("Cs", (1.0, 0.0), "a list of numbers above 0, received (1.0, 0.0)"),
    ("patience", 0, "None or a whole number from 1, received 0"),
    ("patience", 2.5, "None or a whole number from 1, received 2.5"),
    ("hidden_units", (), "a list of whole numbers from 1, received ()"),
    ("hidden_units", 64, "a list of whole numbers from 1, received 64"),
    ("hidden_units", "64", "a list of whole numbers from 1, received '64'"),
    ("hidden_units", (64, 0), "a list of whole numbers from 1, received (64, 0)"),
    ("activation", 3, "text or a function or None, received 3"),
    ("encoder", "cnn", f"{ENCODER}, received 'cnn'"),
    ("initializer", "he", "'glorot' or 'normal', received 'he'"),
    ("monitor", "f1", "'auc', 'accuracy' or 'log_loss', received 'f1'"),
    ("epochs", True, "a whole number from 1, received True"),
    ("batch_size", 16.0, "a whole number from 1, received 16.0"),
    ("validation_fraction", 1.0, "a number above 0 and below 1, received 1.0"),
    ("seed", -1, "a whole number from 0, received -1"),
]


def _reject(estimator: RepresentationEstimator, name: str, expected: str) -> None:
    crowd = Annotations.from_dense([[0], [1], [0], [1]])
    with pytest.raises(UsageError) as caught:
        estimator.fit(np.eye(4), crowd)
    assert str(caught.value) == f"{name}: expected {expected}"


@pytest.mark.parametrize(("name", "value", "expected"), WRONG)
@pytest.mark.parametrize("kind", [NeuCrowd, RLL, MetricLearning])
def test_embedding_methods_check_what_they_share(
    kind: Any, name: str, value: Any, expected: str
) -> None:
    values = {"encoder": {name: value}} if name in OPTIONS else {name: value}
    _reject(kind(**values), name, expected)


@pytest.mark.parametrize("kind", [NeuCrowd, RLL])
def test_similarity(kind: Any) -> None:
    _reject(kind(similarity="dot"), "similarity", "'cosine' or 'euclidean', received 'dot'")


def test_arguments_of_other_types_that_mean_the_same_pass() -> None:
    """A search hands out NumPy's numbers and arrays, a flag whole numbers and lists; Keras takes
    Python's own, and a float where one is meant.
    """

    class Reached(Exception):
        pass

    class Stops(NeuCrowd):
        def _fit(self, data: TrainingData, run: Run) -> None:
            config = configuration("encoder", self.encoder, ENCODERS)
            assert self.Cs == [0.1, 1.0] and config.hidden_units == [8, 4]
            numbers = (*self.Cs, config.dropout, config.l2)
            assert {type(number) for number in numbers} == {float}
            numbers = (*config.hidden_units, self.patience, self.epochs)
            assert {type(number) for number in numbers} == {int}
            raise Reached

    options: dict[str, Any] = {
        "Cs": np.array([0.1, 1.0]),
        "patience": np.int64(3),
        "encoder": {"hidden_units": [8, np.int32(4)], "dropout": 0, "l2": np.float32(0.5)},
        "epochs": np.int64(2),
    }
    with pytest.raises(Reached):
        Stops(**options, learning_rate=1).fit(
            np.eye(4), Annotations.from_dense([[0], [1], [0], [1]])
        )


def test_bounds_belong_to_the_right_side() -> None:
    whole(1).check("n", 1)
    (none | whole(1)).check("n", None)
    number(least=0, below=1).check("x", 0.0)
    number(least=1).check("x", 1.0)
    one_of("a", "b").check("x", "a")
    widths.check("x", [1])
    strengths.check("x", np.array([1e-9]))
    for constraint, values in (
        (whole(1), (0, None, "1", 1.0)),
        (number(above=0, below=1), (0, 1, float("inf"), None, "0.5", True)),
        (one_of("a", "b"), ("c", None, ["a"])),
    ):
        for value in values:
            with pytest.raises(UsageError, match=r"^x: expected"):
                constraint.check("x", value)


def test_numbers_of_hundreds_of_digits_are_refused_in_a_short_line() -> None:
    for value in (10**400, "x" * 9000):
        with pytest.raises(UsageError, match="rate: expected a number from 0, received") as error:
            number(least=0).check("rate", value)
        assert len(str(error.value)) < 300
