"""What is read from a run's folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from neucrowd_tf.commands.predictions import read_predictions
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.reading import digest
from neucrowd_tf.report.results import read_run, siblings


def test_predictions_are_read_with_formulas_and_unknown_labels(tmp_path: Path) -> None:
    path = tmp_path / "predictions.csv"
    path.write_text(
        "task,label,predicted,p_=a,p_b\nt1,'=a,'=a,0.75,0.25\nt2,,b,0.5,0.5\nt3,b,b,0.25,0.75\n"
    )
    result = read_predictions(path)
    assert result.tasks == ("t1", "t2", "t3") and result.class_names.tolist() == ["=a", "b"]
    assert result.labels.tolist() == [0, -1, 1]
    assert result.probabilities.tolist() == [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,label\n", "expected the columns task, label, predicted"),
        ("task,label,predicted,p_a,p_b\nt,c,a,1,0\n", "row 0: expected a task, known classes"),
        ("task,label,predicted,p_a,p_b\nt\n", "row 0: expected a task, known classes"),
        ("task,label,predicted,p_a,p_b\nt,a,a,.9,.9\n", r"sum to 1, received \.9, \.9"),
        ("task,label,predicted,p_a,p_b\nt,a,a,-1,2\n", "row 0: expected probabilities"),
        ("task,label,predicted,p_a,p_b\nt,a,a,1,0\nt,a,a,1,0\n", "each task once, received 't'"),
        ("task,label,predicted,p_a,p_b\nt,a,a,one,0\n", "row 0: expected probabilities"),
    ],
)
def test_other_files_are_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "predictions.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_predictions(path)
    path.write_bytes(b"task,label,predicted,p_a,p_b\n\xff,a,a,1,0\n")
    with pytest.raises(DataError, match="line 2: the bytes are not UTF-8"):
        read_predictions(path)
    with pytest.raises(DataError, match="no such file"):
        read_predictions(tmp_path / "none.csv")


@pytest.mark.parametrize("text", ["5", '"epochs"', "[1]"])
def test_parameters_without_names_are_one_clear_error(run_folder: Path, text: str) -> None:
    path = run_folder / "config.json"
    path.write_text(f'{{"method": "mine", "parameters": {text}}}')
    with pytest.raises(DataError) as caught:
        read_run(run_folder)
    assert str(caught.value).startswith(f"{path}: parameters: missing or of another type")


@pytest.mark.parametrize("name", ["predictions.csv", "annotators.csv", "evaluation.json"])
def test_results_that_the_run_did_not_write_are_one_clear_error(
    run_folder: Path, name: str
) -> None:
    path = run_folder / name
    if not path.exists():
        path.write_text('{"surest": 1}' if path.suffix == ".json" else "a,b\n1,2\n")
    metrics = json.loads((run_folder / "metrics.json").read_text())
    metrics["digests"] = {"labels.csv": "0" * 64}  # which is not there
    if path.suffix == ".csv":
        metrics["digests"][name] = digest(path)
    (run_folder / "metrics.json").write_text(json.dumps(metrics))
    assert read_run(run_folder).method == "mine"
    path.write_text(path.read_text()[:-3])
    with pytest.raises(DataError) as caught:
        read_run(run_folder)
    assert str(caught.value).startswith(f"{path}: expected the file that the run wrote, received")
    assert "--resume" in str(caught.value)


def test_runs_of_the_same_seed_are_compared(run_folder: Path) -> None:
    rows = siblings(run_folder)
    assert [(row["method"], row["accuracy"]) for row in rows] == [("mine", 0.9), ("other", 0.8)]


class _Held:
    """A method that predicted some training rows when they were held out."""

    def __init__(self) -> None:
        self.rows_ = np.array([0, 2])
        self.held_out_probas_ = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        return np.full((len(features), 3), 1 / 3)


def test_held_out_predictions_are_preferred(run_folder: Path, dataset: CrowdDataset) -> None:
    result = read_run(run_folder, dataset, _Held())
    assert result.method == "mine" and result.training is not None
    assert result.training[1:3].tolist() == [[1 / 3] * 3, [0.0, 0.0, 1.0]]
    assert result.metrics["ece"] == 0.05
