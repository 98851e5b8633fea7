"""What is particular to one tool."""

from __future__ import annotations

import gzip
import json
import warnings
import zipfile
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.importers import detect, from_table, read_export
from neucrowd_tf.io.importers.records import choices_of
from tests.io.importers.exports import label_studio_result, labelbox, sagemaker, write_lines


def one_task(annotations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"id": 5, "data": {"image": "a.png"}, "annotations": annotations}]


def test_label_studio_takes_numbers_and_objects_as_annotators(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(
        json.dumps(
            one_task(
                [
                    {"completed_by": 10, "result": label_studio_result("x")},
                    {"completed_by": {"id": 11}, "result": label_studio_result("y")},
                ]
            )
        )
    )
    export = read_export(path)
    assert export.workers == ["10", "11"] and export.texts == {"5": "a.png"}


def test_label_studio_annotators_by_number_and_by_address_are_one(tmp_path: Path) -> None:
    task = one_task([{"completed_by": 5, "result": label_studio_result("x")}])[0]
    annotations = [
        {"completed_by": {"id": 5, "email": "ann@x.org"}, "result": label_studio_result("y")}
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps([task, {**task, "id": 6, "annotations": annotations}]))
    assert read_export(path).workers == ["ann@x.org", "ann@x.org"]


def test_two_projects_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    task = one_task([{"completed_by": 5, "result": label_studio_result("x")}])[0]
    other = one_task([{"completed_by": 6, "result": label_studio_result("x")}])[0]
    path.write_text(json.dumps([task, {**other, "data": {"image": "b.png"}}]))
    message = r"a.json: record 2: expected one image of task '5', received 'b.png' after 'a.png'"
    with pytest.raises(DataError, match=message):
        read_export(path)
    signed = [
        {**t, "data": {"image": f"https://x.org/a?s={i}"}} for i, t in enumerate([task, other])
    ]
    path.write_text(json.dumps(signed))
    assert read_export(path).tasks == ["5", "5"]


def test_two_texts_of_a_task_in_a_table() -> None:
    frame = pd.DataFrame({"t": [1, 1], "w": ["a", "b"], "l": ["x", "x"], "s": ["one", "two"]})
    roles = {"task": "t", "worker": "w", "label": "l"}
    with pytest.raises(DataError, match=r"row 3: .*'two' after 'one'.*leave out --text_column"):
        from_table(frame, **roles, text="s")
    assert from_table(frame, **roles).tasks == ["1", "1"]


def test_label_studio_boxes_are_no_choices(tmp_path: Path) -> None:
    box = {"type": "rectanglelabels", "from_name": "tag", "value": {"rectanglelabels": ["Cat"]}}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(one_task([{"completed_by": 1, "result": [box]}])))
    with pytest.raises(DataError, match=r"at least one label.*1 no choices \(rectanglelabels\)"):
        read_export(path)


def test_several_questions_need_a_name(tmp_path: Path) -> None:
    result = label_studio_result("x") + label_studio_result("loud", "tone")
    path = tmp_path / "a.json"
    path.write_text(json.dumps(one_task([{"completed_by": 1, "result": result}])))
    with pytest.raises(DataError, match=r"a.json: record 1: .*'sentiment', 'tone'; .*--question"):
        read_export(path)
    export = read_export(path, question="tone")
    assert export.labels == ["loud"]
    assert dict(export.left_out) == {"answers to other questions": 1}
    with pytest.raises(DataError, match="expected the question 'mood', received answers to"):
        read_export(path, question="mood")


def test_several_choices_are_an_error_or_the_first(tmp_path: Path) -> None:
    result = label_studio_result("x")
    result[0]["value"]["choices"] = ["x", "y", "z"]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(one_task([{"completed_by": 1, "result": result}])))
    with pytest.raises(DataError, match=r"a.json: record 1: .*one choice .*--first.*3: 'x', 'y'"):
        read_export(path)
    export = read_export(path, first=True)
    assert export.labels == ["x"] and dict(export.left_out) == {"further choices of an answer": 2}


def test_label_studio_min_asks_where_it_cannot_tell(tmp_path: Path) -> None:
    entry = {"annotator": 1, "annotation_id": 1, "id": 1, "text": "a", "mood": "x"}
    path = tmp_path / "a.json"
    path.write_text(json.dumps([entry, {**entry, "annotator": 2}]))
    with pytest.raises(DataError, match=r"'text', 'mood'; --question names one"):
        read_export(path)
    assert read_export(path, question="mood").labels == ["x", "x"]


