"""Rows and columns of empty cells, as spreadsheets save what was formatted and never filled in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neucrowd_tf.annotations import read_annotations
from neucrowd_tf.datasets.table import load
from neucrowd_tf.errors import DataError

LONG = "task,worker,label\nt1,a,x\nt1,b,y\nt2,a,y\n"


@pytest.mark.parametrize("end", ["", ",,\n", ",,\n,,\n", " , ,\r\n,,", ",,\n\n\n"])
@pytest.mark.parametrize("blank", ["", ",", ",,"])
def test_what_is_empty_at_the_end_is_passed_over(tmp_path: Path, end: str, blank: str) -> None:
    path = tmp_path / "a.csv"
    wide = "task,ann,ben\nt1,x,y\nt2,y,\n"
    counts = "task,votes_x,votes_y\nt1,1,1\nt2,0,1\n"
    for text in (LONG, wide, counts):
        lines = "".join(f"{line}{blank}\n" for line in text.splitlines())
        path.write_text(lines + end.replace(",", "," + blank, 1), encoding="utf-8")
        assert read_annotations(path).vote_counts().tolist() == [[1, 1], [0, 1]]


def test_what_is_empty_elsewhere_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("task,worker,label\nt1,a,x\n,,\nt2,a,y\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 3, column 'task': expected a value, received an emp"):
        read_annotations(path)
    path.write_text(",task,ann,ben\n0,t1,x,y\n1,t2,y,\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"empty header for column 1 \(a frame's row index\?"):
        read_annotations(path)
    path.write_text("0,1,1\n1,0,1\n,,\n", encoding="utf-8")
    assert read_annotations(path).to_dense().tolist() == [[0, 1, 1], [1, 0, 1], [-1, -1, -1]]
    path.write_text("task\tann\tben\nt1\tx\ty\nt2\t\t\n\t\t\n", encoding="utf-8")
    assert np.isin(read_annotations(path).to_dense()[1], -1).all()


def test_a_features_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(LONG)
    (tmp_path / "f.csv").write_text("task,f1,f2,,\nt1,1,2,,\nt2,3,4,,\n,,,,\n")
    found = load(features=tmp_path / "f.csv", annotations=tmp_path / "a.csv")
    assert found.features.shape[1:] == (2,) and len(found.test.features) == 1
