"""Records whose fields are named by path: a small file of each tool's layout, and what is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions
from tests.cases import cases
from tests.io.reading import message, pasted, read

# What ann, bob and cy say of each item.
LABELS = {"t0": "pos pos pos", "t1": "neg pos neg", "t2": "pos pos pos", "t3": "neg pos neg"}
# The same labels as each tool writes them, by tool.
TOOLS = json.loads((Path(__file__).parent / "cases" / "records.json").read_text("utf-8"))


def labels_by_item(folder: Path, content, **flags) -> dict[str, str]:
    frame = read(folder, content, "a.json", **flags).annotations.to_wide_frame()
    rows = frame.sort_index().sort_index(axis=1).reset_index().to_numpy()
    return {item: " ".join(labels) for item, *labels in rows}


@pytest.mark.parametrize("tool", TOOLS)
def test_the_proposed_fields_read_a_tools_records(tool: str, tmp_path: Path) -> None:
    flags = pasted(message(tmp_path, TOOLS[tool], "a.json"))
    assert labels_by_item(tmp_path, TOOLS[tool], **flags) == LABELS
    several = {"LangSmith": "key", "MLflow": "info.assessments.assessment_name", "Langfuse": "name"}
    if tool in several:  # a question is never pooled with another
        assert flags.pop("question") == f"{several[tool]}=correct"
        shown = message(tmp_path, TOOLS[tool], "a.json", **flags)
        assert f"{several[tool]} tells their rows apart" in shown


def test_a_folder_of_records(tmp_path: Path) -> None:
    for number, record in enumerate(TOOLS["Amazon Augmented AI"]):
        path = tmp_path / "out" / str(number) / "output.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(record))
    flags = {
        "task_column": "humanLoopName",
        "worker_column": "humanAnswers.workerId",
        "label_column": "humanAnswers.answerContent.mood.label",
    }
    reading = read_annotations(tmp_path / "out", TableOptions.of(**flags))
    assert reading.annotations.num_annotations == 12


def test_flat_records_of_argilla(tmp_path: Path) -> None:
    answers = {"mood.responses.users": ["ann", "bob", "cy"], "mood.suggestion": None}
    answers["mood.responses.status"] = ["submitted", "submitted", "discarded"]
    records = [
        {"id": item, "status": "completed", "mood.responses": labels.split(), **answers}
        for item, labels in LABELS.items()
    ]
    expected = {"t0": "pos pos", "t1": "neg pos", "t2": "pos pos", "t3": "neg pos"}
    assert labels_by_item(tmp_path, records) == expected


def test_lists_without_annotators_are_votes(tmp_path: Path) -> None:
    snli = [{"pairID": "a", "annotator_labels": ["e", "e", "n", ""], "gold_label": "e"},
            {"pairID": "b", "annotator_labels": ["c"], "gold_label": "c"}]  # fmt: skip
    flags = pasted(message(tmp_path, snli, "a.json"))
    crowd = read(tmp_path, snli, "a.json", **flags).annotations
    assert crowd.vote_counts().tolist() == [[0, 2, 1], [1, 0, 0]]
    chaos = [{"uid": "a", "label_counter": {"e": 60, "n": 40}, "label_dist": [0.6, 0.4, 0]},
             {"uid": "b", "label_counter": {"c": 100}, "label_dist": [0, 0, 1]}]  # fmt: skip
    flags = pasted(message(tmp_path, chaos, "a.json"))
    crowd = read(tmp_path, chaos, "a.json", **flags).annotations
    assert crowd.vote_counts().tolist() == [[0, 60, 40], [100, 0, 0]]
    once = [{"id": "a", "tags": ["e", "n"]}, {"id": "b", "tags": ["e"]}]  # may be one annotator's
    shown = message(tmp_path, once, "a.json", task_column="id", label_column="tags")
    assert "Each class becomes a yes/no question with --multi_label=list" in shown


@pytest.mark.parametrize("count", [0.7, -1, "many"])
def test_numbers_that_are_no_votes(tmp_path: Path, count) -> None:
    records = [
        {"id": "a", "votes": {"e": 2, "n": None}},
        {"id": "b", "votes": {"e": 1, "n": count}},
    ]
    flags = {"task_column": "id", "label_column": "votes"}
    problem = f"record 2: column 'votes.n': {count!r} is not a number of votes"
    assert problem in message(tmp_path, records, "a.json", **flags)
    assert read(tmp_path, records[:1], "a.json", **flags).annotations.vote_counts().sum() == 2


def test_an_annotator_twice_in_a_list(tmp_path: Path) -> None:
    records = {"0": {"annotators": "a,a,b", "annotations": "0,1,1"}}
    assert "another label by annotator 'a'" in message(
        tmp_path, records, "a.json", duplicates="error"
    )
    first = read(tmp_path, records, "a.json", duplicates="first").annotations
    assert first.vote_counts().tolist() == [[1, 1]]


def test_fields_that_are_not_there_or_do_not_fit(tmp_path: Path) -> None:
    records = TOOLS["lists of objects"]
    shown = message(tmp_path, records, "a.json", worker_column="reviews.who")
    assert "there is no column 'reviews.who'" in shown and "reviews.by.name" in shown
    uneven = [{"id": 1, "users": ["a", "b"], "ratings": ["x"]}, {"id": 2, "users": ["a"]}]
    flags = {"task_column": "id", "worker_column": "users", "label_column": "ratings"}
    assert "lists of different lengths" not in message(tmp_path, uneven[1:], "a.json")
    three = [{"id": 1, "users": ["a", "b", "c"], "ratings": ["x", "y"]}]
    assert "record 1: lists of different lengths in the fields" in message(
        tmp_path, three, "a.json", **flags
    )
    unknown = [{"id": 1, "things": [{"who": "a", "what": "x"}]}]
    assert "Its fields by path are id, things.who, things.what." in message(
        tmp_path, unknown, "a.json"
    )


def test_several_labels_of_an_annotator_stay_in_a_cell(tmp_path: Path) -> None:
    records = [
        {
            "id": i,
            "notes": [{"user": by, "tags": list(tags)} for by, tags in (("a", "xy"), ("b", ""))],
        }
        for i in range(3)
    ]
    flags = {"task_column": "id", "worker_column": "notes.user", "label_column": "notes.tags"}
    assert "multi_label=list" in message(tmp_path, records, "a.json", **flags)
    reading = read(tmp_path, records, "a.json", **flags, multi_label="list")
    assert reading.annotations.num_annotations == 12
    assert "3 answers have no class" in reading.lines[1]


NESTED = [
    {"id": f"r{i}", "text": f"text {i}", "labels": [(i + j) % 2 for j in range(3)],
     "annotators": ["u1", "u2", "u3"]}
    for i in range(4)
]  # fmt: skip


def test_nested_parquet_is_read_as_the_same_json(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    cases = {"lists": (NESTED, {}), "objects": (
        TOOLS["lists of objects"],
        {"worker_column": "reviews.by.name", "label_column": "reviews.verdict"},
    )}  # fmt: skip
    for records, flags in cases.values():
        pq.write_table(pa.Table.from_pylist(records), tmp_path / "a.parquet")
        options = TableOptions.of(**flags)
        nested = read_annotations(tmp_path / "a.parquet", options)
        assert nested.annotations == read(tmp_path, records, "a.json", **flags).annotations


def test_a_list_is_never_a_name(tmp_path: Path) -> None:
    rows = "id,annotators,label\n" + "".join(
        f'{i},"[""u1"", ""u2""]",{x}\n' for i, x in enumerate("xyxy")
    )
    flags = {"task_column": "id", "worker_column": "annotators", "label_column": "label"}
    shown = message(tmp_path, rows, **flags)
    assert """annotator '["u1", "u2"]' is a list, not a name""" in shown


def test_names_of_classes_of_hugging_face(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    label = {"names": ["neg", "pos"], "_type": "ClassLabel"}
    features = {"task": {"_type": "Value"}, "worker": {"_type": "Value"}, "label": label}
    table = pa.table({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": [0, 1, -1]})
    info = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    pq.write_table(table.replace_schema_metadata(info), tmp_path / "a.parquet")
    crowd = read_annotations(tmp_path / "a.parquet").annotations
    assert crowd.to_frame().to_numpy().tolist() == [[1, "a", "neg"], [1, "b", "pos"]]
    features = {"labels": {"feature": label, "_type": "Sequence"}}
    info = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    nested = pa.Table.from_pylist(NESTED).replace_schema_metadata(info)
    pq.write_table(nested, tmp_path / "b.parquet")
    crowd = read_annotations(tmp_path / "b.parquet").annotations
    assert crowd.class_names.tolist() == ["neg", "pos"] and crowd.num_annotations == 12


CSV = "a CSV with the columns task, annotator and label."


@pytest.mark.parametrize(
    ("content", "paths"),
    cases("""
