"""evaluation.json, history.json and curves.csv: what a run leaves for figures, and that none of it
enters a fit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

from neucrowd_tf.cli.runs.curves import CurveRecorder, RecordedRun
from neucrowd_tf.evaluation.scoring import accuracy_of_surest, evaluate
from tests.cli.runs.conftest import Mean, tiny_dataset
from tests.crowds import array_of


def test_accuracy_of_the_surest_by_hand() -> None:
    # Ten instances, ever less sure of class 0, which is right for the first five and the last: 10 %
    # .. 50 % are all right, 60 % has 5 of 6, 70 % 5 of 7, 80 % 5 of 8, 90 % 5 of 9, all 6 of 10.
    sure = np.linspace(0.99, 0.55, 10)
    truth = array_of("0 0 0 0 0 1 1 1 1 0")
    order = default_rng(0).permutation(10)
    result = accuracy_of_surest(np.stack([sure, 1 - sure], axis=1)[order], truth[order])
    assert result == pytest.approx([1, 1, 1, 1, 1, 5 / 6, 5 / 7, 5 / 8, 5 / 9, 0.6])


def test_the_estimators_own_figures_are_taken_in() -> None:
    class Tells(Mean):
        def evaluation(self, dataset) -> dict[str, Any]:
            return {"rounds": {"test_accuracy": [0.5, float("nan")]}, "size": len(dataset.truth)}

    dataset = tiny_dataset()
    probabilities = np.eye(2)[dataset.truth]
    result = evaluate(dataset, Tells(), probabilities, seed=0)
    assert result["surest"]["accuracy"] == [1.0] * 10 and result["size"] == 40
    # The first annotator knows the truth, the others are right four times in five: the vote is
    # right for most, not for all.
    assert 0.7 < result["label_majority_vote"] <= 1.0
    blind = dataset.replace(truth=np.full(40, -1))
    assert "surest" not in evaluate(blind, Mean(), probabilities, seed=0)


def test_a_recorder_scores_each_epoch_and_goes_on_from_its_file(tmp_path: Path) -> None:
    dataset, path = tiny_dataset(), tmp_path / "curves.csv"

    class Part:
        model_ = "there"
        good = True

        def _values(self, features: np.ndarray) -> np.ndarray:
            return features - 0.5

        def _predict_proba(self, features: np.ndarray) -> np.ndarray:
            return np.eye(2)[
                (
                    (features.mean(axis=1) > 0.0).astype(int)
                    if self.good
                    else np.zeros(len(features), int)
                )
            ]

    recorder = CurveRecorder(path, dataset)
    run = RecordedRun(recorder=recorder).stage("game")
    run.scalars(0, {"loss": 1.0})  # nothing is fitted yet
    assert not path.exists()
    recorder.estimator = Part()
    run.scalars(0, {"loss": 1.0})
    run.scalars(0, {"accuracy": 1.0})  # no epoch's
    recorder.estimator.good = False
    run.scalars(1, {"loss": 1.0})
    before = path.read_bytes()
    rows = pd.read_csv(path)
    assert list(rows["stage"]) == ["game", "game"] and list(rows["epoch"]) == [0, 1]
    assert rows["train_accuracy"][1] == pytest.approx((dataset.truth == 0).mean())
    right = (dataset.features.mean(axis=1) > 0.5) == dataset.truth
    assert rows["train_accuracy"][0] == pytest.approx(right.mean())
    again = CurveRecorder(path, dataset)
    again.estimator = recorder.estimator
    RecordedRun(recorder=again).stage("game").scalars(1, {"loss": 1.0})
    assert path.read_bytes() == before


def test_runs_leave_their_evaluation_and_earlier_ones_are_completed(
    command: Callable[..., int], tmp_path: Path, tiny: type[Mean]
) -> None:
    tiny.history_ = {"loss": [2.0, float("nan")]}
    try:
        assert command("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}") == 0
        run = tmp_path / "tiny" / "mean" / "seed-0"
        assert json.loads((run / "history.json").read_text()) == {"loss": [2.0, None]}
        before = (run / "evaluation.json").read_bytes()
        (run / "metrics.json").unlink()
        (run / "evaluation.json").unlink()
        (run / "history.json").unlink()
        assert (
            command("--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}", "--resume") == 0
        )
        assert (run / "evaluation.json").read_bytes() == before and (run / "history.json").exists()
    finally:
        del tiny.history_
