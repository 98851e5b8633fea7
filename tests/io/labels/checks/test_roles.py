"""Names in the place of others, and annotators who speak another language."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from neucrowd_tf.annotations import Annotations, read_annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.tables.format import TableFormat


def read(
    folder: Path, rows: list[str], header: str = "task,worker,label", **flags: str
) -> Annotations:
    """Reads a table; nothing may be told."""
    path = folder / "a.csv"
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read_annotations(path, layout=TableFormat.of(**flags))  # type: ignore[arg-type]


BASE = [f"t{i},{who},{'yes' if i % 3 else 'no'}" for i in range(6) for who in ("ben", "cid", "dee")]


def test_sound_tables_are_told_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, BASE).num_annotations == 18
    letters = [f"t{i},{who},{'ABCD'[i % 4]}" for i in range(8) for who in "ABC"]
    assert read(tmp_path, letters).num_classes == 4


def test_worker_and_label_exchanged_in_some_rows(tmp_path: Path) -> None:
    rows = [*BASE, "t0,yes,ann", "t1,yes,ann", "t2,no,ann"]
    with pytest.raises(
        DataError, match=r"line 20, column 'label': .*'ann'.* as 'yes' is .*--classes"
    ):
        read(tmp_path, rows)
    assert read(tmp_path, rows, classes="yes,no,ann").num_annotators == 5


def test_annotators_who_are_classes_too(tmp_path: Path) -> None:
    """Did a human or a machine write it? Both were asked."""
    rows = [f"t{i},{who},{'human' if i % 2 else 'machine'}" for i in range(6) for who in
            ("human", "machine", "expert")]  # fmt: skip
    assert read(tmp_path, rows, classes="human,machine").num_annotators == 3
    rows = [f"t{i},{who},{'human' if i % 2 else 'robot'}" for i in range(6) for who in
            ("human", "expert")]  # fmt: skip
    assert read(tmp_path, rows).num_annotators == 2


def test_tasks_and_annotators_exchanged_in_some_rows(tmp_path: Path) -> None:
    with pytest.raises(UserWarning, match=r"1 names are a task's and an annotator's .*'ben'"):
        read(tmp_path, [*BASE, "ben,t6,yes", "ben,t7,no"])


def test_an_annotator_of_another_language(tmp_path: Path) -> None:
    said = {"yes": "ja", "no": "nein"}
    rows = [",".join([*row.split(",")[:2], said[row.split(",")[2]]]) if ",dee," in row else row
            for row in BASE]  # fmt: skip
    message = r"1 annotators .*'dee'.* 6 labels, none of a class that others give .*'nein'"
    with pytest.raises(UserWarning, match=message):
        read(tmp_path, rows)
    wide = [f"t{i},yes,yes,ja,ja" if i % 2 else f"t{i},no,no,nein,nein" for i in range(6)]
    with pytest.raises(UserWarning, match=r"2 annotators \(the first: 'c'\) gave 12 labels"):
        read(tmp_path, wide, "task,a,b,c,d")


def test_one_of_many_classes_may_be_an_annotators_alone(tmp_path: Path) -> None:
    rows = [f"t{i},{who},c{(i + k) % 9}" for i in range(9) for k, who in enumerate("abc")]
    assert read(tmp_path, [*rows, "t0,d,own", "t1,d,own"]).num_classes == 10
