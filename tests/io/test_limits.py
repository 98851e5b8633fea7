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


@pytest.mark.parametrize(("count", "read"), [(20, True), (21, False)])
def test_different_numbers_that_are_classes(tmp_path: Path, count: int, read: bool) -> None:
    rows = "".join(f"t{row},{who},{row % count}\n" for row in range(63) for who in "uv")
    path = written(tmp_path, f"task,worker,label\n{rows}")
    if read:
        assert read_annotations(path).annotations.num_classes == count
        return
    with pytest.raises(DataError, match="ratings"):
        read_annotations(path)


@pytest.mark.parametrize(("lowest", "read"), [("1", True), ("0.5", False)])
def test_ratings_at_the_edges_of_bins(tmp_path: Path, lowest: str, read: bool) -> None:
    path = written(tmp_path, f"task,worker,label\nt,u,{lowest}\nt,v,5\ns,u,3\n")
    options = TableOptions.of(bins="1,3,5")
    if read:
        names = read_annotations(path, options).annotations.class_names.tolist()
        assert names == ["1 to 3", "3 to 5"]
        return
    with pytest.raises(DataError, match=r"0\.5"):
        read_annotations(path, options)


@pytest.mark.parametrize(("ending", "matched"), [("jpeg", True), ("image", False)])
def test_ids_match_without_an_ending_of_up_to_four_letters(
    tmp_path: Path, ending: str, matched: bool
) -> None:
    path = written(tmp_path, f"task,worker,label\na.{ending},u,x\nb.{ending},u,y\n")
    if matched:
        assert read_annotations(path, items=["a", "b"]).annotations.num_annotations == 2
        return
    with pytest.raises(DataError):
        read_annotations(path, items=["a", "b"])
