"""A small simulated crowd that the tests of the aggregators share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from tests.crowds import Labelled


def _make_crowd(
    seed: int = 0,
    instances: int = 300,
    annotators: int = 12,
    classes: int = 3,
    labels_each: int = 5,
    skill: float = 0.7,
) -> Labelled:
    """Returns a sparse crowd of uneven annotators and the truth `[N]`."""
    rng = default_rng(seed)
    truth = rng.choice(
        classes, instances, p=np.arange(classes, 0, -1) / np.arange(classes, 0, -1).sum()
    )
    right = np.clip(rng.normal(skill, 0.15, annotators), 0.3, 0.97)
    workers = np.stack(
        [rng.choice(annotators, labels_each, replace=False) for _ in range(instances)]
    )
    wrong = (truth[:, None] + rng.integers(1, max(classes, 2), workers.shape)) % classes
    labels = np.where(rng.random(workers.shape) < right[workers], truth[:, None], wrong)
    tasks = np.repeat(np.arange(instances), labels_each)
    crowd = Annotations(
        tasks,
        workers.ravel(),
        labels.ravel(),
        num_instances=instances,
        num_annotators=annotators,
        num_classes=classes,
    )
    return crowd, truth


@pytest.fixture(scope="session")
def make_crowd() -> Callable[..., tuple[Annotations, np.ndarray]]:
    """The function above, for tests that want other sizes."""
    return _make_crowd


@pytest.fixture(scope="session")
def crowd() -> Annotations:
    return _make_crowd()[0]


@pytest.fixture(scope="session")
def truth() -> np.ndarray:
    return _make_crowd()[1]
