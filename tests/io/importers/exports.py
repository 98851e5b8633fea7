"""Small exports of each tool, written from their makers' documentation.

Each holds the same crowd: four reviews, three annotators, one of whom differs on the third review,
and what each tool has besides (skipped and rejected answers, gold labels).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

TEXTS = {"1": "A joy.", "2": "Dull, and long", "3": "Fine = fine", "4": "Never again!"}
LABELS = {
    ("1", "ann"): "pos",
    ("1", "bob"): "pos",
    ("1", "cy"): "pos",
    ("2", "ann"): "neg",
    ("2", "bob"): "neg",
    ("2", "cy"): "neg",
    ("3", "ann"): "pos",
    ("3", "bob"): "neg",
    ("3", "cy"): "pos",
    ("4", "ann"): "neg",
    ("4", "bob"): "neg",
    ("4", "cy"): "neg",
}
WORKERS = ("ann", "bob", "cy")


def given(task: str) -> dict[str, str]:
    return {worker: label for (one, worker), label in LABELS.items() if one == task}


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def label_studio_result(label: str, question: str = "sentiment") -> list[dict[str, Any]]:
    return [
        {
            "value": {"choices": [label]},
            "id": "Dx_aB91ISN",
            "from_name": question,
            "to_name": "text",
            "type": "choices",
            "origin": "manual",
        }
    ]


def label_studio(folder: Path) -> Path:
    tasks = []
    for task, text in TEXTS.items():
        annotations: list[dict[str, Any]] = [
            {
                "id": 1000 + number,
                "completed_by": {"id": number, "email": worker, "first_name": "", "last_name": ""},
                "result": label_studio_result(label),
                "was_cancelled": False,
                "ground_truth": False,
                "lead_time": 4.3,
            }
            for number, (worker, label) in enumerate(given(task).items())
        ]
        tasks.append(
            {
                "id": int(task),
                "annotations": annotations,
                "predictions": [],
                "data": {"text": text},
                "project": 83,
            }
        )
    skipped = {"id": 1, "completed_by": 7, "result": [], "was_cancelled": True}
    gold = {
        "id": 2,
        "completed_by": 10,
        "result": label_studio_result("pos"),
        "was_cancelled": False,
        "ground_truth": True,
    }
    tasks[0]["annotations"] += [skipped, gold]  # type: ignore[operator]
    path = folder / "project-83.json"
    path.write_text(json.dumps(tasks, indent=1), encoding="utf-8")
    return path


def label_studio_min(folder: Path) -> Path:
    entries = [
        {
            "text": TEXTS[task],
            "id": int(task),
            "sentiment": label,
            "annotator": WORKERS.index(worker) + 1,
            "annotation_id": number,
            "created_at": "2021-03-09T22:16:08.728353Z",
            "updated_at": "2021-03-09T22:16:08.728378Z",
            "lead_time": 4.288,
        }
        for number, ((task, worker), label) in enumerate(LABELS.items())
    ]
    path = folder / "project-83-min.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


def prodigy(folder: Path) -> Path:
    options = [{"id": "pos", "text": "Positive"}, {"id": "neg", "text": "Negative"}]
    lines = [
        {
            "text": TEXTS[task],
            "options": options,
            "_input_hash": -1_000_000 - int(task),
            "_task_hash": 5,
            "_view_id": "choice",
            "accept": [label],
            "answer": "accept",
            "_timestamp": 1707211049,
            "_annotator_id": f"reviews-{worker}",
            "_session_id": f"reviews-{worker}",
        }
        for (task, worker), label in LABELS.items()
    ]
    lines.append({**lines[0], "_input_hash": -9, "accept": [], "answer": "ignore"})
    return write_lines(folder / "reviews.jsonl", lines)


def doccano(folder: Path) -> Path:
    path = folder / "doccano.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for worker in WORKERS:
            lines = [
                {"id": int(task), "text": text, "label": [given(task)[worker]], "Comments": []}
                for task, text in TEXTS.items()
            ]
            archive.writestr(f"{worker}.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        archive.writestr("__MACOSX/._ann.jsonl", b"\x00\x05\x16")
    return path


def doccano_old(folder: Path) -> Path:
    numbers = {"pos": 10, "neg": 11}
    lines = [
        {
            "id": int(task),
            "text": text,
            "annotations": [
                {"label": numbers[label], "user": WORKERS.index(worker) + 1}
                for worker, label in given(task).items()
            ],
            "meta": {},
            "annotation_approver": None,
        }
        for task, text in TEXTS.items()
    ]
    return write_lines(folder / "file.json1", lines)


def argilla(folder: Path) -> Path:
    entries = [
        {
            "id": f"record-{task}",
            "fields": {"text": text},
            "metadata": {},
            "suggestions": {},
            "vectors": {},
            "responses": {
                "sentiment": [
                    {"value": label, "user_id": f"00000000-{worker}"}
                    for worker, label in given(task).items()
                ]
            },
            "status": "completed",
        }
        for task, text in TEXTS.items()
    ]
    path = folder / "records.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


def argilla_flat(folder: Path) -> Path:
    lines = [
        {
            "id": f"record-{task}",
            "status": "completed",
            "text": text,
            "sentiment.responses": [*given(task).values(), "pos"],
            "sentiment.responses.users": [*WORKERS, "dee"],
            "sentiment.responses.status": ["submitted"] * 3 + ["draft"],
            "sentiment.suggestion": None,
        }
        for task, text in TEXTS.items()
    ]
    return write_lines(folder / "flat.jsonl", lines)


def labelbox(folder: Path) -> Path:
    lines = [
        {
            "data_row": {"id": f"clf{task}", "global_key": f"review-{task}", "row_data": text},
            "media_attributes": {"mime_type": "text/plain"},
            "projects": {
                "cltd3vkju": {
                    "name": "Reviews",
                    "labels": [
                        {
                            "label_kind": "Default",
                            "version": "1.0.0",
                            "id": f"clur{worker}",
                            "label_details": {"created_by": f"{worker}@example.org"},
                            "annotations": {
                                "objects": [],
                                "classifications": [
                                    {
                                        "feature_id": "clutx70x2",
                                        "name": "sentiment",
                                        "value": "sentiment",
                                        "radio_answer": {
                                            "name": label,
                                            "value": label,
                                            "classifications": [],
                                        },
                                    }
                                ],
                                "relationships": [],
                            },
                        }
                        for worker, label in given(task).items()
                    ],
                }
            },
        }
        for task, text in TEXTS.items()
    ]
    return write_lines(folder / "export.ndjson", lines)


def toloka(folder: Path) -> Path:
    columns = (
        "INPUT:text",
        "OUTPUT:result",
        "GOLDEN:result",
        "HINT:text",
        "ASSIGNMENT:link",
        "ASSIGNMENT:assignment_id",
        "ASSIGNMENT:task_id",
        "ASSIGNMENT:worker_id",
        "ASSIGNMENT:status",
        "ASSIGNMENT:started",
    )
    lines = ["\t".join(columns)]
    for (task, worker), label in LABELS.items():
        golden = "neg" if task == "4" else ""
        link = "https://example.org/task/1"
        cells = (TEXTS[task], label, golden, "", link, f"a-{worker}", f"t{task}", worker)
        lines += ["\t".join((*cells, "APPROVED", "2021-03-09T22:16:08.728"))]
        if task == "4":
            lines.append("\t" * (len(columns) - 1))
    lines.append("\t".join((TEXTS["1"], "neg", "", "", "", "a-9", "t1", "spam", "REJECTED", "")))
    path = folder / "assignments.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def mturk(folder: Path) -> Path:
    columns = ["HITId", "HITTypeId", "Title", "AssignmentId", "WorkerId", "AssignmentStatus"]
    columns += ["Input.text", "Answer.sentiment.label", "Approve", "Reject"]
    lines = [",".join(f'"{name}"' for name in columns)]
    statuses = [(pair, label, "Approved", "") for pair, label in LABELS.items()]
    statuses += [(("1", "spam"), "neg", "Rejected", ""), (("2", "spam"), "pos", "Submitted", "no")]
    for (task, worker), label, status, reject in statuses:
        cells = [f"3HIT{task}", "3TYPE", "Reviews", f"3A{task}{worker}", worker.upper(), status]
        cells += [TEXTS[task], label, "", reject]
        lines.append(",".join(f'"{cell}"' for cell in cells))
    path = folder / "Batch_4321_batch_results.csv"
    path.write_text("\r\n".join(lines) + "\r\n", encoding="utf-8")
    return path


def sagemaker(folder: Path) -> Path:
    """A job's folder, as it is copied from the bucket."""
    for task in TEXTS:
        place = folder / "job" / "annotations" / "worker-response" / "iteration-1" / task
        place.mkdir(parents=True)
        answers = [
            {
                "acceptanceTime": "2020-12-28T18:59:15.191Z",
                "answerContent": {"crowd-classifier": {"label": label}},
                "submissionTime": "2020-12-28T18:59:58.321Z",
                "timeSpentInSeconds": 40.543,
                "workerId": f"private.us-east-1.{worker}",
            }
            for worker, label in given(task).items()
        ]
        (place / "2020-12-28_18:59:58.json").write_text(json.dumps({"answers": answers}))
    return folder / "job" / "annotations" / "worker-response"


