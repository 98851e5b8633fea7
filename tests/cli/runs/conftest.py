"""A small dataset, methods that end in every way a method can, and the harness in this process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.cli.runs import plugins, process, run_command
from neucrowd_tf.datasets import Card, CrowdDataset, Split
from neucrowd_tf.declare import dataset_registration, registration, registry
from neucrowd_tf.errors import UsageError
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.run import Run
from tests.crowds import noisy_labels

CLASSES = np.array(["no", "-yes"], dtype=object)


def tiny_dataset(data_dir: Path | None = None, seed: int = 0) -> CrowdDataset:
    rng = default_rng([seed, 5])
    truth = np.arange(60) % 2
    features = (rng.normal(size=(60, 3)) + truth[:, None]).astype(np.float32)
    dense = noisy_labels(rng, truth, 4, 0.8)
    dense[:, 3] = -1  # an annotator without labels
    dense[:, 0] = truth
    names = np.array([f"t{i}" for i in range(60)], dtype=object)
    names[0] = "=1+1"
    crowd = Annotations.from_dense(
        dense,
        num_classes=2,
        instance_names=names,
        annotator_names=["@a", "b", "c", "idle"],
        class_names=CLASSES,
    )
    rows = np.arange(60)
    return CrowdDataset(
        name="tiny",
        features=features[20:],
        annotations=crowd[rows[20:]],
        truth=truth[20:],
        test=Split(features[:10], truth[:10], names[:10]),
        validation=Split(features[10:20], truth[10:20], names[10:20]),
        card=Card("Tiny", notes="for tests"),
    )


class Mean(CrowdEstimator):
    """Predicts from the sign of the first features' sum; counts nothing, trains nothing."""

    fail: str
    calls = 0

    def __init__(self, shift: float = 0.5, fail: str = "", seed: int = 0) -> None:
        self.shift = shift
        self.fail = fail
        self.seed = seed

    def _fit(self, data: TrainingData, run: Run) -> None:
        type(self).calls += 1
        if self.fail == "error":
            raise RuntimeError("it broke\nbadly")
        if self.fail == "usage":
            raise UsageError("fail: expected something else, received 'usage'")
        if self.fail == "value":
            raise ValueError("fail: expected nothing, received 'value'")
        if self.fail == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        self.center_ = float(data.features.mean()) + self.shift - 0.5

    def _predict_proba(self, features: np.ndarray) -> np.ndarray:
        p = 1 / (1 + np.exp(-4 * (features.mean(axis=1) - self.center_)))
        return np.stack([1 - p, p], axis=1)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> type[Mean]:
    """Registers the dataset `tiny` and the methods `mean`, `needs_ids`, `at_most_one`, `oracle` for
    one test.
    """
    entry = registry.Dataset("tiny", tiny_dataset, "for tests", simulated=True)
    monkeypatch.setitem(dataset_registration.DATASETS, "tiny", entry)
    votes = registry.Dataset(
        "tiny_votes", lambda data_dir=None, seed=0: _votes_only(seed), "for tests"
    )
    monkeypatch.setitem(dataset_registration.DATASETS, "tiny_votes", votes)
    space = {"shift": (0.1, 0.5, 0.9)}
    for method in (
        registry.Method("mean", Mean, "for tests", space=space),
        registry.Method("needs_ids", Mean, "for tests", requires_identities=True),
        registry.Method("at_most_one", Mean, "for tests", max_classes=1),
        registry.Method("oracle", Mean, "for tests", uses_truth=True),
        registry.Method("broken", Mean, "for tests", defaults={"fail": "error"}),
        registry.Method("killed", Mean, "for tests", defaults={"fail": "kill"}),
    ):
        monkeypatch.setitem(registration.METHODS, method.name, method)
    Mean.calls = 0
    return Mean


def _votes_only(seed: int) -> CrowdDataset:
    whole = tiny_dataset(None, seed)
    crowd = whole.annotations
    votes = Annotations.from_votes(
        crowd.vote_counts(), instance_names=crowd.instance_names, class_names=crowd.class_names
    )
    return whole.replace(name="tiny_votes", annotations=votes, truth=None)


@pytest.fixture
def command(tiny, without_tensorflow: None) -> Callable[..., int]:
    """Runs a command line in this process, without TensorFlow and, unless --report asks for them,
    without reports, and returns the exit code.
    """
    return lambda *items, **more: run_command.main(["--noreport", *items], **more)


@pytest.fixture
def whole_command(tiny, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs a command line in this process, without touching its TensorFlow's settings, and returns
    the exit code.
    """
    monkeypatch.setattr(process, "start", lambda options: None)
    monkeypatch.setattr(process, "start_without_tensorflow", lambda options: None)
    return lambda *items, **more: run_command.main(items, **more)


def leave_out_tensorflow(replace: Callable[[Any, str, Any], None] = setattr) -> None:
    """Replaces, for time, what imports TensorFlow around a run; there are no TensorBoard logs."""
    replace(process, "start", lambda options: None)
    replace(process, "start_without_tensorflow", lambda options: None)
    replace(process, "forget_networks", lambda: None)
    for name in ("scalars", "flush"):
        replace(Run, name, lambda *_: None)


@pytest.fixture
def without_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_tensorflow(monkeypatch.setattr)


@pytest.fixture
def registered() -> None:
    """Registers the project's methods and datasets."""
    plugins.register(("baselines", "data", "reproduction"))
