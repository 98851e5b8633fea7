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
from neucrowd_tf.io.gold import read_true_labels
from neucrowd_tf.io.items import match_items
from neucrowd_tf.io.labels import Reading, read_annotations, read_columns
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.times import read_times
from neucrowd_tf.io.values import binned, class_order
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
        assert read_annotations(tmp_path / name).annotations == expected


@pytest.mark.parametrize("labels", [np.array([0.1, 2.5, 0.1], np.float32), [True, False, True]])
def test_files_of_one_frame_have_the_same_classes(labels: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": labels})
    frame.to_parquet(tmp_path / "b.parquet")
    expected = read(tmp_path, frame.to_csv(index=False)).annotations
    in_bytes = frame.assign(label=frame["label"].astype(str).str.encode("utf-8"))
    in_bytes.to_parquet(tmp_path / "d.parquet")
    for name in ("b.parquet", "d.parquet"):
        assert read_annotations(tmp_path / name).annotations == expected
    table = read(tmp_path, [{"task": 1, "worker": "a", "label": True}], "c.json").annotations
    assert table.class_names.tolist() == ["True"]


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


def test_pairs_in_several_files_of_a_folder_are_asked_about(tmp_path: Path) -> None:
    folder = tmp_path / "rounds"
    folder.mkdir()
    for name in ("1.csv", "2.csv"):
        (folder / name).write_text(LONG.replace("\n", ",x\n").replace("label,x", "label,round"))
    raises(DataError, "pairs of item and annotator are in several files", read_annotations, folder,
           TableOptions())  # fmt: skip
    last = read_annotations(folder, TableOptions(duplicates="last"), report=lambda line: None)
    assert last.annotations.num_annotations == LONG.count("\nt")


def test_every_table_of_a_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "years"
    folder.mkdir()
    (folder / "2024.csv").write_text(LONG)
    (folder / "2025.csv.gz").write_bytes(gzip.compress(LONG.replace("\nt", "\nu").encode()))
    (folder / "2026.TSV").write_text(LONG.replace("\nt", "\nv").replace(",", "\t"))
    (folder / "notes.md").write_text("see 2023.csv")
    reading = read_annotations(folder)
    assert reading.annotations.num_annotations == 12
    assert reading.lines[-1] == "Files of the folder that are not read: notes.md."


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
    crowd = read_annotations(tmp_path / "a.npy").annotations
    assert crowd.to_dense().tolist() == codes.tolist()
    text = "\n".join(",".join(map(str, row)) for row in codes) + "\n"
    again = read(tmp_path, text, header="none").annotations
    assert again.to_dense().tolist() == codes.tolist()
    advice = "If each column is an annotator: --header=none --label_column=1,2,3"
    assert advice in message(tmp_path, "0,1,1\n1,1,0\n0,0,0\n", header="none")
    assert advice in message(tmp_path, "0,1,2\n0,0,2\n1,1,2\n0,0,1\n")
    for odd in (np.where(codes < 0, -2, codes), codes.astype(np.uint8)):
        np.save(tmp_path / "a.npy", odd)
        with pytest.raises(DataError, match=r"is no class; write classes from 0 and -1 if"):
            read_annotations(tmp_path / "a.npy")


def test_items_of_features(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(LONG.replace("t1", "t1.jpg"))
    items = ["t0", "t2", "t1"]
    crowd = read_annotations(path, items=items).annotations
    assert crowd.instance_names.tolist() == items
    assert crowd.vote_counts().sum(axis=1).tolist() == [0, 2, 2]
    with pytest.raises(DataError, match=r"line 4: item 't2'.*--unmatched=drop.*unmatched_item"):
        read_annotations(path, items=["t1"])
    lines: list[str] = []
    crowd = read_annotations(path, items=["t1"], unmatched="drop", report=lines.append).annotations
    assert crowd.num_annotations == 2
    assert "2 labels of 1 items without features are left out" in lines[1]
    assert match_items(["a", "b.png", "c"], ["b", "c.jpg", "c.png"]).tolist() == [-1, 0, -1]
    assert match_items(["a.com", "v1.5b", "d"], ["a.de", "v1.5a", "d.jpg"]).tolist() == [-1, -1, 2]
    spellings = ["1", "b ", "'=c", "e\u0301", "x", "x "]  # the last ones are two
    assert match_items(spellings, ["1.0", "b", "=c", "\u00e9", "x"]).tolist() == [0, 1, 2, 3, 4, -1]


def true_labels(folder: Path, table: str, **flags: str) -> list[int]:
    """The codes of the classes x and z of t1 and t2 that such a table has."""
    (folder / "truth.csv").write_text(table, encoding="utf-8")
    options = TableOptions.of(**flags)
    return read_true_labels(folder / "truth.csv", ["t1", "t2"], ["x", "z"], options).tolist()


def test_true_labels_are_not_the_labels_beside_them(tmp_path: Path) -> None:
    table = rows("task,true_label,consensus,response", "t1,x,z,z", "t2,z,z,x")
    assert true_labels(tmp_path, table) == [0, 1]
    assert true_labels(tmp_path, table.replace("t1,x", "t1 ,x ")) == [0, 1]
    two = table.replace("true_label", "gold").replace("consensus", "p")
    with pytest.raises(DataError, match=r"'gold' and 'response' both mean the label.*two_columns"):
        true_labels(tmp_path, two)
    assert true_labels(tmp_path, two, label_column="gold") == [0, 1]


def test_a_script_with_flags_of_its_own_is_not_proposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli
) -> None:
    text, path = ASKED[min(ASKED)]["table"], tmp_path / "labels.csv"
    monkeypatch.setattr("sys.argv", ["mine.py", f"--folder={tmp_path}", "--secret=1"])
    assert "--secret" not in message(tmp_path, text)
    path.write_text(text, encoding="utf-8")
    shown = cli("aggregate", [f"--annotations={path}", "--method=glad"], 2).err
    assert f"neucrowd aggregate --annotations={path} --method=glad --" in shown


def test_a_true_label_may_be_another_spelling_of_a_number(tmp_path: Path) -> None:
    (tmp_path / "truth.csv").write_text("task;gold\nt1;1,50\nt2;02\n")
    truth = read_true_labels(tmp_path / "truth.csv", ["t1", "t2"], ["1.5", "2", "unsure"])
    assert truth.tolist() == [0, 1]
    (tmp_path / "truth.csv").write_text("task;gold\nt1;1,000\n")
    with pytest.raises(DataError, match="unknown_class"):  # it may be a thousand
        read_true_labels(tmp_path / "truth.csv", ["t1"], ["1", "2"])


def test_true_ratings_lie_in_bins() -> None:
    bins = ["0 to 33.3333", "33.3333 to 66.6667", "66.6667 to 100"]
    places = {"0": 0, "33.2": 0, "33.4": 1, "66": 1, "67.0": 2, "100": 2}
    assert {text: bins.index(binned(text, bins)) for text in places} == places
    assert [binned(text, bins) for text in ("101", "-1", "good", bins[0])] == [
        *("101", "-1", "good", bins[0])
    ]


@pytest.mark.parametrize(
    ("bins", "ratings", "classes"),
    [
        ("0,500000,1e6,2e6", [0, 5e5, 1e6], "0 500000 1000000 2000000"),
        ("0,1e-5,2", [0, 1e-5], "0 1e-05 2"),
        ("3", range(1700000001, 1700000011), "1700000001 1700000004 1700000007 1700000010"),
        ("5", [0, 10], "0 2 4 6 8 10"),  # three are empty
        ("3", [0, 10], "0 3.33333 6.66667 10"),
        ("2", [7], "7 7"),
    ],
)
def test_bins_are_classes_in_their_order(bins: str, ratings: Any, classes: str, tmp_path) -> None:
    edges = classes.split()
    expected = list(map("{} to {}".format, edges, edges[1:]))
    crowd = read(tmp_path, labelled(list(map(str, ratings))), bins=bins).annotations
    assert crowd.class_names.tolist() == expected == class_order(expected[::-1])
    for rating, label in zip(ratings, crowd.labels, strict=True):
        assert binned(str(rating), expected) == expected[label]


def test_the_newest_of_an_annotators_answers_is_used(tmp_path: Path) -> None:
    table = (
        "item,annotator,label,created_at,updated_at\n"
        "1,a,x,2024-01-01,2024-01-05\n1,a,y,2024-01-02,2024-01-02\n"
    )
    table += "".join(f"{n},b,y,2024-01-01,2024-01-01\n" for n in range(1, 13))
    undated = table.replace("2024-01-05", "").replace("2024-01-02,2024-01-02", ",")
    for content, flags, label, words in (
        (table, {}, "x", "pairs: 1, the newest by updated_at used (--duplicates)."),
        (table, {"duplicates": "first"}, "y", "pairs: 1, the oldest by updated_at used"),
        (table.replace("2024-01-05", "2024-01-01"), {}, "y", "pairs: 1, last used"),
        (undated, {}, "y", "pairs: 1, last used"),
        (undated, {"duplicates": "first"}, "x", "pairs: 1, first used"),
    ):
        reading = read(tmp_path, content, **flags)
        assert triples(reading)[0][2] == label and words in reading.lines[1]


def test_a_time_in_one_number_is_a_date() -> None:
    seconds, problem = read_times(["20260131093000", "20260131103001"])
    assert not problem and seconds is not None
    assert seconds.tolist() == [1769851800, 1769855401]


def test_the_newest_submission_of_an_export_is_used(tmp_path: Path) -> None:
    def annotation(label: str, day: int) -> dict[str, Any]:
        result = [{"from_name": "q", "type": "choices", "value": {"choices": [label]}}]
        return {"completed_by": 1, "updated_at": f"2024-01-0{day}T10:00:00Z", "result": result}

    tasks = [{"id": 1, "data": {}, "annotations": [annotation("new", 2), annotation("old", 1)]}]
    reading = read(tmp_path, tasks, "a.json")
    assert [label for *_, label in triples(reading)] == ["new"]
    assert "pairs: 1, the newest by their times used" in reading.lines[1]