def sagemaker_requests(folder: Path) -> Path:
    entries = [
        {
            "datasetObjectId": task,
            "dataObject": {"content": text},
            "annotations": [
                {
                    "workerId": worker,
                    "annotationData": {
                        "content": json.dumps({"crowd-classifier": {"label": label}})
                    },
                }
                for worker, label in given(task).items()
            ],
        }
        for task, text in TEXTS.items()
    ]
    path = folder / "2020-12-28_19:00:02.json"
    path.write_text(json.dumps(entries))
    return path


# Name in TOOLS, the writer, how the tool spells task 3, worker bob and the label neg.
EXPORTS: list[tuple[str, Callable[[Path], Path], str, str, str]] = [
    ("label_studio", label_studio, "3", "bob", "neg"),
    ("label_studio_min", label_studio_min, "3", "2", "neg"),
    ("prodigy", prodigy, "-1000003", "reviews-bob", "neg"),
    ("doccano", doccano, "3", "bob", "neg"),
    ("doccano", doccano_old, "3", "2", "11"),
    ("argilla", argilla, "record-3", "00000000-bob", "neg"),
    ("argilla", argilla_flat, "record-3", "bob", "neg"),
    ("labelbox", labelbox, "review-3", "bob@example.org", "neg"),
    ("toloka", toloka, "t3", "bob", "neg"),
    ("mturk", mturk, "3HIT3", "BOB", "neg"),
    ("sagemaker", sagemaker, "3", "private.us-east-1.bob", "neg"),
    ("sagemaker", sagemaker_requests, "3", "bob", "neg"),
]
IDS = [write.__name__ for _, write, *_ in EXPORTS]
