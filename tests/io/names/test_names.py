"""Names that stand for none or are one in two spellings; tables that are not what they seem."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from neucrowd_tf.aggregation.engine.source import find_source, vocabulary
from neucrowd_tf.annotations import Annotations, read_annotations
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.names.missing import is_marker
from neucrowd_tf.io.names.spelling import meant
from neucrowd_tf.io.tables.column_names import is_truth
from neucrowd_tf.io.tables.format import TableFormat
from neucrowd_tf.io.tables.headers import separator_of


def read(path: Path, text: str, layout: TableFormat | None = None) -> Annotations:
    path = path / "a.csv"
    path.write_text(text, encoding="utf-8")
    return read_annotations(path, layout=layout or TableFormat())


MARKERS = (
    *(
        "\\N",
        "#REF!",
        "\N{EM DASH}",
        "(null)",
        "n.a.",
        "\u200b-",
        "\u2026",
        "n / a",
        "N\\A",
        "[NA]",
    ),
    *("???", "---", "_", "\u201c\u201d", "None.", "<none>", "-1.#IND", "no_value", "{}", "(blank)"),
    *("*NULL*", "-NA-", "NA!", "N\u0410", "\u039dONE"),
)


@pytest.mark.parametrize("name", MARKERS)
def test_markers(name: str) -> None:
    assert is_marker(name)
    assert not is_marker(f"{name}x1")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cat", "c\u0430t"),
        ("not sure", "not_sure"),
        ("not sure", "Not-Sure"),
        ("yes", "'yes'"),
        ("1", "\u0661"),
        ("1", "+1.0"),
        ("1.5", "1,5"),
        ("1000", "1,000"),
        ("1000", "1\u202f000"),
        ("cat-1", "cat_1"),
        ("new-york", "new\N{NON-BREAKING HYPHEN}york"),
        ("it's", "it\u2019s"),
        ("yes", "\u00abyes\u00bb"),
        ("yes", "ye\ufe0fs"),
        ("yes", 'y"e"s'),
        ("yes", "yes."),
        ("1", "(1)"),
        ("yes", "[yes]"),
        ("b\u00f8b", "b\u00c3\u00b8b"),  # UTF-8 that was read as Windows' encoding
    ],
)
def test_one_name_in_two_spellings(one: str, other: str) -> None:
    assert meant(one) == meant(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "-1"),
        ("w-1", "w1"),
        ("C", "C+"),
        ("a1", "a-1"),
        ("<", ">"),
        ("*", "**"),
        ("1-2", "12"),
    ],
)
def test_two_names(one: str, other: str) -> None:
    assert meant(one) != meant(other)


def test_true_labels_columns() -> None:
    assert all(map(is_truth, ("truth", "Gold label", "ground_truth", "y_true", "majority vote")))
    assert all(
        map(is_truth, ("ground-truth", "GroundTruth", "gold_standard", "adjudicated", "final"))
    )
    assert not any(map(is_truth, ("Truthful Tim", "w_true", "y", "labeller", "gold_1")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,worker,label\nt0,a,x\nt1,b,y\ntask,worker,label\n", "line 4: .*header again"),
        ("task,worker,label\nt0,a,x\nTASK, Worker,LABEL\nt1,b,y\n", "line 3: .*header again"),
        ("task,worker,label\nt0,a,x\nlabel,task,worker\nt1,b,y\n", "line 3: .*header again"),
        ("task,a,b,c\nTASK,A,B,C\nt0,x,y,x\n", "line 2: .*header again"),
        ("task,worker,label\nt0,a\u2028b,x\nt1,b,y\n", "line break"),
        ("task\nt0\nt1\n", "line 1: expected columns of annotators"),
        ('task,worker,label\nt0,a,x\nt1,"b,y\nt2,c",x\n', "line 3: expected a closing quote"),
        ('task,worker,label\nt0,a,x\nt1,"b"c,y\n', "line 3: .*a quote with more behind it"),
        ('task,worker,label\nt0,a,x\nt1,"b,y\n', "line 3: .*none up to the end"),
        ("task,a,b,c\nt0,x,y,x\nt1,x\nt2,y,y,y\n", "line 3: expected 4 fields"),
        ("task,a,b,gold\nt0,x,y,x\nt1,x,y,x\n", "column 'gold'"),
        ("task,a,b,n\nt0,x,y,7\nt1,x,x,8\nt2,y,y,9\n", "column .n.*nobody else gives"),
        ("task,a,b,c\nt0,x,y,x\ntask,a,b,c\n", "line 3: .*header again"),
        ("task,votes_x,votes_y\nt0,1,2\nt1,3,0\ntotal,4,2\n", "line 4: .*sums of the other"),
        ("task,votes_x,votes_y\nall,4,2\nt0,1,2\nt1,3,0\n", "line 2: .*sums of the other"),
        ("task,votes_-1,votes_2\nt0,1,2\nt1,3,0\n", "line 1: .*received -1"),
        ("task,worker,label\nt0,a,x\nt1,b,y\n\ufefftask,worker,label\n", "line 4: .*header again"),
        ("task,worker,label\nt0,a,x\nt1,b,\u22129\n", "received \u22129 .1 times"),
        ("task,worker,label\nt0,a,x\nt1,b,-1.0\n", "received -1.0"),
        ("task,worker,label\nt0,a,x\nt1,b,1e999\n", "'1e999', which is no finite number"),
        ('task,worker,label\nt0,a,x\nt1,b,"0,5"\n', "'0,5', a fraction"),
        ("task,worker,label\nt0,a,x\nt1,b,\"['x', 'y']\"\n", "a list or an object"),
        ("task,worker,label\nt0,a,H\nt1,b,\u041d\n", "beside 'H'"),
        ("task,a,b\nt0,x,y\nt0 ,y,y\n", "line 3, .*'t0 ' again but for spaces"),
        ("a,b,truth\n0,1,0\n1,1,1\n", "column 'truth'"),
        ("a,A,b\n0,1,0\n1,1,1\n", "line 1: expected annotators that differ"),
        ("7,8,9\n0,1,0\n1,1,1\n0,0,1\n", "line 1: .*in no other line"),
        ("task,votes_x,n\nt0,1,2\nt1,3,0\n", "column 'votes_x'"),
        ("task,worker,label\nt0,a,0\nt1,b,1\nt2,b,-9\n", "received -9 .1 times"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,worker,label,answer\nt0,a,x,y\nt1,b,y,x\n", "'label' and 'answer'"),
        ("task,worker,label\nt0,a,0\nt1,b,1\nt2,b,99\n", "99, which often stands for none"),
        ('task,worker,label\n"t\n0",a,x\nt1,b,y\n', "task id"),
        ("task,a,b,c\nt0,x,y,note\nt1,x,y,\nt2,y,y,\n", "column 'c'.*taken for a label"),
        ("0,1,2\n0,1,0\n1,1,1\n0,0,1\n", "taken for a header"),
        ("0,1\n0,1\n1,1\n1,0\n", "taken for labels"),
        (
            "task,worker,label\n"
            + "".join(f"t{i},a,{'xy'[i % 2]}\n" for i in range(12))
            + "t12,c,z\n",
            "line 14.*'c' and the label 'z' occur in this place alone",
        ),
    ],
)
def test_what_is_told(tmp_path: Path, text: str, message: str) -> None:
    with pytest.warns(UserWarning, match=message):
        read(tmp_path, text)


def test_a_frames_numbers_are_a_header(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="a header"):
        found = read(tmp_path, "0,1,2\n0,1,0\n1,1,1\n0,-1,1\n")
    assert (found.num_instances, found.num_classes) == (3, 2)


@pytest.mark.parametrize(
    "flags",
    [
        {"task_column": "a", "worker_column": "A"},
        {"label_column": ""},
        {"separator": "\n"},
        {"separator": '"'},
    ],
)
def test_flags_that_cannot_be(flags: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"expected .* received"):
        TableFormat.of(**flags)  # type: ignore[arg-type]


def test_one_column_for_two_roles(tmp_path: Path) -> None:
    layout = TableFormat.of(task_column="worker")
    with pytest.raises(DataError, match="column of workers beside the others, received 'worker'"):
        read(tmp_path, "task,worker,label\nt0,a,x\nt1,b,y\n", layout)


def test_ways_out(tmp_path: Path) -> None:
    layout = TableFormat.of(classes="x,y,7,8,9")
    found = read(tmp_path, "task,a,b,n\nt0,x,y,7\nt1,x,x,8\nt2,y,y,9\n", layout)
    assert found.num_annotators == 3
    layout = TableFormat.of(exact_names=True)
    found = read(tmp_path, "task,worker,label\nt0,a,cat\nt1,b,c\u0430t\n", layout)
    assert found.num_classes == 2
    np.testing.assert_array_equal(found.vote_counts().sum(axis=0), [1, 1])


TASKS = (
    ("1", "1.0"),
    ("1", "01"),
    ("1e5", "100000"),
    ("img.jpg", "IMG.JPG"),
    ("t4", "'t4'"),
    ("doc3", "\u201cdoc3\u201d"),
    ("3", '"3,0"'),
    ("test", "t\u0435st"),
    ("TEST", "\u0422EST"),
    ("t-1", "t\N{EN DASH}1"),
    ("it's", "it\u2019s"),
)


@pytest.mark.parametrize(("one", "other"), TASKS)
def test_two_spellings_of_a_task(tmp_path: Path, one: str, other: str) -> None:
    text = f"task,worker,label\n{one},a,x\n{other},b,y\nt2,a,x\nt2,b,x\n"
    with pytest.raises(DataError, match="expected tasks that differ in more than case"):
        read(tmp_path, text)
    assert read(tmp_path, text, TableFormat(exact_names=True)).num_instances == 3
    alone = text.replace(other, "t3")
    assert read(tmp_path, alone).num_instances == 3


def test_tasks_that_are_others(tmp_path: Path) -> None:
    names = ("1.1", "1.10", "1", "a1", "IMG.JPG", "90071992547410119", "90071992547410112", "2e9x")
    rows = "".join(f"{name},a,x\n{name},b,y\n" for name in names)
    assert read(tmp_path, "task,worker,label\n" + rows).num_instances == len(names)


@pytest.mark.parametrize("name", ["-1", "-99", "-1.0", "unknown", "n.d.", "Skip", "empty"])
@pytest.mark.parametrize("role", ["task", "worker"])
def test_a_name_that_may_stand_for_none_is_told(tmp_path: Path, name: str, role: str) -> None:
    text = "task,worker,label\nt1,a,x\nt1,b,y\nt2,a,x\nt2,b,x\n"
    text = text.replace("t2" if role == "task" else ",b,", name if role == "task" else f",{name},")
    with pytest.warns(UserWarning, match=rf"line \d, column '{role}': the {role} '{name}'"):
        read(tmp_path, text)


def test_large_numbers_are_compared_exactly(tmp_path: Path) -> None:
    """Doubles hold whole numbers up to 2^53; the first two are one as such."""
    names = ("90071992547410119", "90071992547410112", "12e4567", "12e4568", "anna")
    rows = "".join(f"t{i % 2},{name},{'xy'[i % 2]}\n" for i, name in enumerate(names))
    assert read(tmp_path, "task,worker,label\n" + rows).num_annotators == len(names)
    assert meant("90071992547410119") == meant(90071992547410119) != meant(90071992547410112)
    assert meant("1.0") == meant(1) == meant(True) == meant(1.0) == meant("1") == meant("true")
    assert meant(0.1) == meant("0.10") == meant("0,1") and meant("nan1") == "nan1"


@pytest.mark.parametrize("name", ["1.23457E+11", "1E+15", "1,23457E+11", "1.23457e+11"])
@pytest.mark.parametrize("role", ["task", "worker"])
def test_ids_in_scientific_notation(tmp_path: Path, name: str, role: str) -> None:
    row = {"task": f'"{name}",a,x', "worker": f't1,"{name}",x'}[role]
    text = f"task,worker,label\n{row}\nt1,b,y\nt2,b,x\n"
    with pytest.raises(DataError, match=f"line 2, column '{role}': .* digits a spreadsheet cut"):
        read(tmp_path, text)
    assert read(tmp_path, text, TableFormat(exact_names=True)).num_annotations == 3
    assert read(tmp_path, text.replace(name, "1e+05")).num_annotations == 3  # R's 100000


@pytest.mark.parametrize("spelt", ["null", "NA", "-"])
def test_missing_leaves_out_tasks(tmp_path: Path, spelt: str) -> None:
    text = f"task,worker,label\n{spelt},a,x\n{spelt},b,{spelt}\nt,b,y\nu,b,x\nu,a,{spelt}\n"
    with pytest.raises(DataError, match=f"--missing={spelt} leaves these out"):
        read(tmp_path, text)
    layout = TableFormat(missing=(spelt,))
    with pytest.warns(UserWarning, match="without a") as told:
        found = read(tmp_path, text, layout)
    assert found.instance_names.tolist() == ["t", "u"] and found.num_annotations == 2
    assert [str(one.message).partition(": ")[2] for one in told] == [
        "2 lines without a task are left out (--missing)",
        "1 lines without a label are left out (--missing)",
    ]
    (tmp_path / "a.json").write_text(f'{{"{spelt}": {{"a": "x"}}, "t": {{"a": "x", "b": "y"}}}}')
    with pytest.warns(UserWarning, match="1 objects without a task are left out"):
        found = read_annotations(tmp_path / "a.json", layout=layout)
    assert found.instance_names.tolist() == ["t"]


def test_missing_codes_are_labels_alone(tmp_path: Path) -> None:
    rows = "".join(f"{i},a{i % 3},{i % 2}\n" for i in range(97, 101))
    with pytest.warns(UserWarning, match="1 lines without a label"):
        found = read(
            tmp_path, f"task,worker,label\n{rows}101,a1,99\n", TableFormat(missing=("99",))
        )
    assert found.instance_names.tolist() == [97, 98, 99, 100]


def test_the_line_of_a_class_that_is_not_listed(tmp_path: Path) -> None:
    layout = TableFormat(classes=("x", "y"))
    with pytest.raises(DataError, match=r"a\.csv: line 4, column 'label': expected one of 'x'"):
        read(tmp_path, "task,worker,label\nt,a,x\nt,b,y\nu,b,z\n", layout)
    with pytest.raises(DataError, match=r"a\.csv: line 3, column 'ben': expected one of 'x'"):
        read(tmp_path, "task,anna,ben\nt,x,y\nu,y,z\n", layout)


def test_a_comma_in_the_header_of_a_table_with_tabs(tmp_path: Path) -> None:
    found = read(tmp_path, "task\tM\u00fcller, A.\tB\nt1\tx\ty\nt2\ty\tx\nt3\tx\tx\n")
    assert found.annotator_names.tolist() == ["M\u00fcller, A.", "B"]
    text = "task\tworker\tlabel\tremarks, if any\nt1\ta\tx\tone, two\nt1\tb\ty\t\n"
    assert read(tmp_path, text).num_annotations == 2
    (part,) = find_source(tmp_path / "a.csv").parts
    assert sorted(vocabulary(part)[0].to_pylist()) == ["a", "b"]
    assert separator_of(b"a\tb,c\n1,2\n") == "," == separator_of(b"task,la\tbel\n")
    assert separator_of(b"") == "," and separator_of(b"a,b\tc\n1\t2\n") == "\t"


def test_very_many_separators_cost_no_time(tmp_path: Path) -> None:
    """As spreadsheets write all their columns; pandas takes seconds for each hundred rows."""
    start = time.process_time()
    tail = "," * 16381
    rows = "".join(f"t{i // 2},{'ab'[i % 2]},{'xy'[i % 3 % 2]}{tail}\n" for i in range(100))
    assert read(tmp_path, f"task,worker,label{tail}\n{rows}").num_annotations == 100
    for long in (rows, "," * 300_000 + "\n"):
        with pytest.raises(DataError, match=r"line 2: expected 3 fields, as in the header, rec"):
            read(tmp_path, f"task,worker,label\n{long}")
    assert time.process_time() - start < 1.5


def test_names_of_columns_are_names_too(tmp_path: Path) -> None:
    text = "task,worker,label\ntask,worker,worker\nt,task,worker\nt,a,x\nu,a,worker\n"
    assert read(tmp_path, text).num_annotations == 4


def test_a_second_column_of_labels_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("task,worker,label,label.1\nt0,a,yes,no\nt0,b,no,no\n")
    with pytest.warns(UserWarning, match=r"'label' and 'label\.1' are both named as a label's"):
        read_annotations(path)


@pytest.mark.parametrize("exact", [False, True])
def test_a_number_and_its_text_in_json_are_never_two_classes(tmp_path: Path, exact: bool) -> None:
    path = tmp_path / "answers.json"
    path.write_text('{"t1": {"a": 1, "b": "1"}, "t2": {"a": "2", "b": "1"}, "t3": {"a": 1}}')
    with pytest.raises(DataError, match=r"received .*1.*; write both as text, or both as they are"):
        read_annotations(path, layout=TableFormat(exact_names=exact))


def test_a_truth_value_among_words_is_told(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    path.write_text('{"t1": {"a": true, "b": "cat"}, "t2": {"a": "dog", "b": "dog"}}')
    with pytest.warns(UserWarning, match=r"the truth value True .* is taken for a class"):
        read_annotations(path)


def test_both_flags_that_take_minus_zero_for_a_class_are_named(tmp_path: Path) -> None:
    text = "task,worker,label\n" + "".join(f"t{i},w{j},{i % 3}\n" for i in range(4) for j in "ab")
    text = text.replace("t3,wa,0", "t3,wa,-0")
    with pytest.raises(DataError, match=r"'-0'.* beside '0'.*; --missing= --exact_names takes"):
        read(tmp_path, text)
    layout = TableFormat.of(exact_names=True, missing="")
    assert read(tmp_path, text, layout).class_names.tolist() == ["-0", "0", "1", "2"]
