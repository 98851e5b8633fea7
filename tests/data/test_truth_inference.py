"""The truth-inference benchmarks' reader and the suite over them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from data import truth_inference
from neucrowd_tf.aggregation import IBCC
from neucrowd_tf.errors import DataError
from reproduction.truth_inference import METHODS, measured, table
from tests.cases import raises
from tests.crowds import array_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    one = tmp_path / "truth_inference" / "tiny"
    one.mkdir(parents=True)
    (one / "label.csv").write_text(
        "item,worker,label\n5,a,0\n5,a,0\n5,b,1\n7,a,1\n7,b,1\n7,b,0\n9,a,0\n9,b,0\n"
    )
    (one / "truth.csv").write_text("item,truth\n5,0\n7,1\n9,3\n")
    (tmp_path / "truth_inference" / "printed.csv").write_text("dataset,ibcc\ntiny,0.5\n")
    return tmp_path


def test_reads_labels_and_truth(folder: Path) -> None:
    assert truth_inference.names(folder) == ["tiny"]
    result = truth_inference.load(folder, "tiny")
    assert result.annotations.num_annotations == 6  # repeats, and a second opinion, left out
    np.testing.assert_array_equal(result.truth, [0, 1, -2])
    # Item 5 is a tie and counts half, item 7 is right, item 9's class was never named.
    shares = array_of("0.5 0.5; 0.0 1.0; 1.0 0.0")
    assert result.accuracy(shares) == pytest.approx(1.5 / 3)
    assert truth_inference.printed(folder) == {"ibcc": {"tiny": 0.5}}


def test_hitspam_has_no_header(tmp_path: Path) -> None:
    (tmp_path / "hitspam").mkdir()
    (tmp_path / "hitspam" / "labels.txt").write_text("1\tx\tNo\n2\tx\tYes\n1\ty\tYes\n")
    (tmp_path / "hitspam" / "gold.txt").write_text("y\tYes\nz\tNo\n")
    benchmark = truth_inference.load_hitspam(tmp_path)
    assert benchmark.annotations.num_annotations == 3
    assert benchmark.truth.tolist() == [-1, 1]  # z has no labels


def test_what_is_not_there_or_wrong_is_one_error(folder: Path) -> None:
    assert truth_inference.names(None) == []
    raises(DataError, r"expected label\.csv and truth\.csv", truth_inference.load, folder, "none")
    path = folder / "truth_inference" / "tiny" / "truth.csv"
    for text, message in (
        ("item,truth\n11,0\n", r"row 0: .* received 11"),
        ("item,truth\n11,5,0\n", r"truth\.csv: a row is longer than the header"),
        ("item,truth\n5,0\n7\n", r"truth\.csv: row 1: expected a value in column 'truth'"),
    ):
        path.write_text(text)
        raises(DataError, message, truth_inference.load, folder, "tiny")
    path = folder / "truth_inference" / "printed.csv"
    path.write_text("dataset,ibcc\n1,tiny,0.5\n")
    with pytest.raises(DataError, match=r"printed\.csv: a row is longer than the header"):
        truth_inference.printed(folder)


def test_every_method_is_measured(folder: Path) -> None:
    rows = list(measured(folder, "tiny", 0))
    assert [(row["dataset"], row["method"]) for row in rows] == [("tiny", m) for m in METHODS]
    assert all(0 <= row["accuracy"] <= 1 and row["seconds"] >= 0 for row in rows)
    assert [row["method"] for row in rows if row["published"] == 0.5] == ["ibcc"]
    cells = {(name, method): accuracy for name, method, accuracy, *_ in table(rows)}
    assert all(cells["mean of 1", method] == cells["tiny", method] for method in METHODS)


def test_printed_accuracies_are_reached(data_dir: Path) -> None:
    """Two small published sets, to half a point."""
    for name in ("CF", "rte"):
        if name not in truth_inference.names(data_dir):
            pytest.skip("the benchmarks are not in the data folder")
        result = truth_inference.load(data_dir, name)
        printed = truth_inference.printed(data_dir)["ibcc"][name]
        reached = result.accuracy(IBCC().fit(result.annotations).probas_)
        assert reached == pytest.approx(printed, abs=0.005)
