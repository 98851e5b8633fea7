"""Small exports of each tool, written from their makers' documentation.

Each holds the same crowd: four reviews, three annotators, one of whom differs on the third review,
and what the tool has besides (skipped and rejected answers, gold labels).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TEXTS = {"1": "A joy.", "2": "Dull, and long", "3": "Fine = fine", "4": "Never again!"}
WORKERS = ("ann", "bob", "cy")
BY_ITEM = {"1": "pos pos pos", "2": "neg neg neg", "3": "pos neg pos", "4": "neg neg neg"}
LABELS = {
    (item, worker): label
    for item, labels in BY_ITEM.items()
    for worker, label in zip(WORKERS, labels.split(), strict=True)
}


def answers_of(item: str) -> dict[str, str]:
    return dict(zip(WORKERS, BY_ITEM[item].split(), strict=True))


def write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return path


def write_lines(path: Path, lines: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def label_studio_result(label: str, question: str = "sentiment") -> list[dict[str, Any]]:
    about = {"id": "Dx_aB91ISN", "from_name": question, "to_name": "text", "type": "choices"}
    return [{**about, "value": {"choices": [label]}, "origin": "manual"}]


def label_studio(folder: Path) -> Path:
    tasks: list[dict[str, Any]] = [
        {
            "id": int(item),
            "data": {"text": text},
            "predictions": [],
            "annotations": [
                {
                    "completed_by": {"id": number, "email": worker},
                    "result": label_studio_result(label),
                    "was_cancelled": False,
                    "ground_truth": item == "1" and worker == "ann",
                }
                for number, (worker, label) in enumerate(answers_of(item).items())
            ],
        }
        for item, text in TEXTS.items()
    ]
    tasks[0]["annotations"].append({"completed_by": 7, "result": [], "was_cancelled": True})
    return write_json(folder / "project-83.json", tasks)


def label_studio_min(folder: Path) -> Path:
    about = {"created_at": "2021-03-09T22:16:08.728353Z", "lead_time": 4.288}
    entries = [
        {
            "text": TEXTS[item],
            "id": int(item),
            "sentiment": label,
            "annotator": WORKERS.index(worker) + 1,
            "annotation_id": number,
            **about,
        }
        for number, ((item, worker), label) in enumerate(LABELS.items())
    ]
    return write_json(folder / "project-83-min.json", entries)


def prodigy(folder: Path) -> Path:
    lines = [
        {
            "text": TEXTS[item],
            "options": [{"id": "pos", "text": "Positive"}, {"id": "neg", "text": "Negative"}],
            "_input_hash": -1_000_000 - int(item),
            "_task_hash": 5,
            "_view_id": "choice",
            "accept": [label],
            "answer": "accept",
            "_annotator_id": f"reviews-{worker}",
            "_session_id": f"reviews-{worker}",
        }
        for (item, worker), label in LABELS.items()
    ]
    lines.append({**lines[0], "_input_hash": -9, "accept": [], "answer": "ignore"})
    return write_lines(folder / "reviews.jsonl", lines)


def doccano(folder: Path) -> Path:
    path = folder / "doccano.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for worker in WORKERS:
            lines = [
                {"id": int(item), "text": text, "label": [answers_of(item)[worker]], "Comments": []}
                for item, text in TEXTS.items()
            ]
            archive.writestr(f"{worker}.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        archive.writestr("__MACOSX/._ann.jsonl", b"\x00\x05\x16")
    return path


def doccano_old(folder: Path) -> Path:
    numbers = {"pos": 10, "neg": 11}
    lines = [
        {
            "id": int(item),
            "text": text,
            "annotations": [
                {"label": numbers[label], "user": WORKERS.index(worker) + 1}
                for worker, label in answers_of(item).items()
            ],
            "meta": {},
        }
        for item, text in TEXTS.items()
    ]
    return write_lines(folder / "file.json1", lines)


def argilla(folder: Path) -> Path:
    entries = [
        {
            "id": f"record-{item}",
            "fields": {"text": text},
            "responses": {
                "sentiment": [
                    {"value": label, "user_id": f"00000000-{worker}"}
                    for worker, label in answers_of(item).items()
                ]
            },
        }
        for item, text in TEXTS.items()
    ]
    return write_json(folder / "records.json", entries)


def argilla_flat(folder: Path) -> Path:
    lines = [
        {
            "id": f"record-{item}",
            "text": text,
            "sentiment.responses": [*answers_of(item).values(), "pos"],
            "sentiment.responses.users": [*WORKERS, "dee"],
            "sentiment.responses.status": ["submitted"] * 3 + ["draft"],
            "sentiment.suggestion": None,
        }
        for item, text in TEXTS.items()
    ]
    return write_lines(folder / "flat.jsonl", lines)


def labelbox_label(worker: str, label: str) -> dict[str, Any]:
    answer = {"name": label, "value": label, "classifications": []}
    return {
        "label_details": {"created_by": f"{worker}@example.org"},
        "annotations": {
            "objects": [],
            "classifications": [{"name": "sentiment", "radio_answer": answer}],
        },
    }


def labelbox(folder: Path) -> Path:
    lines = [
        {
            "data_row": {"id": f"clf{item}", "global_key": f"review-{item}", "row_data": text},
            "projects": {
                "cltd3": {"labels": [labelbox_label(*g) for g in answers_of(item).items()]}
            },
        }
        for item, text in TEXTS.items()
    ]
    return write_lines(folder / "export.ndjson", lines)


def toloka(folder: Path) -> Path:
    columns = "INPUT:text OUTPUT:result GOLDEN:result HINT:text ASSIGNMENT:task_id"
    columns += " ASSIGNMENT:worker_id ASSIGNMENT:status"
    lines = [columns.replace(" ", "\t")]
    for (item, worker), label in LABELS.items():
        golden = "neg" if item == "4" else ""
        lines.append("\t".join((TEXTS[item], label, golden, "", f"t{item}", worker, "APPROVED")))
        lines += ["\t" * 6] * (item == "4")
    lines.append("\t".join((TEXTS["1"], "neg", "", "", "t1", "spam", "REJECTED")))
    path = folder / "assignments.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def mturk(folder: Path) -> Path:
    """Approve and Reject are in the header alone, as Amazon writes them."""
    columns = "HITId,Title,WorkerId,AssignmentStatus,Input.text,Answer.sentiment.label"
    lines = [f"{columns},Approve,Reject"]
    answers = [(pair, label, "Approved") for pair, label in LABELS.items()]
    for (item, worker), label, status in [*answers, (("1", "spam"), "neg", "Rejected")]:
        cells = (f"3HIT{item}", "Reviews", worker.upper(), status, TEXTS[item], label)
        lines.append(",".join(f'"{cell}"' for cell in cells))
    path = folder / "Batch_4321_batch_results.csv"
    path.write_text("\r\n".join(lines) + "\r\n", encoding="utf-8")
    return path


def sagemaker(folder: Path) -> Path:
    """A job's folder, as it is copied from the bucket."""
    for item in TEXTS:
        place = folder / "job" / "annotations" / "worker-response" / "iteration-1" / item
        place.mkdir(parents=True)
        answers = [
            {
                "answerContent": {"crowd-classifier": {"label": label}},
                "workerId": f"private.us-east-1.{worker}",
            }
            for worker, label in answers_of(item).items()
        ]
        write_json(place / "2020-12-28_18:59:58.json", {"answers": answers})
    return folder / "job" / "annotations" / "worker-response"


def sagemaker_requests(folder: Path) -> Path:
    entries = [
        {
            "datasetObjectId": item,
            "dataObject": {"content": text},
            "annotations": [
                {
                    "workerId": worker,
                    "annotationData": {"content": json.dumps({"classifier": {"label": label}})},
                }
                for worker, label in answers_of(item).items()
            ],
        }
        for item, text in TEXTS.items()
    ]
    return write_json(folder / "2020-12-28_19:00:02.json", entries)


# The importer, the writer, how the tool spells item 3, annotator bob and the label neg.
EXPORTS: list[tuple[str, Callable[[Path], Path], str, str, str]] = [
    ("label_studio", label_studio, "3", "bob", "neg"),
    ("label_studio", label_studio_min, "3", "2", "neg"),
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
