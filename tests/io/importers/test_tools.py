"""What is read of each tool's files, what is left out, and what is rejected with which reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers import IMPORTERS, find
from neucrowd_tf.io.importers.answers import choices_of
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions
from tests.cases import cases
from tests.io.importers.exports import (
    EXPORTS,
    IDS,
    LABELS,
    TEXTS,
    label_studio,
    label_studio_result,
    mturk,
    prodigy,
    toloka,
)

Writer = Callable[[Path], Path]


def annotation(who: str, label: str) -> dict[str, Any]:
    return {"completed_by": {"email": who}, "result": label_studio_result(label)}


def name_of(path: Path) -> str | None:
    module = find(Head(path))
    return None if module is None else module.__name__.rpartition(".")[2]


def read(path: Path, **flags) -> LabelColumns:
    options = TableOptions.of(**flags)
    head = Head(path, options)
    module = find(head)
    assert module is not None
    columns = module.read(head, options)
    assert isinstance(columns, LabelColumns) and columns.layout == module.NAME
    return columns


def texts_of(column) -> list[Any]:
    """The cells of a column, which may be held as texts and codes."""
    return [column[0][code] for code in column[1]] if isinstance(column, tuple) else [*column]


def triples(columns: LabelColumns) -> list[tuple[str, str, Any]]:
    """The labels in the file's order, "item annotator label" each; lists stay lists."""
    parts = (columns.items, columns.annotators, columns.labels)
    return list(zip(*map(texts_of, parts), strict=True))


@pytest.mark.parametrize(("tool", "write", "item", "annotator", "label"), EXPORTS, ids=IDS)
def test_every_tools_crowd(
    tool: str, write: Writer, item: str, annotator: str, label: str, tmp_path: Path
) -> None:
    path = write(tmp_path)
    assert name_of(path) == tool
    columns = read(path)
    labels = texts_of(columns.labels)
    assert len(labels) == len(LABELS) and (item, annotator, label) in triples(columns)
    assert len(set(texts_of(columns.items))) == 4 and len(set(texts_of(columns.annotators))) == 3
    assert sorted(labels.count(name) for name in set(map(str, labels))) == [5, 7]
    assert set(columns.texts.values()) == set(TEXTS.values()) or not columns.texts
    assert len({columns.place(row) for row in range(len(LABELS))}) in (4, 12)
    assert set(columns.roles) == {"task", "worker", "label"} and all(columns.roles.values())


@pytest.mark.parametrize(
    ("write", "left_out", "gold"),
    [
        (label_studio, {"skipped by the annotator": 1}, {"1": "pos"}),
        (prodigy, {"ignored by the annotator": 1}, {}),
        (toloka, {"rejected answers": 1}, {"t4": "neg"}),
        (mturk, {"rejected by the requester": 1}, {}),
    ],
)
def test_what_is_left_out_is_counted(
    write: Writer, left_out: dict[str, int], gold: dict[str, str], tmp_path: Path
) -> None:
    columns = read(write(tmp_path))
    assert columns.left_out == left_out and columns.gold == gold


# By what is tried: the name and content of a file (JSON, or the text of a table), flags, and either
# the labels as "item annotator label" or the message that rejects the file.
CASES = json.loads((Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))


def write(folder: Path, name: str, content) -> Path:
    path = folder / name
    if name.endswith(".jsonl"):
        content = "".join(json.dumps(line) + "\n" for line in content)
    elif not isinstance(content, str):
        content = json.dumps(content)
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", CASES["read"])
def test_forms_of_answers(name: str, tmp_path: Path) -> None:
    case = CASES["read"][name]
    columns = read(write(tmp_path, case["file"], case["content"]), **case.get("flags", {}))
    assert [" ".join(map(str, row)) for row in triples(columns)] == case["labels"]


