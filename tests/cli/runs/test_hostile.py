"""A user's table whose names are meant to do harm: nothing that goes out of a run is a formula, a
script or a broken row.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

import neucrowd_tf.methods.two_stage.labels_first  # noqa: F401 - registers ds_lr
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.io.labels import read_annotations

NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "first\r=1+1",
    "first\n=1+1",
    "\uff1d1+1",
    "x" * 10_000,
    "right\u202eleft",
    "zero\u200bwidth",
    "\u05e9\u05dc\u05d5\u05dd",
    'in "quotes", with commas',
    "{{ 7*7 }}",
    "label with spaces",
)
# What files may hold: the reader rejects control characters and line breaks in names.
SAFE = tuple(name for name in NAMES if name.isprintable())
CLASSES = ("=1+1", "a label", "<b>bold</b>", "two words")


def _write(path: Path, rows: list[list[str]]) -> None:
    """Writes a CSV as spreadsheets do: with a byte order mark, and a carriage return before each
    line feed.
    """
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        csv.writer(stream, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(rows)


@pytest.fixture
def table(tmp_path: Path) -> tuple[list[str], list[str]]:
    """Writes the pair of files and returns the flags that name them, and the tasks."""
    rng = default_rng([22, 1])
    tasks = [*SAFE, *(f"t{i}" for i in range(60))]
    truth = np.arange(len(tasks)) % len(CLASSES)
    features = np.eye(len(CLASSES))[truth] + 0.3 * rng.normal(size=(len(tasks), len(CLASSES)))
    columns = ["=f", "<i>f</i>", "f, 3", "f\n4"]
    numbers = [[task, *map(str, row)] for task, row in zip(tasks, features, strict=True)]
    _write(tmp_path / "f.csv", [["task", *columns], *numbers])
    passed = [
        (i, worker) for i in range(len(tasks)) for worker in rng.choice(len(SAFE), 6, replace=False)
    ]
    labels = [truth[i] if rng.random() < 0.9 else rng.integers(len(CLASSES)) for i, _ in passed]
    rows = [
        [tasks[i], SAFE[worker], CLASSES[label]]
        for (i, worker), label in zip(passed, labels, strict=True)
    ]
    _write(tmp_path / "a.csv", [["task", "worker", "label"], *rows])
    return [f"--features={tmp_path / 'f.csv'}", f"--annotations={tmp_path / 'a.csv'}"], tasks


def _rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


def _plain(cell: str) -> str:
    return cell[1:] if cell.startswith("'") else cell


def _check_cells(rows: list[list[str]]) -> None:
    assert len({len(row) for row in rows}) == 1
    for cell in (
        cell
        for row in rows
        for cell in row
        if re.match("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]", cell)
    ):
        float(cell)  # what begins like a formula is a number


def test_what_goes_out_is_safe(
    table: tuple[list[str], list[str]], command: Callable[..., int], tmp_path: Path
) -> None:
    flags, tasks = table
    assert (
        command(
            "--dataset=table",
            "--exact_names",
            "--method=ds_lr",
            "--report",
            *flags,
            f"--output_dir={tmp_path / 'out'}",
        )
        == 0
    )
    run = tmp_path / "out" / "table" / "ds_lr" / "seed-0"
    predictions, annotators = _rows(run / "predictions.csv"), _rows(run / "annotators.csv")
    for rows in (
        predictions,
        annotators,
        _rows(tmp_path / "out" / "results.csv"),
        _rows(tmp_path / "out" / "summary.csv"),
    ):
        _check_cells(rows)
    # The ids are those of the files, but for the apostrophe, and they are the same for whoever
    # reads the CSV.
    assert {_plain(row[0]) for row in annotators[1:]} == set(SAFE)
    assert len(predictions) == 1 + round(len(tasks) / 5)
    assert {_plain(row[0]) for row in predictions[1:]} <= set(tasks)
    assert {_plain(cell) for row in predictions[1:] for cell in row[1:3]} <= set(CLASSES)
    assert len(pd.read_csv(run / "annotators.csv")) == len(SAFE)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "<b>bold" not in page
    assert "\u202e" not in page and "x" * 1000 not in page and "{{ 7*7 }}" in page


def test_annotations_are_read_back_as_they_were(tmp_path: Path) -> None:
    """No apostrophes here: this file is for reading again."""
    annotators = [f"=annotator+{i}" for i in range(len(SAFE))]
    crowd = Annotations.from_arrays(SAFE, annotators, [CLASSES[i % 3] for i in range(len(SAFE))])
    crowd.to_frame().to_csv(tmp_path / "a.csv", index=False, quoting=csv.QUOTE_ALL)
    assert read_annotations(tmp_path / "a.csv").annotations == crowd
