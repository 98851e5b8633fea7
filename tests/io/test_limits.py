"""Limits in the rules of reading, at the limit and one beyond it."""

from __future__ import annotations

from pathlib import Path

import pytest

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions


def written(folder: Path, text: str) -> Path:
    (folder / "a.csv").write_bytes(text.encode())
    return folder / "a.csv"


@pytest.mark.parametrize(("classes", "read"), [(40, True), (41, False)])
def test_a_wide_table_has_at_most_forty_values(tmp_path: Path, classes: int, read: bool) -> None:
    rows = [f"t{row},c{row % classes},c{row % classes}\n" for row in range(120)]
    path = written(tmp_path, "item,a,b\n" + "".join(rows))
    if read:
        assert read_annotations(path).annotations.num_classes == classes
        return
    with pytest.raises(DataError):
        read_annotations(path)


@pytest.mark.parametrize(("last", "read"), [("2", True), ("4", False)])
def test_a_column_id_is_the_item_only_if_it_repeats(tmp_path: Path, last: str, read: bool) -> None:
    path = written(tmp_path, f"id,worker,label\n1,u,x\n2,v,y\n3,u,y\n{last},w,y\n")
    if read:
        assert read_annotations(path).annotations.num_instances == 3
        return
    with pytest.raises(DataError, match="missing_role"):
        read_annotations(path)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_within_cells_are_counted_once(tmp_path: Path, end: str) -> None:
    cell = f'"a{end}b{end}c"'
    path = written(tmp_path, f"task,worker,label,text{end}s,u,x,{cell}{end}t,u,x,y,z{end}")
    with pytest.raises(DataError, match="line 5"):
        read_annotations(path, TableOptions())