def test_prodigy_with_one_label_is_yes_or_no(tmp_path: Path) -> None:
    line = {"_input_hash": 1, "text": "a", "label": "joy", "_session_id": "s-1", "answer": "accept"}
    other = {**line, "_session_id": "s-2", "answer": "reject", "_annotator_id": None}
    export = read_export(write_lines(tmp_path / "a.jsonl", [line, other]))
    assert export.labels == ["accept", "reject"] and export.workers == ["s-1", "s-2"]
    mixed = write_lines(tmp_path / "b.jsonl", [line, {**other, "label": "fear"}])
    with pytest.raises(DataError, match=r"line 2: .*one question, received 'joy', 'fear'"):
        read_export(mixed)


def test_prodigy_without_an_annotator(tmp_path: Path) -> None:
    line = {"_input_hash": 1, "answer": "accept", "label": "joy", "_session_id": None}
    with pytest.raises(DataError, match="line 1: expected a worker, received none"):
        read_export(write_lines(tmp_path / "a.jsonl", [line]))


def test_an_answer_that_was_changed(tmp_path: Path) -> None:
    line = {"_input_hash": 1, "label": "joy", "_session_id": "s", "answer": "accept"}
    path = write_lines(tmp_path / "a.jsonl", [line, line, {**line, "answer": "reject"}])
    with pytest.raises(DataError, match=r"line 3: .*'s' to task '1' .*'reject' after 'accept'"):
        read_export(path)
    for which, label in (("first", "accept"), ("last", "reject")):
        export = read_export(path, duplicates=which)  # type: ignore[arg-type]
        assert export.labels == [label]
        assert dict(export.left_out) == {"repeated answers of a worker to a task": 2}


