"""What is read of each tool's files, what is left out, and what is rejected with which reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers import IMPORTERS, find
from neucrowd_tf.io.importers.answers import choices_of
from neucrowd_tf.io.schema import TableOptions
from tests.io.importers.exports import (
    EXPORTS,
    IDS,
    LABELS,
    TEXTS,
    argilla_flat,
    label_studio,
    label_studio_result,
    labelbox_label,
    mturk,
    prodigy,
    toloka,
)

Writer = Callable[[Path], Path]


def name_of(path: Path) -> str | None:
    module = find(Head(path))
    return None if module is None else module.__name__.rpartition(".")[2]


def read(path: Path, **flags: Any) -> LabelColumns:
    options = TableOptions.of(**flags)
    head = Head(path, options)
    module = find(head)
    assert module is not None
    columns = module.read(head, options)
    assert isinstance(columns, LabelColumns) and columns.layout == module.NAME
    return columns


def triples(columns: LabelColumns) -> list[tuple[str, str, Any]]:
    """The labels in the file's order, "item annotator label" each; lists stay lists."""
    return list(zip(columns.items, columns.annotators, columns.labels, strict=True))


@pytest.mark.parametrize(("tool", "write", "item", "annotator", "label"), EXPORTS, ids=IDS)
def test_every_tools_crowd(
    tool: str, write: Writer, item: str, annotator: str, label: str, tmp_path: Path
) -> None:
    path = write(tmp_path)
    assert name_of(path) == tool
    columns = read(path)
    assert len(columns.labels) == len(LABELS) and (item, annotator, label) in triples(columns)
    assert len(set(columns.items)) == 4 and len(set(columns.annotators)) == 3
    counts = sorted(list(columns.labels).count(name) for name in set(map(str, columns.labels)))
    assert counts == [5, 7]
    assert set(columns.texts.values()) == set(TEXTS.values()) or not columns.texts
    assert len({columns.place(row) for row in range(len(LABELS))}) in (4, 12)
    assert set(columns.roles) == {"task", "worker", "label"} and all(columns.roles.values())


@pytest.mark.parametrize(
    ("write", "left_out", "gold"),
    [
        (label_studio, {"skipped by the annotator": 1}, {"1": "pos"}),
        (prodigy, {"ignored by the annotator": 1}, {}),
        (argilla_flat, {"draft, not submitted": 4}, {}),
        (toloka, {"rejected answers": 1}, {"t4": "neg"}),
        (mturk, {"rejected by the requester": 1}, {}),
    ],
)
def test_what_is_left_out_is_counted(
    write: Writer, left_out: dict[str, int], gold: dict[str, str], tmp_path: Path
) -> None:
    columns = read(write(tmp_path))
    assert columns.left_out == left_out and columns.gold == gold


