"""Limits in the rules of reading, at the limit and one beyond it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions
from tests.cases import raises


def wide(classes: int) -> str:
    return "item,a,b\n" + "".join(f"t{i},c{i % classes},c{i % classes}\n" for i in range(120))


def numbers(count: int) -> str:
    rows = (f"t{i},{who},{i % count}\n" for i in range(63) for who in "uv")
    return "task,worker,label\n" + "".join(rows)


BY_ID = "id,worker,label\n1,u,x\n2,v,y\n3,u,y\n{},w,y\n"
RATED = "task,worker,label\nt,u,{}\nt,v,5\ns,u,3\n"
IMAGES = "task,worker,label\na.{0},u,x\nb.{0},u,y\n"
BINS, ITEMS = {"bins": "1,3,5"}, {"items": ["a", "b"]}
# What is tried: the file at the limit, its classes, the file beyond it, the message, and flags.
CASES: dict[str, tuple[str, int, str, str, dict[str, Any]]] = {
    "values of a wide table": (wide(40), 40, wide(41), "missing_role", {}),
    "a column id repeats": (BY_ID.format(2), 2, BY_ID.format(4), "missing_role", {}),
    "numbers that are classes": (numbers(20), 20, numbers(21), "ratings", {}),
    "the edges of bins": (RATED.format(1), 2, RATED.format(0.5), r"0\.5", BINS),
    "endings of ids": (IMAGES.format("jpeg"), 2, IMAGES.format("image"), "unmatched", ITEMS),
}


@pytest.mark.parametrize("case", CASES)
def test_at_the_limit_and_beyond(case: str, tmp_path: Path) -> None:
    text, classes, beyond, message, flags = CASES[case]
    options = TableOptions.of(bins=flags.get("bins"))
    path = tmp_path / "a.csv"
    path.write_text(text)
    crowd = read_annotations(path, options, items=flags.get("items")).annotations
    assert crowd.num_classes == classes
    path.write_text(beyond)
    raises(DataError, message, read_annotations, path, options, items=flags.get("items"))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_within_cells_are_counted_once(tmp_path: Path, end: str) -> None:
    cell = f'"a{end}b{end}c"'
    path = tmp_path / "a.csv"
    path.write_bytes(f"task,worker,label,text{end}s,u,x,{cell}{end}t,u,x,y,z{end}".encode())
    raises(DataError, "line 5", read_annotations, path, TableOptions())
