"""The rules of reading labels, on small files of the shapes that occur."""

from __future__ import annotations

import gzip
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.features import read_features
from neucrowd_tf.io.items import match_items
from neucrowd_tf.io.labels import Reading, read_annotations, read_columns
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.values import binned
from tests.cases import raises
from tests.crowds import array_of
from tests.io.reading import message, read, rows

LONG = "task,worker,label\nt1,ann,yes\nt1,bob,no\nt2,ann,no\nt2,bob,no\n"


def labelled(labels: list[str], each: int = 2) -> str:
    """A long table in which annotators give these labels, `each` of an item."""
    cells = (f"t{i // each},w{i % each},{label}" for i, label in enumerate(labels))
    return rows("task,worker,label", *cells)


def triples(reading: Reading) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in reading.annotations.to_frame().to_numpy().tolist()]


# ----------------------------------------------------------------- what is read

SAME = tomllib.loads((Path(__file__).parent / "cases" / "same.toml").read_text("utf-8"))
PACKED = {
    "lines of Windows and blank ones": LONG.replace("\n", "\r\n\r\n").encode(),
    "a mark": ("\ufeff" + LONG).encode(),
    "UTF-16": LONG.encode("utf-16"),
    "gzip": gzip.compress(LONG.encode()),
}
LABELS = [("t1", "ann", "yes"), ("t1", "bob", "no"), ("t2", "ann", "no"), ("t2", "bob", "no")]


@pytest.mark.parametrize("case", SAME)
def test_the_same_labels(case: str, tmp_path: Path) -> None:
    reading = read(tmp_path, SAME[case]["table"], **SAME[case].get("flags", {}))
    assert sorted(triples(reading)) == LABELS


@pytest.mark.parametrize("case", PACKED)
def test_the_same_labels_of_other_bytes(case: str, tmp_path: Path) -> None:
    assert triples(read(tmp_path, PACKED[case])) == LABELS


READ = tomllib.loads((Path(__file__).parent / "cases" / "read.toml").read_text("utf-8"))


@pytest.mark.parametrize("name", READ)
def test_what_is_read(name: str, tmp_path: Path) -> None:
    case = READ[name]
    table = READ[case.get("table_of", name)]["table"]
    reading = read(tmp_path, table, case.get("file", "a.csv"), **case.get("flags", {}))
    shown = "\n".join(reading.lines)
    assert all(words in shown for words in case.get("words", ()))
    assert not any(words in shown for words in case.get("absent", ()))


