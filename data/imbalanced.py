"""ICED's simulated crowds (section 3.1.1) on imbalanced data.

The training set is drawn from labelled data; annotators' skills differ by class.

The paper's appendix with the details is not published; the sizes of its table 1 follow from: a test
set of a fifth of the majority class from each class, the rest of the majority class for training,
and a tenth as many of the minority class.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from data import catalogue
from neucrowd_tf.annotations import simulation
from neucrowd_tf.datasets import CrowdDataset, Split
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.registry import register_dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

TEST_SHARE = 0.2


@dataclasses.dataclass(frozen=True)
class Crowd:
    """Simulated annotators.

    Attributes:
        annotators: how many.
        low, high: each annotator labels each class correctly with a probability uniform between
            these.
        rate: the share of the instances that each annotator labels; each instance is labelled at
            least once.
    """

    annotators: int
    low: float = 0.4
    high: float = 0.9
    rate: float = 1.0

    def __post_init__(self) -> None:
        for name in ("annotators", "low", "high", "rate"):
            value = getattr(self, name)
            if not isinstance(value, (int, float, np.number)) or (
                name == "annotators" and int(value) != value
            ):
                raise UsageError(
                    f"{name}: expected a {'whole ' if name == 'annotators' else ''}number, received"
                    f" {value!r}"
                )
        if self.annotators < 1 or not 0 <= self.low <= self.high <= 1 or not 0 < self.rate <= 1:
            raise UsageError(
                "expected annotators of 1 or more, 0 <= low <= high <= 1 and a rate above 0 and at"
                f" most 1, received {self.annotators}, {self.low}, {self.high} and {self.rate}"
            )


Read = Callable[[Path | None], "tuple[NDArray[Any], NDArray[Any]]"]
Load = Callable[..., CrowdDataset]


def register_pair(
    name: str, summary: str, read: Read, *, majority: int, minority: int, annotators: int
) -> Load:
    """Registers a two-class task as the paper draws it, and returns its loader.

    Args:
        name: of the dataset.
        summary: of the dataset.
        read: returns features `[M, d]` and the classes `[M]` as published.
        majority: default of the larger class.
        minority: default of the smaller class.
        annotators: default of their number.
    """

    def load(
        data_dir: Path | None = None,
        seed: int = 0,
        *,
        majority: int = majority,
        minority: int = minority,
        ratio: float = 0.1,
        annotators: int = annotators,
        low: float = 0.4,
        high: float = 0.9,
        rate: float = 1.0,
    ) -> CrowdDataset:
        """Draws the rows, the annotators and their labels from the seed.

        Args:
            data_dir: where the files are.
            seed: of the draw.
            majority: the larger class.
            minority: the smaller class.
            ratio: minority over majority in training.
            annotators: see `Crowd`, as `low`, `high` and `rate`.
            low: see `Crowd`.
            high: see `Crowd`.
            rate: see `Crowd`.

        Raises:
            UsageError: the same class twice, or a ratio outside 0 to 1.
            DataError: too few rows of a class.
        """
        features, labels = read(data_dir)
        crowd, number = Crowd(annotators, low, high, rate), (int, float, np.number)
        if majority == minority or not isinstance(ratio, number) or not 0 < ratio <= 1:
            raise UsageError(
                f"{name}: expected two classes and a ratio above 0 and at most 1, received"
                f" {majority}, {minority} and {ratio}"
            )
        size = int((labels == majority).sum())
        test = int(TEST_SHARE * size)
        sizes = [size - test, int(ratio * (size - test))]
        return _draw(name, features, labels, [majority, minority], sizes, test, seed, crowd)

    options = ("majority", "minority", "ratio", "annotators", "low", "high", "rate")
    return register_dataset(name, summary=summary, simulated=True, options=options)(load)


def register_long_tail(name: str, summary: str, read: Read, *, annotators: int) -> Load:
    """Registers a task of all C classes with long-tailed training sizes; returns its loader.

    The sizes fall exponentially, `ratio` to 1 from class 0 to class C - 1. The test set takes, from
    each class, a fifth of the rarest class's rows.
    """

    def load(
        data_dir: Path | None = None,
        seed: int = 0,
        *,
        ratio: float = 10.0,
        annotators: int = annotators,
        low: float = 0.4,
        high: float = 0.9,
        rate: float = 1.0,
    ) -> CrowdDataset:
        """Draws the rows, the annotators and their labels from the seed; see `register_pair`."""
        features, labels = read(data_dir)
        crowd = Crowd(annotators, low, high, rate)
        classes, counts = np.unique(labels, return_counts=True)
        test = int(TEST_SHARE * counts.min())
        sizes = long_tail_sizes(int(counts.min()) - test, len(classes), ratio)
        return _draw(name, features, labels, classes.tolist(), sizes, test, seed, crowd)

    options = ("ratio", "annotators", "low", "high", "rate")
    return register_dataset(name, summary=summary, simulated=True, options=options)(load)


def long_tail_sizes(largest: int, num_classes: int, ratio: float) -> list[int]:
    """Returns `[C]` class sizes `largest * ratio ** (-c / (C - 1))`, rounded down, one at least.

    References:
        DASC, section 4.1 (CIFAR10-H with ratio 5).
    """
    if not isinstance(ratio, (int, float, np.number)) or not 1 <= ratio < np.inf or num_classes < 2:
        raise UsageError(
            f"long tail: expected a ratio of 1 or more and two classes or more, received {ratio}"
            f" and {num_classes}"
        )
    return [
        max(1, int(largest * ratio ** (-code / (num_classes - 1)) + 1e-9))
        for code in range(num_classes)
    ]


def _draw(
    name: str,
    features: NDArray[Any],
    labels: NDArray[Any],
    classes: Sequence[int],
    sizes: Sequence[int],
    test_size: int,
    seed: int,
    crowd: Crowd,
) -> CrowdDataset:
    generator = np.random.default_rng([seed, 0x1CED])
    train_rows, test_rows = [], []
    for label, size in zip(classes, sizes, strict=True):
        rows = generator.permutation(np.flatnonzero(labels == label))
        if len(rows) < size + test_size or not size or not test_size:
            raise DataError(
                f"{name}: expected {size} training and {test_size} test rows of class {label},"
                f" received {len(rows)} rows"
            )
        train_rows.append(rows[:size])
        test_rows.append(rows[size : size + test_size])
    code = {label: number for number, label in enumerate(classes)}
    train, test = (generator.permutation(np.concatenate(rows)) for rows in (train_rows, test_rows))
    truth, test_truth = (
        np.array([code[label] for label in labels[rows].tolist()], dtype=np.int64)
        for rows in (train, test)
    )
    skills = simulation.class_skill_annotators(
        crowd.annotators, len(classes), seed, low=crowd.low, high=crowd.high
    )
    return CrowdDataset(
        name=name,
        features=features[train].astype(np.float32, copy=False),
        annotations=simulation.simulate(
            truth, skills, seed, rates=crowd.rate, instance_names=train
        ),
        truth=truth,
        test=Split(features[test].astype(np.float32, copy=False), test_truth, test),
        card=catalogue.card(name),
    )