def test_doccano_shared_annotations_have_no_annotator(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("all.jsonl", '{"id": 1, "label": ["x"]}\n')
    with pytest.raises(DataError, match=r"a.zip: all.jsonl: expected a file an annotator"):
        read_export(path)


def test_doccano_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ann.jsonl", '{"id": 1, "label": ["x"]}\n{"id": 2, "lab')
    with pytest.raises(DataError, match=r"a.zip: ann.jsonl: line 2: .*ends early"):
        read_export(path)


def test_archives_are_read_safely(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ann.jsonl", "".join(map(str, range(2**18)))[: 2**20])
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(DataError, match="expected a zip archive"):
        read_export(path)
    path.write_bytes(raw[:100] + b"\xff" * 40 + raw[140:])
    with pytest.raises(DataError, match=r"ann.jsonl: expected a whole file"):
        read_export(path)
    # The index says that the file is 1.2 GB; nothing of it is read.
    path.write_bytes(raw.replace((2**20).to_bytes(4, "little"), (5 * 2**28).to_bytes(4, "little")))
    with pytest.raises(DataError, match=r"at most 200,000 files and 1,024 MB"):
        read_export(path)


def test_archive_names_cannot_point_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    path = folder / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ann.jsonl", '{"id": 1, "label": ["x"]}\n')
        archive.writestr("../bob.jsonl", '{"id": 1, "label": ["y"]}\n')
    assert read_export(path).workers == ["ann"]
    assert [file.name for file in tmp_path.rglob("*")] == ["inner", "a.zip"]


def test_labelbox_of_two_projects(tmp_path: Path) -> None:
    label = {
        "label_details": {"created_by": "a"},
        "annotations": {"classifications": [{"name": "q", "radio_answer": {"value": "x"}}]},
    }
    held = {"labels": [label]}
    line = {"data_row": {"id": "r"}, "projects": {"one": held, "two": held}}
    with pytest.raises(DataError, match=r"line 1: expected labels of one project \(one\)"):
        read_export(write_lines(tmp_path / "a.ndjson", [line]))
    line = {"data_row": {"id": "r"}, "projects": {"one": held, "two": "x"}}
    with pytest.raises(
        DataError, match="line 1: expected the labels of project 'two', received 'x"
    ):
        read_export(write_lines(tmp_path / "a.ndjson", [line]))


def test_labelbox_counts_what_is_skipped_or_empty(tmp_path: Path) -> None:
    answer = {"classifications": [{"name": "q", "radio_answer": {"value": "x"}}]}
    by, skipped = {"label_details": {"created_by": "a"}}, {"performance_details": {"skipped": True}}
    kinds = [{**by, "annotations": answer}, {**by, **skipped, "annotations": answer}]
    labels = [*kinds, {**by, **skipped, "annotations": {}}, {**by, "annotations": {"objects": []}}]
    lines = [
        {"data_row": {"id": f"r{row}"}, "projects": {"one": {"labels": [label]}}}
        for row, label in enumerate(labels)
    ]
    export = read_export(write_lines(tmp_path / "a.ndjson", lines))
    assert export.tasks == ["r0"]
    assert dict(export.left_out) == {"skipped by the annotator": 2, "without an answer": 1}


def test_toloka_without_task_ids_and_a_short_row(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    head = "INPUT:image\tOUTPUT:result\tASSIGNMENT:worker_id\n"
    path.write_text(head + "a.png\tcat\tw\n\t\t\nb.png\tdog\tw\n")
    assert read_export(path).tasks == ["a.png", "b.png"]
    path.write_text(head + "a.png\tcat\tw\nb.png\tdog\n")
    with pytest.raises(DataError, match=r"a.tsv: row 3: expected 3 cells.*received 2"):
        read_export(path)


@pytest.mark.parametrize(
    ("header", "cells", "label"),
    [
        ("Answer.mood", "glad", "glad"),
        ("Answer.mood.label", "glad", "glad"),
        ("Answer.mood.glad,Answer.mood.sad", "true,false", "glad"),
        ("Answer.taskAnswers", '"[{""mood"":{""label"":""glad""}}]"', "glad"),
        ("Answer.taskAnswers", '"[{""mood"":{""glad"":true,""sad"":false}}]"', "glad"),
    ],
)
def test_mturk_forms(header: str, cells: str, label: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"HITId,WorkerId,AssignmentStatus,{header}\nh,w,Approved,{cells}\n")
    assert read_export(path, question="mood").labels == [label]
    assert read_export(path).labels == [label]


def test_mturk_broken_json_names_the_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('HITId,WorkerId,Answer.taskAnswers\nh,w,"[{""mood"":"\n')
    with pytest.raises(DataError, match=r"row 2, column 'Answer.taskAnswers': .*ends early"):
        read_export(path)


def test_sagemaker_in_a_zip_and_of_two_iterations(tmp_path: Path) -> None:
    folder = sagemaker(tmp_path)
    path = tmp_path / "job.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.rglob("*.json"):
            name = file.relative_to(tmp_path).as_posix()
            archive.write(file, name)
            archive.write(file, name.replace("iteration-1", "iteration-2"))
    assert detect(path) == "sagemaker"
    export = read_export(path)
    assert len(export.labels) == 24 and "iteration-2/3" in export.tasks


def test_sagemaker_manifest(tmp_path: Path) -> None:
    content = json.dumps({"crowd-classifier": {"label": "x"}})
    workers = [{"workerId": name, "annotationData": {"content": content}} for name in "ab"]
    line = {"source-ref": "s3://b/1.txt", "job": {"annotationsFromAllWorkers": workers}}
    export = read_export(write_lines(tmp_path / "output.manifest", [line]))
    assert export.tasks == ["s3://b/1.txt"] * 2 and export.workers == ["a", "b"]


def test_choices_of() -> None:
    assert choices_of("x") == ["x"] and choices_of(3) == [3]
    assert choices_of({"labels": ["x", "y"]}) == ["x", "y"]
    assert choices_of({"x": True, "y": False}) == ["x"]
    assert choices_of(None) == choices_of("") == []
    assert choices_of({"left": 3}) is None and choices_of([[0, 3, "PER"]]) is None


class Feature:
    names = ("no", "yes")


class Dataset:
    """What a Hugging Face dataset offers of itself."""

    features: ClassVar[dict[str, object]] = {"answer": Feature(), "id": object()}

    def to_pandas(self) -> pd.DataFrame:
        return pd.DataFrame({"id": ["a", "a", "b"], "who": [1, 2, 1], "answer": [1, 0, -1]})


def test_a_dataset_with_names_of_columns() -> None:
    export = from_table(Dataset(), task="id", worker="who", label="answer")
    assert export.labels == ["yes", "no"] and dict(export.left_out) == {"without a choice": 1}
    assert export.frame()["worker"].tolist() == [1, 2]
    with pytest.raises(UsageError, match="expected the label in a column 'label', received 'id'"):
        from_table(Dataset(), task="id", worker="who", label="label")
    with pytest.raises(UsageError, match="received list"):
        from_table([1], task="id", worker="who", label="answer")


@pytest.mark.parametrize("answers", ["[]", "null", "5", '["x"]'])
def test_mturk_answers_that_say_nothing_are_counted(tmp_path: Path, answers: str) -> None:
    path = tmp_path / "a.csv"
    cells = ['[{"q": {"label": "x"}}]', answers]
    rows = [
        {"HITId": "h", "WorkerId": f"w{n}", "Answer.taskAnswers": a} for n, a in enumerate(cells)
    ]
    pd.DataFrame(rows).to_csv(path, index=False)
    export = read_export(path)
    assert export.labels == ["x"] and export.left_out == {"without a choice": 1}


@pytest.mark.parametrize("content", ["{}", "null", "5"])
def test_sagemaker_answers_that_say_nothing_are_counted(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    given = ['{"q": {"label": "x"}}', content]
    entry = {
        "datasetObjectId": "7",
        "annotations": [
            {"workerId": f"w{n}", "annotationData": {"content": c}} for n, c in enumerate(given)
        ],
    }
    path.write_text(json.dumps([entry, {"annotations": []}]))
    export = read_export(path)
    assert export.labels == ["x"]
    assert export.left_out == {"without a choice": 1, "objects without workers' answers": 1}


def test_argilla_flat_answers_are_lists(tmp_path: Path) -> None:
    line = {"id": "r", "q.responses": ["x", "y"], "q.responses.users": "ab"}
    with pytest.raises(DataError, match=r"expected lists of responses to 'q'.*received 'ab'"):
        read_export(write_lines(tmp_path / "a.jsonl", [line]))


def test_an_export_may_be_packed(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    tasks = one_task([{"completed_by": 1, "result": label_studio_result("x")}])
    path.write_bytes(gzip.compress(json.dumps(tasks).encode()))
    assert detect(path) == "label_studio" and read_export(path).labels == ["x"]


def test_label_studio_choices_about_regions_are_none_of_the_task(tmp_path: Path) -> None:
    place = {"x": 1, "y": 1, "width": 5, "height": 5}
    box = {"id": "r1", "type": "rectanglelabels", "value": {**place, "rectanglelabels": ["Car"]}}
    about = {"id": "r1", "from_name": "quality", "type": "choices"}
    tasks = one_task(
        [
            {
                "completed_by": worker,
                "result": [
                    box,
                    {**about, "value": {**place, "choices": ["blurry"]}},
                    {**about, "value": {"choices": ["dark"]}},
                    *label_studio_result("pos"),
                ],
            }
            for worker in (1, 2)
        ]
    )
    path = tmp_path / "a.json"
    path.write_text(json.dumps(tasks))
    export = read_export(path)
    assert export.labels == ["pos", "pos"]
    assert export.left_out["choices about a region"] == 4
    for annotation in tasks[0]["annotations"]:
        annotation["result"].pop()
    path.write_text(json.dumps(tasks))
    with pytest.raises(DataError, match=r"received none .*4 choices about a region"):
        read_export(path)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({"last_action": "rejected", "reviews": [{"accepted": False}]}, False),
        ({"last_action": "rejected"}, False),
        ({"reviews": [{"accepted": True}, {"accepted": False}]}, False),
        ({"reviews": [{"accepted": False}, {"accepted": True}]}, True),
        ({"last_action": "updated", "reviews": [{"accepted": False}]}, True),
        ({"last_action": "fixed_and_accepted", "reviews": [{"accepted": True}]}, True),
    ],
)
def test_label_studio_rejected_by_a_reviewer(
    said: dict[str, Any], kept: bool, tmp_path: Path
) -> None:
    annotations = [
        {"completed_by": 1, "result": label_studio_result("pos")},
        {"completed_by": 2, "result": label_studio_result("neg"), **said},
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(one_task(annotations)))
    export = read_export(path)
    assert export.labels == ["pos", "neg"][: 1 + kept]
    assert export.left_out["rejected by a reviewer"] == (not kept)


def test_labelbox_reviews_are_told_of(tmp_path: Path) -> None:
    path = labelbox(tmp_path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    held = next(iter(lines[0]["projects"].values()))
    held["labels"][0]["label_details"]["reviews"] = [{"score": -1}]
    write_lines(path, lines)
    with pytest.warns(UserWarning, match="1 labels have reviews, which are not looked at"):
        read_export(path)


def test_label_studio_min_says_which_field_holds_the_answers(tmp_path: Path) -> None:
    path = tmp_path / "min.json"

    def write(name: str, agreed: list[str]) -> None:
        rows = [
            {"id": task, "text": f"T{task}", "kind": kind, name: said, "annotator": worker}
            for task, kind in enumerate(agreed)
            for worker, said in enumerate(("easy", "sure", "easy"))
        ]
        path.write_text(json.dumps([{**row, "annotation_id": n} for n, row in enumerate(rows)]))

    write("comment", ["pos", "neg", "pos"])
    with pytest.raises(DataError, match="'comment', 'kind'; --question names one"):
        read_export(path)
    assert read_export(path, question="kind").labels[3:6] == ["neg"] * 3
    write("mood", ["pos", "neg", "pos"])
    with pytest.warns(UserWarning, match="taken from 'mood'.*--question names another, as 'kind'"):
        assert read_export(path).labels[:2] == ["easy", "sure"]
    write("comment", ["pos", "neg", "meh"])  # no field of choices beside it
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_export(path).labels[:2] == ["easy", "sure"]
