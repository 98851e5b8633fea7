"""Hyper-parameters that cannot be used are one clear line, before anything is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from baselines.metric_learning import MetricLearning
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.arguments import (
    argument,
    check_arguments,
    declared,
    estimator,
    fitted,
    none,
    number,
    one_of,
    strengths,
    whole,
    widths,
)
from neucrowd_tf.errors import UsageError
from neucrowd_tf.neucrowd import NeuCrowd
from neucrowd_tf.rll import RLL
from neucrowd_tf.training import Run
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.representation import RepresentationEstimator

WRONG: list[tuple[str, Any, str]] = [
    ("learning_rate", 0.0, "a number above 0, received 0.0"),
    ("learning_rate", "fast", "a number above 0, received 'fast'"),
    ("learning_rate", float("nan"), "a number above 0, received nan"),
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
    _reject(kind(**{name: value}), name, expected)


@pytest.mark.parametrize("kind", [NeuCrowd, RLL])
def test_similarity(kind: Any) -> None:
    _reject(kind(similarity="dot"), "similarity", "'cosine' or 'euclidean', received 'dot'")


def test_arguments_of_other_types_that_mean_the_same_pass() -> None:
    """A search hands out NumPy's numbers and arrays, a flag whole numbers and lists."""

    class Reached(Exception):
        pass

    class Stops(NeuCrowd):
        def _fit(self, data: TrainingData, run: Run) -> None:
            raise Reached

    options: dict[str, Any] = {
        "Cs": np.array([0.1, 1.0]),
        "patience": np.int64(3),
        "hidden_units": [8, np.int32(4)],
        "epochs": np.int64(2),
    }
    with pytest.raises(Reached):
        Stops(**options, learning_rate=1, dropout=0, l2=0).fit(
            np.eye(4), Annotations.from_dense([[0], [1], [0], [1]])
        )


def test_bounds_belong_to_the_right_side() -> None:
    for constraint, good, bad in (
        (whole(1), (1, np.int64(2)), (0, None, "1", 1.0, True)),
        (none | whole(1), (None, 1), (0,)),
        (number(least=0, below=1), (0, 0.0, np.float32(0.5)), (1, -1e-9, float("nan"), None)),
        (number(above=0, most=1), (1, 1e-9), (0, 1.1, float("inf"), "0.5", True)),
        (one_of("a", "b"), ("a",), ("c", None, ["a"])),
        (widths, ([1], np.array([2, 3])), ((), "64", (1, 0), 64)),
        (strengths, (np.array([1e-9]),), ((), (1.0, 0.0))),
    ):
        for value in good:
            constraint.check("x", value)
        for value in bad:
            with pytest.raises(UsageError, match=r"^x: expected"):
                constraint.check("x", value)


def test_declarations_are_inherited_and_documented() -> None:
    @estimator
    class Base:
        """A base."""

        rate: float = argument(0.1, number(above=0), "how fast.")
        found_: int = fitted()

    @estimator
    class Method(Base):
        """A method.

        Attributes:
            found_: what was found.
        """

        kind: str = argument("a", one_of("a", "b"), "which.", positional=True)
        rate: float = 0.5

    made = Method("b")
    assert (made.kind, made.rate, hasattr(made, "found_")) == ("b", 0.5, False)
    assert [field.name for field in declared(Method)] == ["kind", "rate"]
    assert "Args:\n    kind: which.\n    rate: how fast.\n\nAttributes:" in str(Method.__doc__)
    with pytest.raises(UsageError, match=r"^rate: expected a number above 0, received -1$"):
        check_arguments(Method(rate=-1))
    with pytest.raises(TypeError):
        Base(0.2)  # type: ignore[misc]