@pytest.mark.parametrize("name", CASES["folders"])
@pytest.mark.parametrize("packed", [False, True])
def test_folders(name: str, packed: bool, tmp_path: Path) -> None:
    for file, content in CASES["folders"][name].items():
        path = tmp_path / "out" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    archive = shutil.make_archive(str(tmp_path / "out"), "zip", tmp_path / "out")
    columns = read(Path(archive) if packed else tmp_path / "out")
    assert sorted(triples(columns)) == [("1", "ann", "yes"), ("2", "bob", "no")]


@pytest.mark.parametrize("label", ["Politics | Economy", "[x]", "two\nlines", "a/b", "x  y"])
def test_a_text_of_json_is_one_class(label: str, tmp_path: Path) -> None:
    tasks = [
        {"id": i, "data": {}, "annotations": [annotation("u", label), annotation("v", b)]}
        for i, b in enumerate(["a", "b", label])
    ]
    path = write(tmp_path, "a.json", tasks)
    reading = read_annotations(path)
    assert set(reading.annotations.class_names) == {label, "a", "b"}
    assert len(reading.lines) == 2 and "multi_label" not in reading.lines[1]
    assert "\n" not in reading.lines[1]


def test_the_one_question_with_classes_is_used(tmp_path: Path) -> None:
    rows = (f"h{i // 2},w{i % 2},{'yes' if i % 2 else 'no'},note {i}\n" for i in range(42))
    path = write(tmp_path, "a.csv", "HITId,WorkerId,Answer.q,Answer.note\n" + "".join(rows))
    columns = read(path)
    assert columns.roles["label"] == "Answer.q" and columns.reason
    assert columns.left_out == {"answers to other questions": 42}


@pytest.mark.parametrize("name", CASES["rejected"])
def test_what_is_rejected(name: str, tmp_path: Path) -> None:
    case = CASES["rejected"][name]
    path = write(tmp_path, case["file"], case["content"])
    with pytest.raises(DataError, match=case["message"]) as raised:
        read(path, **case.get("flags", {}))
    assert str(raised.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "content"),
    cases(r"""
["long.csv", "task,worker,label\n1,ann,pos\n"],
["dense.csv", "1,-1\n0,1\n"],
["coco.json", {"images": [], "annotations": [{"id": 1, "category_id": 3}]}],
["frame.json", {"task": {"0": "a"}, "worker": {"0": "u"}, "label": {"0": "x"}}],
["records.jsonl", [{"task": "a", "worker": "u", "label": "x"}]],
["form.json", [{"id": 1, "annotator": "ann", "answer": {"choices": ["x"]}}]],
["tags.json", [{"id": 1, "tags": {"lang": ["en"]}, "who": "ann", "label": "x"}]],
["texts.json", [{"id": 1, "text": "a", "annotations": [{"user": "ann", "value": "x"}]}]],
["lists.json", {"t1": [{"who": "ann", "what": "yes"}]}]
"""),
)
def test_files_of_no_tool(name: str, content, tmp_path: Path) -> None:
    assert name_of(write(tmp_path, name, content)) is None


def test_a_flag_that_a_tool_has_no_use_for_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", [{"id": 7, "data": {}, "annotations": [annotation("u", "x")]}])
    (note,) = read(path, task_column="review").notes
    assert note.startswith("--task_column=review is not used: the item of Label Studio is id.")
    assert not read(path, task_column="id", worker_column="completed_by").notes


def test_every_importer_is_tested() -> None:
    assert len({module.NAME for module in IMPORTERS}) == len(IMPORTERS) == 14


@pytest.mark.parametrize(
    ("value", "choices"),
    cases("""
[null, []],
["a", ["a"]],
[3, [3]],
[["a", "b"], ["a", "b"]],
[{"label": "a"}, ["a"]],
[{"labels": ["a"]}, ["a"]],
[{"choices": ["a", "b"]}, ["a", "b"]],
[{"a": true, "b": false}, ["a"]],
[[{"left": 1}], null],
[{"boundingBoxes": []}, null]
"""),
)
def test_choices_of_a_form(value, choices: list[Any] | None) -> None:
    assert choices_of(value) == choices
