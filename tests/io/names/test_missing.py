"""What --missing names, and what it says nothing of."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from neucrowd_tf.annotations import Annotations, read_annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.names.ids import as_list, listed
from neucrowd_tf.io.names.missing import missing_flag
from neucrowd_tf.io.tables.format import TableFormat


def read(folder: Path, text: str, **flags: str | bool) -> Annotations:
    """Reads a table whose rows are separated by spaces; only what is left out may be told."""
    path = folder / ("a.json" if text[0] == "{" else "a.csv")
    path.write_text(text if text[0] == "{" else "\n".join(text.split(" ")), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=r".* are left out \(--missing\)")
        return read_annotations(path, layout=TableFormat.of(**flags))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "task,worker,label 1,a,yes 1,b,NA 2,a,null 2,b,no 3,a,yes 3,b,no",
        "task,anna,ben,carl 1,yes,NA, 2,null,,no 3,,no,yes",
        '{"1": {"a": "yes", "b": "NA"}, "2": {"a": "null", "b": "no"}, "3": {"a": "yes",'
        ' "b": "no"}}',
    ],
)
def test_one_marker_that_is_named_says_nothing_of_others(tmp_path: Path, text: str) -> None:
    way_out = r"'null'.*; --missing=NA,null leaves these out, --classes=\.\.\. names all classes"
    with pytest.raises(DataError, match=way_out):
        read(tmp_path, text, missing="NA")
    assert read(tmp_path, text, missing="NA,null").num_annotations == 4
    assert read(tmp_path, text, missing="NA", classes="yes,no,null").num_annotations == 5
    assert read(tmp_path, text, missing="").num_annotations == 6


@pytest.mark.parametrize(
    "text",
    [
        "task,worker,label 1,a,1 1,b,NA 2,a,-1 2,b,-1 3,a,0 3,b,1",
        "task,anna,ben,carl 1,-1,NA,1 2,-1,-1,0 3,0,1,1",
    ],
)
def test_a_marker_that_is_named_says_nothing_of_minus_one(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"received -1 .*--missing=NA,-1 leaves them out, --cl"):
        read(tmp_path, text, missing="NA")
    assert read(tmp_path, text, missing="NA,-1").class_names.tolist() == [0, 1]
    assert read(tmp_path, text, missing="NA", classes="-1,0,1").num_classes == 3


def test_a_marker_that_no_cell_holds_says_nothing_of_minus_one(tmp_path: Path) -> None:
    text = "task,anna,ben 1,-1,1 2,0,-1 3,0,1"
    with pytest.raises(UserWarning, match=r"2 cells of -1 are .*--missing=NA,-1 says that it is"):
        read(tmp_path, text, missing="NA")


def test_other_codes_are_told_beside_a_marker(tmp_path: Path) -> None:
    rows = "".join(f" {i},{who},{i % 3}" for i in range(6) for who in "ab")
    with pytest.raises(UserWarning, match=r"labels are 99.*--missing=NA,99 leaves"):
        read(tmp_path, f"task,worker,label{rows} 7,a,NA 7,b,99 8,b,99", missing="NA")


@pytest.mark.parametrize(
    "text",
    [
        "task,worker,label 1,null,yes 1,b,NA 2,a,no 2,b,no",
        "null,worker,label 1,null,yes 1,b,NA 2,a,no 2,b,no",
        "task,null,ben,carl 1,yes,NA,no 2,no,no,yes",
    ],
)
def test_a_name_that_is_a_marker_beside_one_that_is_named(tmp_path: Path, text: str) -> None:
    flags = {"task_column": text.partition(",")[0]}
    with pytest.raises(DataError, match=r"'null'.*--missing=NA,null leaves .*--exact_names takes"):
        read(tmp_path, text, missing="NA", **flags)
    assert "null" not in read(tmp_path, text, missing="NA,null", **flags).annotator_names
    with pytest.warns(UserWarning, match=r"'null'.* is taken for a name \(--exact_names\)"):
        path = tmp_path / "a.csv"
        layout = TableFormat.of(missing="NA", exact_names=True, **flags)  # type: ignore[arg-type]
        assert "null" in read_annotations(path, layout=layout).annotator_names


def test_an_empty_cell_leads_to_no_other(tmp_path: Path) -> None:
    text = "task,worker,label 1,a,yes 1,b, 2,a,null 2,b,no 3,a,-1 3,b,no"
    with pytest.raises(DataError, match="empty cell; --missing=, leaves"):
        read(tmp_path, text)
    with pytest.raises(DataError, match=r"'null'.*; --missing=null, leaves these out"):
        read(tmp_path, text, missing=",")
    with pytest.raises(DataError, match=r"received -1.*; --missing=null,-1, leaves them out"):
        read(tmp_path, text, missing="null,")
    assert read(tmp_path, text, missing="null,-1,").num_annotations == 3


@pytest.mark.parametrize(("code", "labels"), [("0", 7), ("99", 9)])
def test_codes_of_missing_labels_are_no_annotators(tmp_path: Path, code: str, labels: int) -> None:
    text = "task,worker,label 1,0,2 1,1,2 1,99,1 2,0,1 2,1,0 2,99,1 3,0,2 3,1,0 3,99,2"
    found = read(tmp_path, text, missing=code)
    assert found.annotator_names.tolist() == [0, 1, 99] and found.num_annotations == labels
    found = read(tmp_path, '{"a": {"NA": 0, "x": 1}, "b": {"x": 0, "y": 1}}', missing="NA")
    assert found.annotator_names.tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("label", "expected"),
    [("-1", "received -1"), ("0.7", "a fraction"), ("x|y", "several"), ("NA", "for none")],
)
def test_exact_names_is_no_answer_to_labels(tmp_path: Path, label: str, expected: str) -> None:
    text = "task,worker,label aB,a,x aB,b,y ab,a,{0} ab,b,{0} c,a,y c,b,x"
    with pytest.raises(DataError, match="--exact_names"):
        read(tmp_path, text.format("x"))
    assert read(tmp_path, text.format("x"), exact_names=True).num_instances == 3
    with pytest.raises(DataError, match=expected):
        read(tmp_path, text.format(label), exact_names=True)
    found = read(tmp_path, text.format(label), exact_names=True, classes=f"x,y,{label}")
    assert found.num_classes == 3


def test_files_of_our_own_say_what_they_say(tmp_path: Path) -> None:
    rows = [("t", "a", "NA"), ("t", "b", "0.7"), ("T", "a", "-1"), ("T", "b", "no|yes")]
    crowd = Annotations.from_arrays(*(list(column) for column in zip(*rows, strict=True)))
    crowd.to_csv(tmp_path / "a.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Annotations.from_csv(tmp_path / "a.csv") == crowd


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a, b", ["a", "b"]),
        ('"Smith, A.",bot', ["Smith, A.", "bot"]),
        ('"3,5","4,5"', ["3,5", "4,5"]),
        ('5",6"', ['5"', '6"']),
        ('"', ['"']),
        ("", [""]),
        (",", ["", ""]),
        ("a\nb", ["a\nb"]),
    ],
)
def test_lists_of_flags(text: str, names: list[str]) -> None:
    assert listed(text) == names
    assert listed(as_list(names)) == names or text == '"'


def test_the_flag_that_names_one_more() -> None:
    assert missing_flag(None, "NA") == "--missing=NA"
    assert missing_flag(("NA",), "null,null") == "--missing='NA,\"null,null\"'"
    assert missing_flag(("", "NA"), "-1") == "--missing=NA,-1,"
    assert missing_flag(None, "") == "--missing=,"
    for name in ("<NA>", "no answer", "\\N"):  # as a shell takes them
        assert missing_flag(None, name) == f"--missing='{name}'"
