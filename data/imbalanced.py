"""ICED's simulated crowds (section 3.1.1) on imbalanced data.

The training set is drawn from labelled data; annotators' skills differ by class.

The appendix with the details is not in our text of the paper; the sizes of its table 1 follow from:
a test set of a fifth of the majority class from each class, the rest of the majority class for
training, and a tenth as many of the minority class.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np

from neucrowd_tf.annotations import simulation
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.datasets.scarcity import long_tail_sizes
from neucrowd_tf.declare.declarations import (
    check_arguments,
    declared_by_name,
    estimator,
    number,
    one_of,
    whole,
)
from neucrowd_tf.declare.types import Array, Fields
from neucrowd_tf.errors import DataError

from . import catalogue

TEST_SHARE = 0.2


@estimator
class Crowd:
    """Simulated annotators, and the classes that they label.

    An annotator labels each class correctly with a probability from `low` to `high`.
    """

    annotators: Annotated[int, whole(1), "how many."]
    ratio: Annotated[float, number(above=0), "of classes' sizes in training."]
    low: Annotated[float, number(least=0, most=1), "the least probability."] = 0.4
    high: Annotated[float, number(least=0, most=1), "the largest probability."] = 0.9
    skills: Annotated[
        str,
        one_of("uniform", "split"),
        'the probability: "uniform", or for each class "high" of a drawn majority of annotators and'
        ' "low" of the others.',
    ] = "uniform"
    rate: Annotated[
        float,
        number(above=0, most=1),
        "the share of the instances that each annotator labels; each instance is labelled at least"
        " once.",
    ] = 1.0


OPTIONS = tuple(declared_by_name(Crowd))
Read = Callable[[Path | None], "tuple[Array, Array]"]
Load = Callable[..., CrowdDataset]


def register_pair(name: str, read: Read, *, majority: int, minority: int, annotators: int) -> Load:
    """Registers a two-class task as the paper draws it, and returns its loader.

    Args:
        name: of the dataset.
        read: returns features `[M, d]` and the classes `[M]` as published.
        majority: the larger class.
        minority: the smaller class.
        annotators: default of their number.
    """

    def sizes(labels: Array, ratio: float) -> tuple[dict[int, int], int]:
        largest = int((labels == majority).sum())
        test = int(TEST_SHARE * largest)
        return {majority: largest - test, minority: int(ratio * (largest - test))}, test

    return _register(name, read, sizes, {"annotators": annotators, "ratio": 0.1})


def register_long_tail(name: str, read: Read, *, annotators: int) -> Load:
    """Registers a task of all C classes with long-tailed training sizes; returns its loader.

    The sizes fall exponentially, `ratio` to 1 from class 0 to class C - 1. The test set takes, from
    each class, a fifth of the rarest class's rows.
    """

    def sizes(labels: Array, ratio: float) -> tuple[dict[int, int], int]:
        classes, counts = np.unique(labels, return_counts=True)
        test = int(TEST_SHARE * counts.min())
        tail = long_tail_sizes(int(counts.min()) - test, len(classes), ratio)
        return dict(zip(classes.tolist(), tail, strict=True)), test

    return _register(name, read, sizes, {"annotators": annotators, "ratio": 10.0})


def _register(
    name: str,
    read: Read,
    sizes: Callable[[Array, float], tuple[dict[int, int], int]],
    defaults: Fields,
) -> Load:
    """Registers a task and returns its loader.

    Args:
        name: of the dataset.
        read: returns features `[M, d]` and the classes `[M]` as published.
        sizes: returns the training size of each class, and the size of each class in the test set.
        defaults: of `Crowd`.
    """

    def load(data_dir: Path | None = None, seed: int = 0, **options: object) -> CrowdDataset:
        """Draws the rows, the annotators and their labels from the seed.

        Args:
            data_dir: where the files are.
            seed: of the draw.
            **options: of `Crowd`.

        Raises:
            UsageError: an option that is not what it may be.
            DataError: too few rows of a class.
        """
        crowd = Crowd(**{**defaults, **options})
        check_arguments(crowd)
        features, labels = read(data_dir)
        train_sizes, test_size = sizes(labels, crowd.ratio)
        generator = np.random.default_rng([seed, 0x1CED])
        train_rows = []
        test_rows = []
        codes = np.full(len(labels), -1, dtype=np.int64)
        for code, (label, size) in enumerate(train_sizes.items()):
            rows = generator.permutation(np.flatnonzero(labels == label))
            if len(rows) < size + test_size or not size or not test_size:
                raise DataError(
                    f"{name}: expected {size} training and {test_size} test rows of class {label},"
                    f" received {len(rows)} rows"
                )
            codes[rows] = code
            train_rows.append(rows[:size])
            test_rows.append(rows[size : size + test_size])
        train = generator.permutation(np.concatenate(train_rows))
        test = generator.permutation(np.concatenate(test_rows))
        kinds = {"uniform": simulation.class_skill_annotators, "split": simulation.split_annotators}
        skills = kinds[crowd.skills](
            crowd.annotators, len(train_sizes), seed, low=crowd.low, high=crowd.high
        )
        annotations = simulation.simulate(
            codes[train], skills, seed, rates=crowd.rate, instance_names=train
        )
        training = Split(features[train], codes[train], train)
        held_out = Split(features[test], codes[test], test)
        return catalogue.dataset(name, training, annotations, held_out)

    loader: Load = catalogue.register(
        name, simulated=True, options=OPTIONS, module=read.__module__
    )(load)
    return loader
