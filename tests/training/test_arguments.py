"""Hyper-parameters that cannot be used are one clear line, before anything is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import (
    check_arguments,
    none,
    number,
    one_of,
    strengths,
    whole,
    widths,
)
from neucrowd_tf.encoders.tfidf import TextFeatures
from neucrowd_tf.errors import UsageError
from neucrowd_tf.methods.dasc import DASC
from neucrowd_tf.methods.neucrowd import NeuCrowd
from neucrowd_tf.methods.rll import RLL
from neucrowd_tf.methods.texts import TextClassifier
from neucrowd_tf.training import Run
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.networks import ENCODERS, configuration
from neucrowd_tf.training.representation import RepresentationEstimator
from tests.cases import raises
from tests.crowds import array_of


def _reject(estimator: RepresentationEstimator, name: str, expected: str) -> None:
    crowd = Annotations.from_dense(array_of("0; 1; 0; 1"))
    with pytest.raises(UsageError) as caught:
        estimator.fit(np.eye(4), crowd)
    assert str(caught.value) == f"{name}: expected {expected}"


@pytest.mark.parametrize("kind", [NeuCrowd, RLL])
def test_similarity(kind) -> None:
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
            np.eye(4), Annotations.from_dense(array_of("0; 1; 0; 1"))
        )


@pytest.mark.parametrize(
    "make",
    [
        NeuCrowd,
        lambda seed: DASC(seed=seed),
        lambda seed: TextClassifier(estimator=RLL(), seed=seed),
        lambda seed: TextFeatures(seed=seed),
        lambda seed: DawidSkene(seed=seed),
    ],
)
def test_seeds_are_those_that_numpy_and_scikit_learn_take(make) -> None:
    check_arguments(make(seed=2**32 - 1))
    with pytest.raises(UsageError, match="seed: expected a whole number from 0 to 4294967295"):
        check_arguments(make(seed=2**32))


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
            raises(UsageError, r"^x: expected", constraint.check, "x", value)


def test_numbers_of_hundreds_of_digits_are_refused_in_a_short_line() -> None:
    for value in (10**400, "x" * 9000):
        with pytest.raises(UsageError, match="rate: expected a number from 0, received") as error:
            number(least=0).check("rate", value)
        assert len(str(error.value)) < 300