def test_a_zip_of_one_file_parquet_and_json(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.csv.zip", "w") as archive:
        archive.writestr("a.csv", LONG)
        archive.writestr("__MACOSX/a.csv", "x")
    expected = read(tmp_path, LONG).annotations
    frame = pd.read_csv(tmp_path / "a.csv")
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    for name in ("a.csv.zip", "a.parquet", "a.jsonl"):
        assert read_annotations(tmp_path / name, report=lambda line: None).annotations == expected


def test_large_files_are_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    text = labelled([str(i % 3) for i in range(400)])
    slow = read(tmp_path, text)
    monkeypatch.setattr("neucrowd_tf.io.table.LARGE", 100)
    fast = read(tmp_path, text)
    assert fast.annotations == slow.annotations
    assert fast.lines == slow.lines
    assert read_columns(tmp_path / "a.csv", TableOptions()).place(3) == "line 5"
    assert "line 402: 2 cells" in message(tmp_path, f"{text}t1,x\n")


# ----------------------------------------------------------------- roles

ASKED = tomllib.loads((Path(__file__).parent / "cases" / "asked.toml").read_text("utf-8"))


@pytest.mark.parametrize("case", ASKED)
def test_what_is_asked(case: str, tmp_path: Path) -> None:
    shown = message(tmp_path, ASKED[case]["table"])
    assert ASKED[case]["flag"] in shown and ASKED[case]["words"] in shown
    assert f"neucrowd aggregate --annotations={tmp_path}" in shown


def test_flags_that_do_not_fit(tmp_path: Path) -> None:
    shown = message(tmp_path, LONG, task_column="itme")
    assert "there is no column 'itme' (--task_column)" in shown
    assert shown.endswith("[no_column]")
    with pytest.raises(UsageError, match="column 'Task' is named twice"):
        TableOptions(task_column=("task",), worker_column=("Task",))
    assert TableOptions(classes=("yes", "no", "yes")).classes == ("yes", "no")
    raises(UsageError, "--header: must be first or none, received 3", TableOptions.of, header=3)
    raises(UsageError, "--question", read, tmp_path, LONG, question="mood")


# ----------------------------------------------------------------- values


@pytest.mark.parametrize("name", ["a.xlsx", "A.XLS", "a.ods"])
def test_a_spreadsheet_is_to_be_saved_as_csv(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("xl/workbook.xml", "")
        archive.writestr("xl/sheet1.xml", "")
    for reader in (read_annotations, read_features):
        with pytest.raises(DataError, match=r"this is a spreadsheet. Save it as CSV. \[unreadable"):
            reader(tmp_path / name)


@pytest.mark.parametrize("sign", ["|", "list", "NumPy", "newline", "+"])
def test_several_labels_become_questions(sign: str, tmp_path: Path) -> None:
    cells = {
        "|": ["a|b", "b", ""],
        "list": ['"[""a"", ""b""]"', "['b']", ""],
        "NumPy": ["['a' 'b']", "\"['b', nan]\"", ""],
        "newline": ['"a\nb"', "b", ""],
        "+": ["a + b", "b", ""],
    }[sign]
    reading = read(tmp_path, labelled(cells, each=1), multi_label=sign.replace("NumPy", "list"))
    assert reading.pairs == tuple((f"t{i}", name) for i in range(3) for name in "ab")
    assert [label for *_, label in triples(reading)] == ["yes", "yes", "no", "yes", "no", "no"]
    assert "1 answers have no class: they are a no to each class." in reading.lines[1]
    assert "Each of 2 classes is a yes/no question: a, b." in reading.lines[1]
    odd = message(tmp_path, labelled(['"[a, b]"', "a"]), multi_label="list")
    assert "line 2: '[a, b]' is not a list of classes" in odd


def test_matrices(tmp_path: Path) -> None:
    codes = array_of("0 1 -1 1 0; 1 1 1 -1 1; 0 -1 0 0 0")
    np.save(tmp_path / "a.npy", codes)
    crowd = read_annotations(tmp_path / "a.npy", report=lambda line: None).annotations
    assert crowd.to_dense().tolist() == codes.tolist()
    text = "\n".join(",".join(map(str, row)) for row in codes) + "\n"
    again = read(tmp_path, text, header="none").annotations
    assert again.to_dense().tolist() == codes.tolist()
    assert "If each column is an annotator: --label_column=1,2,3" in message(
        tmp_path, "0,1,1\n1,1,0\n0,0,0\n", header="none"
    )


def test_items_of_features(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(LONG.replace("t1", "t1.jpg"))
    items = ["t0", "t2", "t1"]
    crowd = read_annotations(path, items=items, report=lambda line: None).annotations
    assert crowd.instance_names.tolist() == items
    assert crowd.vote_counts().sum(axis=1).tolist() == [0, 2, 2]
    with pytest.raises(DataError, match=r"line 4: item 't2'.*--unmatched=drop.*unmatched_item"):
        read_annotations(path, items=["t1"], report=lambda line: None)
    lines: list[str] = []
    crowd = read_annotations(path, items=["t1"], unmatched="drop", report=lines.append).annotations
    assert crowd.num_annotations == 2
    assert "2 labels of 1 items without features are left out" in lines[1]
    assert match_items(["a", "b.png", "c"], ["b", "c.jpg", "c.png"]).tolist() == [-1, 0, -1]


def test_a_script_with_flags_of_its_own_is_not_proposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli
) -> None:
    text, path = ASKED[min(ASKED)]["table"], tmp_path / "labels.csv"
    monkeypatch.setattr("sys.argv", ["mine.py", f"--folder={tmp_path}", "--secret=1"])
    assert "--secret" not in message(tmp_path, text)
    path.write_text(text, encoding="utf-8")
    shown = cli("aggregate", [f"--annotations={path}", "--method=glad"], 2).err
    assert f"neucrowd aggregate --annotations={path} --method=glad --" in shown


def test_true_ratings_lie_in_bins() -> None:
    bins = ["0 to 33.3333", "33.3333 to 66.6667", "66.6667 to 100"]
    places = {"0": 0, "33.2": 0, "33.4": 1, "66": 1, "67.0": 2, "100": 2}
    assert {text: bins.index(binned(text, bins)) for text in places} == places
    assert [binned(text, bins) for text in ("101", "-1", "good", bins[0])] == [
        *("101", "-1", "good", bins[0])
    ]


def test_the_newest_of_an_annotators_answers_is_used(tmp_path: Path) -> None:
    table = (
        "item,annotator,label,created_at,updated_at\n"
        "1,a,x,2024-01-01,2024-01-05\n1,a,y,2024-01-02,2024-01-02\n"
    )
    table += "".join(f"{n},b,y,2024-01-01,2024-01-01\n" for n in range(1, 13))
    undated = table.replace("2024-01-05", "").replace("2024-01-02,2024-01-02", ",")
    for content, flags, label, words in (
        (table, {}, "x", "pairs: 1, the newest by updated_at used (--duplicates)."),
        (table, {"duplicates": "first"}, "x", "pairs: 1, first used"),
        (table.replace("2024-01-05", "2024-01-01"), {}, "y", "pairs: 1, last used"),
        (undated, {}, "y", "pairs: 1, last used"),
    ):
        reading = read(tmp_path, content, **flags)
        assert triples(reading)[0][2] == label and words in reading.lines[1]


def test_the_newest_submission_of_an_export_is_used(tmp_path: Path) -> None:
    def annotation(label: str, day: int) -> dict[str, Any]:
        result = [{"from_name": "q", "type": "choices", "value": {"choices": [label]}}]
        return {"completed_by": 1, "updated_at": f"2024-01-0{day}T10:00:00Z", "result": result}

    tasks = [{"id": 1, "data": {}, "annotations": [annotation("new", 2), annotation("old", 1)]}]
    reading = read(tmp_path, tasks, "a.json")
    assert [label for *_, label in triples(reading)] == ["new"]
    assert "pairs: 1, the newest by their times used" in reading.lines[1]
