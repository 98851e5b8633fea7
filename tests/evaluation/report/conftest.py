"""Small crowds and a run's folder to report on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations, simulation
from neucrowd_tf.datasets import CrowdDataset, Split
from tests.crowds import Labelled, corners

HOSTILE = (
    "<script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    '"><svg onload=alert(1)>',
    "=1+1",
    "@SUM(A1)",
    "-2+3",
    "+cmd|' /C calc'!A0",
    "x" * 10_000,
    "a\u202eb\x07c",
    "$\\frac{1}{$",
    "{{ 7*7 }}",
    "-->",
    "\ud800half",
)


RECOMMENDATION = {
    "method": "ds_lr",
    "text": "Recommended: ds_lr.",
    "methods": [
        {"method": "mv_lr", "score": 0.8},
        {"method": "ds_lr", "score": 0.9},
        {"method": "iced", "score": None, "reason": "needs <b>more</b>"},
    ],
}


@pytest.fixture(scope="session")
def crowd() -> Labelled:
    """300 instances of three classes, eight annotators who are good, two who guess, one who is
    mistaken on purpose; the truth.
    """
    rng = default_rng([7, 1])
    truth = rng.integers(0, 3, 300)
    good = simulation.confusion_annotators(8, 3, 1, accuracy=0.85)
    matrices = np.concatenate([good, simulation.spammers(2, 3, 2), simulation.adversaries(1, 3, 3)])
    names = [*(f"good{i}" for i in range(8)), "spam0", "spam1", "adversary"]
    classes = ["cat", "dog", "owl"]
    dense = simulation.simulate(truth, matrices, 4, rates=0.6).to_dense()
    return Annotations.from_dense(dense, annotator_names=names, class_names=classes), truth


@pytest.fixture(scope="session")
def hostile() -> Annotations:
    """A crowd whose tasks, annotators and classes are named to do harm."""
    rng = default_rng([7, 2])
    size = len(HOSTILE)
    tasks, workers = np.repeat(np.arange(size), size), np.tile(np.arange(size), size)
    labels = np.where(rng.random(size * size) < 0.7, tasks % 4, rng.integers(0, 4, size * size))
    names = {"instance_names": HOSTILE, "annotator_names": HOSTILE, "class_names": HOSTILE[:4]}
    return Annotations(tasks, workers, labels, **names)


@pytest.fixture
def dataset(crowd: Labelled) -> CrowdDataset:
    """The crowd with features that tell its classes apart, and a test split."""
    annotations, truth = crowd
    rng = default_rng([7, 3])
    features = corners(rng, truth, 3, 2)
    test = Split(features[:90], truth[:90].astype(np.int64), annotations.instance_names[:90])
    return CrowdDataset("table", features, annotations, test, truth=truth.astype(np.int64))


@pytest.fixture
def run_folder(tmp_path: Path, dataset: CrowdDataset) -> Path:
    """A finished run's folder with its files, beside that of another method."""
    rng = default_rng([7, 4])
    probabilities = (
        rng.dirichlet([1, 1, 1], len(dataset.test)) * 0.5 + 0.5 * np.eye(3)[dataset.test.labels]
    )
    names = dataset.class_names
    for method, accuracy in (("mine", 0.9), ("other", 0.8)):
        folder = tmp_path / "table" / method / "seed-3"
        folder.mkdir(parents=True)
        metrics = {
            "dataset": "table",
            "method": method,
            "seed": 3,
            "test": {"accuracy": accuracy, "auc": 0.95, "ece": 0.05},
            "test_labels": "truth",
        }
        if method == "mine":
            metrics["recommendation"] = RECOMMENDATION
        (folder / "metrics.json").write_text(json.dumps(metrics))
        (folder / "config.json").write_text(
            json.dumps({"method": method, "parameters": {"epochs": 5}})
        )
        columns = {f"p_{name}": p for name, p in zip(names, probabilities.T, strict=True)}
        test, predicted = dataset.test, names[probabilities.argmax(axis=1)]
        table = {"task": test.names, "label": names[test.labels], "predicted": predicted}
        frame = pd.DataFrame({**table, **columns})
        frame.to_csv(folder / "predictions.csv", index=False, float_format="%.9g")
    return tmp_path / "table" / "mine" / "seed-3"