[{"t0": ["y", "n"], "t1": ["n", "n"]}, ""],
[{"t0": "y", "t1": "n"}, ""],
[{"t0": {"ann": {"is": "y"}}, "t1": {"ann": {"is": "n"}}}, ""],
[{"data": []}, ""],
[{"t0": [{"by": "u", "is": "y"}], "t1": [{"by": "u", "is": "n"}]}, "*, *.by, *.is"],
[{"of": ["t0", "t1", "t2"], "is": ["y", "n", "n"]}, "of, is"],
[{"run": 1, "all": [{"by": "u", "is": "y"}]}, "run, all.by, all.is"]
"""),
)
def test_records_of_an_unknown_layout(content, paths, tmp_path) -> None:
    shown = message(tmp_path, content, "a.json").split("\n")
    if paths:
        assert shown[1] == f"Its fields by path are {paths}."
        assert shown[2].endswith(f", or convert the file to {CSV}")
    else:
        assert shown[1:] == [f"Convert it to {CSV}"]


def test_every_key_may_be_an_item(tmp_path: Path) -> None:
    content = {"t0": [{"by": "u", "is": "y"}], "t1": [{"by": "v", "is": "n"}]}
    flags = {"task_column": "*", "worker_column": "*.by", "label_column": "*.is"}
    assert "2 labels of 2 items by 2 annotators" in read(tmp_path, content, **flags).lines[0]
