"""Labels that are slips: refused, or told of."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from neucrowd_tf.annotations import read_annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels.checks.slips import check_slips
from neucrowd_tf.io.names.missing import is_marker
from neucrowd_tf.io.names.spelling import meant
from neucrowd_tf.io.tables.format import TableFormat


def checked(*labels: str, counts: tuple[int, ...] | None = None) -> list[str]:
    """Returns what is told of labels."""
    places = np.arange(len(labels))
    given = np.full(len(labels), 20) if counts is None else np.array(counts)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        check_slips(labels, given, places, lambda row: f"a.csv: line {row + 2}")
    return [str(item.message) for item in told]


@pytest.mark.parametrize(
    "label",
    ["yes|no", "no; yes", "yes/no", "no, yes", "yes & no", "yes and no", "yes\nno", "{'no', 'yes'}",
     "('yes', 'no')", "0: no", "1. yes", "label: yes", "no (0)", "yes 0.8", "yes (90 %)",
     "yes||no", "yes > no", "yes::no", "2024-05-01", "2024-05-01T10:00:00", "10:30", "2-Jan",
     "4-Mar", "Jan-02", "02. Jan", "2-Jan-24", "Jan 2, 2024", "01/02/24", "2024-01", "3. M\u00e4rz",
     "Dec-10", "2nd May", "12-Okt-2024", "janv-02", "2-janv.", "2-gen", "02/ene", "1\u67082\u65e5",
     "02.01.", "12:00:00 AM", "yes - no", "yes->no", "yes:no", "yes\u3001no", "yes\u00b7no",
     "no y yes", "no vs yes",
     r"no\nyes", "yes^no", "yes~no", "yes no", "yes;perhaps", "yes: 1", "yes=1",
     "yes|0.9", "yes;0.9", "yes, 0.9", "yes - 0.9", "yes (?)"],
)  # fmt: skip
def test_labels_that_are_no_class_of_their_own(label: str) -> None:
    with pytest.raises(DataError, match="expected one class, received") as error:
        checked("no", "yes", label)
    assert "line 4" in str(error.value) and "--classes" in str(error.value)


@pytest.mark.parametrize(
    "label", ["a & b;c", "a & b|c", "a & b, c", "c + a & b", "a & b / c", "a & b::c"]
)
def test_several_classes_one_of_whose_names_holds_a_joint(label: str) -> None:
    with pytest.raises(DataError, match="which names several"):
        checked("c", "a & b", label)


@pytest.mark.parametrize("label", ["class 0 (0.8)", "class 0 0.8", "class 0 80%", "class 0[2]"])
def test_a_class_with_a_digit_and_something_else(label: str) -> None:
    with pytest.raises(DataError, match="which is 'class 0' and something else"):
        checked("class 0", "class 1", label)


@pytest.mark.parametrize(
    "labels",
    [("good", "very good"), ("hot", "hot dog"), ("grade 1", "grade 2"), ("a/b", "c"), ("C", "C+"),
     ("rock and roll", "rock"), ("18-25", "26-35"), ("1", "2", "3"), ("(", ")"),
     ("x (1)", "y (1)"), ("may", "march"), ("MAR1", "SEPT2"), ("1-2", "3-5"), ("cat::a", "cat::b"),
     ("2010/11", "2011/12"), ("1.2.3", "1.2.4"), ("a > b", "a > c"), ("5 mart", "6 octets"),
     ("set", "set 2"), ("gen 1", "gen 2"), ("arts & crafts", "arts & music", "music"),
     ("level", "level 1"), ("a - b", "a - c"), ("type:1", "type:2")],
)  # fmt: skip
def test_classes_are_left_alone(labels: tuple[str, ...]) -> None:
    assert not checked(*labels)


@pytest.mark.parametrize(
    ("labels", "counts", "word"),
    [
        (("no", "yes", "yse"), (50, 50, 1), "nowhere else"),
        (("no", "yes", "ye"), (5, 5, 1), "begins 'yes'"),
        (("no", "yes", "1"), (50, 50, 5), "numbers and words"),
        (("no", "yes", "False"), (50, 50, 5), "the same as"),
        (("no", "yes", "n"), (50, 50, 5), "short for 'no'"),
        (("no", "yes", "blank"), (50, 50, 5), "--missing=blank"),
        (("no", "yes", "yes (sure)"), (50, 50, 5), "in brackets"),
    ],
)
def test_what_is_told(labels: tuple[str, ...], counts: tuple[int, ...], word: str) -> None:
    (told,) = checked(*labels, counts=counts)
    assert word in told and repr(labels[2]) in told


@pytest.mark.parametrize(
    ("one", "other"),
    [("not sure", "notSure"), ("yes", "yes?"), ("yes", "yes&nbsp;"), ("not sure", "not%20sure"),
     ("caf\u00e9", "cafe"), ("caf\u00e9", "caf\\u00e9"), ("yes", "<b>yes</b>"), ("11", "0xB"),
     ("1000", "1_000"), ("yes", r"yes\n"), ("yes", "yes|"), ("yes", "yes/"), ("yes", "\u2022 yes"),
     ("yes", "- yes"), ("yes", "u'yes'"), ("yes", "yes\u2020"), ("not toxic", "not+toxic"),
     ("\U0001f44d", "\U0001f44d\U0001f3fd")],
)  # fmt: skip
def test_one_name_dressed_in_two_ways(one: str, other: str) -> None:
    assert meant(one) == meant(other)


@pytest.mark.parametrize(
    "name",
    [
        "no data",
        "NA_character_",
        "NULL::text",
        "-nan(ind)",
        "##",
        "~",
        "#NV",
        "#N/D",
        "#WERT!",
        "#BEZUG!",
        "#\u00a1REF!",
        "(leer)",
        "&nbsp;",
        "$null$",
        "n. a.",
        "k.A.",
        "n/d",
        "s/o",
    ],
)
def test_signs_of_nothing(name: str) -> None:
    assert is_marker(name)


LONG = [("t1", "ann", "no"), ("t1", "bob", "yes"), ("t2", "ann", "yes"), ("t2", "bob", "no")]


def _read(folder: Path, text: str) -> list[tuple[str, str, str]]:
    path = folder / "a.csv"
    path.write_text(text, encoding="utf-8")
    frame = read_annotations(path, layout=TableFormat()).to_frame()
    return [tuple(map(str, row)) for row in frame.itertuples(index=False)]


def test_a_space_behind_every_comma_is_none_of_the_names(tmp_path: Path) -> None:
    rows = [("task", "worker", "label"), *LONG]
    assert sorted(_read(tmp_path, "\n".join(", ".join(row) for row in rows))) == sorted(LONG)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,worker,label\nt1,ann,ann\nt1,bob,bob\nt2,ann,bob\n", "one of the annotators' names"),
        ("task,worker,label\n1,7,1\n2,7,2\n2,8,2\n", "one of the tasks' names"),
        ("task,worker,label\nt1,ann,no\n\ufefft2,bob,yes\n", "byte order mark"),
        ("task,worker,label\nt1,ann,no\nt2,bob,sch\ufffdn\n", "lost"),
        ('task,worker,label\nt1,ann,no\nt2,bob,"=""yes"""\n', "formula"),
        ("task,ann,bob\nstring,string,string\nt1,no,yes\nt2,yes,no\n", "line of types"),
        ("task,ann,bob\nt1,no,yes\nt2,yes,no\nTotal,2,2\n", "line of sums"),
    ],
)
def test_lines_that_are_no_labels(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        _read(tmp_path, text)
    assert "line " in str(error.value)


@pytest.mark.parametrize(
    "text", ["task,a,b\n0,0,0\n1,1,1\n2,1,1\n", "task,a,b\n0,1.0,1.0\n1,0.0,0.0\n"]
)
def test_codes_of_classes_may_be_names_of_tasks_too(tmp_path: Path, text: str) -> None:
    (tmp_path / "wide.csv").write_text(text)
    assert read_annotations(tmp_path / "wide.csv").class_names.tolist() == [0, 1]


def test_the_tasks_themselves_as_labels_are_refused(tmp_path: Path) -> None:
    rows = [f"{task},{worker},{task}" for task in (3, 4, 5) for worker in "ab"]
    (tmp_path / "a.csv").write_text("\n".join(["task,worker,label", *rows]))
    with pytest.raises(DataError, match="columns exchanged"):
        read_annotations(tmp_path / "a.csv")


@pytest.mark.parametrize("label", ["50%", "100 %", "12,5%"])
def test_shares_are_no_classes(tmp_path: Path, label: str) -> None:
    text = f'task,worker,label\nt1,a,"{label}"\nt1,b,0%\nt2,a,0%\n'
    with pytest.raises(DataError, match=r"line 2, column 'label': expected a class.*a fraction"):
        _read(tmp_path, text)
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    layout = TableFormat(classes=("0%", label))
    assert read_annotations(tmp_path / "a.csv", layout=layout).num_classes == 2


def test_columns_that_number_the_rows_are_told(tmp_path: Path) -> None:
    """As an `id` beside the item, or the ids of assignments."""
    rows = [(str(i), f"img{i // 3}", f"w{i % 3}", "xy"[i % 2]) for i in range(12)]
    for header, columns, said in (
        ("id,worker,label", (0, 2, 3), "every task has one label alone.*--task_column"),
        ("task,worker,label", (1, 0, 3), "every annotator gave one label alone.*--worker_column"),
    ):
        text = "\n".join([header, *(",".join(row[i] for i in columns) for row in rows), ""])
        with pytest.warns(UserWarning, match=said) as told:
            _read(tmp_path, text)
        assert len(told) == 1
    text = "\n".join(["task,worker,label", *(",".join(row[1:]) for row in rows), ""])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(_read(tmp_path, text)) == 12


@pytest.mark.parametrize("labels", [("e", "E"), ("e", "E", "x")])
def test_letters_that_differ_in_case_alone_are_short_for_nothing(labels: tuple[str, ...]) -> None:
    assert not any("short for" in told for told in checked(*labels))
