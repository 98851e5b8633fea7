"""curves.csv: the accuracy on training and test instances after each epoch."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.files.reading import read_text
from neucrowd_tf.io.tables.writing import number_cell, to_csv
from neucrowd_tf.training.run import Run

COLUMNS = ("stage", "epoch", "train_accuracy", "test_accuracy")


class CurveRecorder:
    """Scores a model after each epoch of its training; the fit does not see the scores.

    A resumed run computes the rows after its last checkpoint again; they are the same.

    Attributes:
        estimator: the estimator in training. If a stage trains another model than the estimator,
            its method `watched(stage)` returns that model.
    """

    def __init__(self, path: Path, dataset: CrowdDataset) -> None:
        self.path = path
        self.dataset = dataset
        self.estimator: Any = None
        self.rows: dict[tuple[str, str], list[str]] = {}
        if path.exists():
            _, *rows = csv.reader(io.StringIO(read_text(path)))
            self.rows = {(row[0], row[1]): row for row in rows}

    def after(self, stage: str, epoch: int) -> None:
        """Adds a row for an epoch of a stage, if there is a model to score."""
        model = self.estimator
        if hasattr(model, "watched"):
            model = model.watched(stage)
        if getattr(model, "model_", None) is None:
            return
        cells = [stage, str(epoch)]
        test = self.dataset.test
        for part, labels in ((self.dataset, self.dataset.truth), (test, test.labels)):
            features = self.estimator._values(part.features)  # as its models see them
            cells.append(number_cell(_accuracy(model, features, labels)))
        self.rows[stage, str(epoch)] = cells
        write_text(self.path, to_csv(COLUMNS, self.rows.values()))


@dataclasses.dataclass(frozen=True)
class RecordedRun(Run):
    """A run whose recorder scores the model after each epoch of each stage."""

    recorder: CurveRecorder | None = None

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Writes scalars; after an epoch with a loss it records a row."""
        super().scalars(step, values)
        if self.recorder is not None and "loss" in values:
            self.recorder.after(self.prefix.rstrip("/"), step)


def _accuracy(model: Any, features: Any, labels: Any) -> float:
    """Returns the accuracy over the labelled instances; NaN if none is labelled."""
    if labels is None or not (labels >= 0).any():
        return float("nan")
    rows = np.flatnonzero(labels >= 0)
    predicted = np.asarray(model._predict_proba(features[rows])).argmax(axis=1)
    return float((predicted == labels[rows]).mean())