def task(number: int, *annotations: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": number, "data": {"text": "x"}, "annotations": list(annotations), **more}


def by(annotator: Any, *parts: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"completed_by": annotator, "result": list(parts), **more}


POS, NEG = label_studio_result("pos")[0], label_studio_result("neg")[0]
TOPIC = {"from_name": "topic", "type": "taxonomy", "value": {"taxonomy": [["A"], ["A", "Dog"]]}}
STARS = {"from_name": "stars", "type": "rating", "value": {"rating": 4}}
REGION = {"id": "r1", "type": "rectanglelabels", "value": {"x": 1, "rectanglelabels": ["cat"]}}
OF_REGION = {**POS, "id": "r1"}
FIGURE_EIGHT = "_unit_id,_golden,_worker_id,verdict,url,verdict_gold\n"
ZOONIVERSE = "classification_id,user_name,subject_ids,annotations\n"
HIT = "HITId,WorkerId,AssignmentStatus,"


def judged(unit: int, **answers: str) -> dict[str, Any]:
    judgments = [{"worker_id": w, "data": {"q": a}} for w, a in answers.items()]
    return {"id": unit, "data": {"text": "x"}, "results": {"judgments": judgments}}


def classified(*values: Any) -> str:
    rows = [json.dumps([{"task": "T0", "value": value}]).replace('"', '""') for value in values]
    return ZOONIVERSE + "".join(f'{i},ann,s{i},"{row}"\n' for i, row in enumerate(rows))


# What is tried: the file's name, its content (JSON, lines of JSON for .jsonl, or text), flags, and
# the labels as "item annotator label".
READ: dict[str, tuple[str, Any, dict[str, Any], list[str]]] = {
    "Label Studio: taxonomy": ("a.json", [task(1, by(5, TOPIC))], {}, ["1 5 ['A', 'A > Dog']"]),
    "Label Studio: rating": ("a.json", [task(1, by(5, STARS))], {}, ["1 5 4"]),
    "Label Studio: predictions": (
        "a.json",
        [task(1, by(5, POS), predictions=[{"model_version": "v2", "result": [NEG]}, 17])],
        {},
        ["1 5 pos", "1 model v2 neg"],
    ),
    "Label Studio: an address of another annotation": (
        "a.json",
        [task(1, by({"id": 5, "email": "a@b.org"}, POS)), task(2, by(5, NEG))],
        {},
        ["1 a@b.org pos", "2 a@b.org neg"],
    ),
    "Label Studio: reviews": (
        "a.json",
        [
            task(1, by(5, POS), by(6, NEG, last_action="rejected")),
            task(2, by(5, POS, reviews=[{"accepted": True}, {"accepted": False}]), by(6, NEG)),
        ],
        {},
        ["1 5 pos", "2 6 neg"],
    ),
    "Label Studio: regions": ("a.json", [task(1, by(5, REGION, OF_REGION, NEG))], {}, ["1 5 neg"]),
    "Label Studio: a question": (
        "a.json",
        [task(1, by(5, POS, STARS))],
        {"question": "stars"},
        ["1 5 4"],
    ),
    "Label Studio: before 1.0": (
        "a.json",
        [{"id": 1, "data": {}, "completions": [by(5, POS)]}],
        {},
        ["1 5 pos"],
    ),
    "Prodigy: repeated ids": (
        "a.jsonl",
        [
            {
                "id": "t",
                "_input_hash": 1,
                "answer": "accept",
                "accept": ["a", "b"],
                "_session_id": "u",
            },
            {
                "id": "t",
                "_input_hash": 2,
                "answer": "accept",
                "accept": ["b"],
                "_annotator_id": "v",
            },
        ],
        {},
        ["t u ['a', 'b']", "t v b"],
    ),
    "Prodigy: one label": (
        "a.jsonl",
        [{"_input_hash": 1, "label": "SPAM", "answer": "reject", "_annotator_id": "u"}],
        {},
        ["1 u reject"],
    ),
    "doccano: names and spans": (
        "a.jsonl",
        [
            {
                "id": 1,
                "annotations": [{"label": 3, "label_name": "pos", "user": 1, "user_name": "u"}],
            },
            {"id": 2, "annotations": [{"label": 3, "user": 1, "start_offset": 0}]},
        ],
        {},
        ["1 u pos"],
    ),
    "Labelbox: checklists": (
        "a.ndjson",
        {
            "data_row": {"id": "r"},
            "projects": {
                "p": {
                    "labels": [
                        {
                            "label_details": {"created_by": "u"},
                            "annotations": {
                                "classifications": [
                                    {
                                        "name": "q",
                                        "checklist_answers": [{"name": "a"}, {"name": "b"}],
                                    },
                                    {"name": "note", "text_answer": {"content": "x"}},
                                ]
                            },
                        }
                    ]
                }
            },
        },
        {},
        ["r u ['a', 'b']"],
    ),
    "Toloka: inputs as items": (
        "a.tsv",
        "INPUT:a\tINPUT:b\tOUTPUT:x\tOUTPUT:y\tASSIGNMENT:worker_id\np\tq\t1\t2\tu\n",
        {"question": "y"},
        ["p,q u 2"],
    ),
    "Mechanical Turk: several items per HIT": (
        "a.csv",
        f"{HIT}Input.i1,Input.i2,Input.qc,Answer.i1,Answer.i2,Answer.qc\nh,u,,a,b,c,yes,no,ok\n",
        {},
        ["a u yes", "b u no"],
    ),
    "Mechanical Turk: a column per option": (
        "a.csv",
        f"{HIT}Answer.q.cat,Answer.q.dog\nh,u,,true,false\nh,v,,false,true\n",
        {},
        ["h u cat", "h v dog"],
    ),
    "Mechanical Turk: JSON": (
        "a.csv",
        f'{HIT}Answer.taskAnswers\nh,u,,"[{{""q"":{{""cat"":true,""dog"":false}}}}]"\n',
        {},
        ["h u cat"],
    ),
    "Mechanical Turk: named columns": (
        "a.csv",
        f"{HIT}Input.url,Answer.a,Answer.b\nh,u,,x,1,2\nh2,u,,x,3,4\n",
        {"task_column": "Input.url", "label_column": "Answer.b"},
        ["x u 2", "x u 4"],
    ),
    "Mechanical Turk: the one question with classes": (
        "a.csv",
        f"{HIT}Answer.q,Answer.note\n"
        + "".join(f"h{i // 2},w{i % 2},,{'yes' if i % 2 else 'no'},note {i}\n" for i in range(42)),
        {},
        [f"h{i // 2} w{i % 2} {'yes' if i % 2 else 'no'}" for i in range(42)],
    ),
    "SageMaker: a manifest": (
        "a.jsonl",
        [
            {
                "source-ref": "s3://x",
                "job": {
                    "annotationsFromAllWorkers": [
                        {"workerId": "u", "annotationData": {"content": '{"q": {"cat": true}}'}}
                    ]
                },
            }
        ],
        {},
        ["s3://x u cat"],
    ),
    "Figure Eight: CSV": (
        "a.csv",
        FIGURE_EIGHT
        + "1,true,u,yes,x,yes\n1,true,v,no,x,yes\n2,false,u,yes,y,\n2,false,v,yes,y,\n",
        {},
        ["1 u yes", "1 v no", "2 u yes", "2 v yes"],
    ),
    "Figure Eight: JSON": (
        "a.json",
        "".join(json.dumps(judged(i, u="yes", v="no")) + "\n" for i in (1, 2)),
        {},
        ["1 u yes", "1 v no", "2 u yes", "2 v no"],
    ),
    "LeWiDi 2023": (
        "a.json",
        {"7": {"text": "x", "annotators": "Ann1,Ann2", "annotations": "0,1", "hard_label": "0"}},
        {},
        ["7 Ann1 0", "7 Ann2 1"],
    ),
    "LeWiDi 2025": (
        "a.json",
        {"7": {"annotators": "Ann1,Ann2", "annotations": {"Ann1": "-1", "Ann2": "2"}}},
        {},
        ["7 Ann1 -1", "7 Ann2 2"],
    ),
    "EXIST": (
        "a.json",
        {
            "9": {
                "annotators": ["A", "B"],
                "labels_task1": ["YES", "NO"],
                "age_annotators": ["18-22"],
            }
        },
        {},
        ["9 A YES", "9 B NO"],
    ),
    "Zooniverse: flattened": (
        "a.csv",
        "row_id,classification_id,user_name,created_at,subject_ids,val\n"
        "0,5,ann,2017-02-23,s1,Yes\n1,6,bob,2017-02-24,s1,No\n",
        {},
        ["s1 ann Yes", "s1 bob No"],
    ),
    "Zooniverse: raw": (
        "a.csv",
        classified("Yes", ["a", "b"]),
        {},
        ["s0 ann Yes", "s1 ann ['a', 'b']"],
    ),
    "Zooniverse: a combined task": (
        "a.csv",
        classified([{"task": "T1", "value": "Yes"}]),
        {},
        ["s0 ann Yes"],
    ),
    "annotators per class": (
        "a.json",
        {"1": {"yes": ["u"], "no": ["v", 3]}, "2": {"yes": ["u"], "no": ["u"]}},
        {},
        ["1 u yes", "1 v no", "1 3 no", "2 u ['yes', 'no']"],
    ),
    "annotators per class in records": (
        "a.jsonl",
        [{"id": 7, "text": "x", "votes": {"yes": ["u"], "no": ["v"]}}],
        {},
        ["7 u yes", "7 v no"],
    ),
    "answers.json": (
        "a.json",
        {"1": {"u": 0, "v": 1}, "2": {}, "3": {"u": True}},
        {},
        ["1 u 0", "1 v 1", "3 u True"],
    ),
}


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    if name.endswith(".jsonl"):
        content = "".join(json.dumps(line) + "\n" for line in content)
    elif not isinstance(content, str):
        content = json.dumps(content)
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize("case", READ)
def test_forms_of_answers(case: str, tmp_path: Path) -> None:
    name, content, flags, wanted = READ[case]
    columns = read(write(tmp_path, name, content), **flags)
    assert [" ".join(map(str, row)) for row in triples(columns)] == wanted


SKIPPED = {"classifications": [], "objects": [1, 2]}
# What is tried: the file's name, its content, and words of the message.
REJECTED: dict[str, tuple[str, Any, str]] = {
    "Label Studio: boxes": (
        "a.json",
        [task(1, by(5, REGION))],
        r"1 results of type rectanglelabels.*\[nothing_to_aggregate\]",
    ),
    "Label Studio: two questions": (
        "a.json",
        [task(1, by(5, POS, STARS))],
        r"sentiment \(1 values, 1 answers\), stars.*--question=sentiment.*\[several_questions\]",
    ),
    "Label Studio: another form": (
        "a.json",
        [task(1, by(5, POS)), {"id": 2, "data": {}}],
        r"record 2: .* a task needs 'id' and 'annotations'.*\[unknown_layout\]",
    ),
    "Prodigy: nobody": (
        "a.jsonl",
        [{"text": "x", "cats": {"A": True, "B": False}, "answer": "accept"}] * 2,
        r"2 without an annotator.*\[nothing_to_aggregate\]",
    ),
    "doccano: spans": (
        "a.jsonl",
        [{"id": 1, "data": "x", "label": [[0, 1, "PER"], [2, 3, "LOC"]]}],
        r"2 spans in the first text.*\[nothing_to_aggregate\]",
    ),
    "doccano: one file of all": (
        "a.jsonl",
        [{"id": 1, "text": "x", "label": ["pos"]}],
        "1 without an annotator",
    ),
    "Argilla: lists of other lengths": (
        "a.jsonl",
        [{"id": 1, "q.responses": ["a"], "q.responses.users": ["u", "v"]}],
        "line 1: .*the lists of 'q' have different lengths",
    ),
    "Labelbox: without details": (
        "a.jsonl",
        [{"data_row": {"id": 1}, "projects": {"p": {"labels": [{}]}}}],
        "a label needs 'label_details'",
    ),
    "Labelbox: boxes": (
        "a.jsonl",
        [
            {
                "data_row": {"id": 1},
                "projects": {
                    "p": {"labels": [{**labelbox_label("u", "a"), "annotations": SKIPPED}]}
                },
            }
        ],
        "2 objects",
    ),
    "SageMaker: no JSON": (
        "a.json",
        [
            {
                "datasetObjectId": 1,
                "annotations": [{"workerId": "u", "annotationData": {"content": "{"}}],
            }
        ],
        "record 1: .*'content' is not JSON",
    ),
    "Mechanical Turk: no JSON": (
        "a.csv",
        f"{HIT}Answer.taskAnswers\nh,u,,[oops\n",
        "line 2: .*'Answer.taskAnswers' is not JSON",
    ),
    "Figure Eight: aggregated": (
        "a.csv",
        "_unit_id,_trusted_judgments,verdict,verdict:confidence\n1,5,yes,0.8\n",
        "units without annotators .download the full report.",
    ),
    "LeWiDi: other lengths": (
        "a.json",
        {"7": {"annotators": "A,B", "annotations": "0"}},
        "item '7': .*2 annotators, 1 values of 'annotations'",
    ),
    "Zooniverse: a survey": ("a.csv", classified([{"choice": "BBN"}]), "1 survey answers"),
    "Zooniverse: drawings": ("a.csv", classified([{"tool": 0, "x": 3}]), "1 drawings"),
    "answers.json: another form": (
        "a.json",
        {"1": {"u": 0}, "2": [3]},
        "item '2': .*expected an object of annotators and labels",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_what_is_rejected(case: str, tmp_path: Path) -> None:
    name, content, message = REJECTED[case]
    with pytest.raises(DataError, match=message) as raised:
        read(write(tmp_path, name, content))
    assert str(raised.value).startswith(f"{tmp_path / name}: ")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("long.csv", "task,worker,label\n1,ann,pos\n"),
        ("dense.csv", "1,-1\n0,1\n"),
        ("coco.json", {"images": [], "annotations": [{"id": 1, "category_id": 3}]}),
        ("frame.json", {"task": {"0": "a"}, "worker": {"0": "u"}, "label": {"0": "x"}}),
        ("records.jsonl", [{"task": "a", "worker": "u", "label": "x"}]),
        ("lists.json", {"t1": [{"who": "ann", "what": "yes"}]}),
    ],
)
def test_files_of_no_tool(name: str, content: Any, tmp_path: Path) -> None:
    assert name_of(write(tmp_path, name, content)) is None


def test_every_importer_is_tested() -> None:
    names = {module.NAME for module in IMPORTERS}
    assert len(names) == len(IMPORTERS) == 13


@pytest.mark.parametrize(
    ("value", "choices"),
    [
        (None, []),
        ("a", ["a"]),
        (3, [3]),
        (["a", "b"], ["a", "b"]),
        ({"label": "a"}, ["a"]),
        ({"labels": ["a"]}, ["a"]),
        ({"choices": ["a", "b"]}, ["a", "b"]),
        ({"a": True, "b": False}, ["a"]),
        ([{"left": 1}], None),
        ({"boundingBoxes": []}, None),
    ],
)
def test_choices_of_a_form(value: Any, choices: list[Any] | None) -> None:
    assert choices_of(value) == choices
