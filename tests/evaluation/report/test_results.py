"""What is read from a run's predictions.csv."""

from __future__ import annotations

from pathlib import Path

import pytest

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.predictions import read_predictions
from tests.cases import cases, raises


def test_predictions_are_read_with_formulas_and_unknown_labels(tmp_path: Path) -> None:
    path = tmp_path / "predictions.csv"
    path.write_text(
        "task,true_label,predicted,p_=a,p_b\nt1,'=a,'=a,0.75,0.25\nt2,,b,0.5,0.5\nt3,b,b,0.25,0.75\n"
    )
    result = read_predictions(path)
    assert result.tasks == ("t1", "t2", "t3")
    assert result.labels.tolist() == [0, -1, 1]
    assert result.probabilities.tolist() == [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("rows", "message"),
    cases(r"""
["", "not the predictions of a run"],
["t,c,a,1,0", "not the predictions of a run"],
["t,a,a,one,0", "not the predictions of a run"],
["t,a,a,1,0,0", "not the predictions of a run"],
["t,a,a,1,0\nu,a,a,1", "not the predictions of a run"],
["t,a,a,1,0\nu,a,a,1,1", "row 2: the probabilities are not"],
["t,a,a,2,-1", "row 1: the probabilities are not"],
["t,a,a,1,nan", "row 1: the probabilities are not"],
["t,a,c,1,0", "row 1: the predicted class"],
["t,a,a,1,0\nt,b,a,1,0", "row 2: the task has occurred before"]
"""),
)
def test_other_files_are_one_clear_error(tmp_path: Path, rows: str, message: str) -> None:
    path = tmp_path / "predictions.csv"
    path.write_text(f"task,label,predicted,p_a,p_b\n{rows}\n" if rows else "")
    raises(DataError, message, read_predictions, path)
    path.write_text("task,label,x,p_a,p_b\nt,a,a,1,0\n")
    raises(DataError, "its columns are task, label, x", read_predictions, path)
    raises(DataError, "No such file", read_predictions, tmp_path / "none.csv")
