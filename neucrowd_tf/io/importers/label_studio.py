"""Label Studio's exports JSON and JSON_MIN.

JSON: a list of tasks, each with `data` and `annotations`, each of those with `completed_by` (a
number, or an object with an e-mail address), `was_cancelled`, `ground_truth` and `result`, a list
of parts whose `value.choices` is what was chosen and `from_name` the question. What was chosen for
a region has the region's `id` and place too. Enterprise's `last_action` says "rejected" where a
reviewer did, and `reviews` hold `accepted`. JSON_MIN: a list with an object for each annotation
that holds the fields of `data` and the answers side by side.

References:
    labelstud.io/guide/task_format, labelstud.io/guide/export; HumanSignal/label-studio-sdk,
    converter/converter.py (`convert_to_json_min`), types of annotations (`last_action`) and of
    annotation reviews (`accepted`).
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from neucrowd_tf.io.files.reading import read_text
from neucrowd_tf.io.importers.export import Collector
from neucrowd_tf.io.importers.heads import Head
from neucrowd_tf.io.importers.records import choices_of, records

ANNOTATION_LISTS = ("annotations", "completions")  # the second is what versions before 1.0 wrote
ABOUT = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement")

# What says where in an image, a text, a sound or a video a part is.
PLACE = frozenset(
    ("x", "y", "points", "vertices", "rle", "start", "end", "startOffset", "globalOffsets",
     "ranges", "sequence")
)  # fmt: skip
REMARK = re.compile("comment|note|remark|feedback|reason|explanation|justification|rationale")


def is_json(head: Head) -> bool:
    """Whether a file looks like the export JSON."""
    return head.kind == "json" and any(
        isinstance(head.first.get(name), list)
        and "data" in head.first
        and all(isinstance(item, dict) and "result" in item for item in head.first[name])
        for name in ANNOTATION_LISTS
    )


def is_min(head: Head) -> bool:
    """Whether a file looks like the export JSON_MIN."""
    return head.kind == "json" and {"annotator", "annotation_id"} <= head.first.keys()


def read_json(head: Head, found: Collector) -> None:
    """Reads the export JSON."""
    tasks = list(records(read_text(head.path), str(head.path)))
    emails = _emails([task for _, task in tasks])
    for place, task in tasks:
        name = next((name for name in ANNOTATION_LISTS if name in task), None)
        if name is None or not isinstance(task[name], list) or "id" not in task:
            found.fail(place, "a task with 'id' and 'annotations'", f"{', '.join(task) or 'none'}")
        if isinstance(task.get("data"), dict):
            found.text(place, task["id"], task["data"])
        for _ in task.get("predictions") or ():
            found.leave_out("predictions of a model")
        for annotation in task[name]:
            if not isinstance(annotation, dict) or not isinstance(annotation.get("result"), list):
                found.fail(place, "annotations with 'result'", repr(annotation)[:80])
            _annotation(place, task["id"], annotation, emails, found)


def _annotation(
    place: str, task: Any, annotation: dict[str, Any], emails: dict[Any, str], found: Collector
) -> None:
    if annotation.get("was_cancelled") or annotation.get("skipped"):
        found.leave_out("skipped by the annotator")
        return
    if _rejected(annotation):
        found.leave_out("rejected by a reviewer")
        return
    chosen: dict[str, list[Any]] = defaultdict(list)
    parts = [part for part in annotation["result"] if isinstance(part, dict)]
    regions = {part.get("id") for part in parts if _has_place(part)} - {None}
    for part in annotation["result"]:
        value = part.get("value") if isinstance(part, dict) else None
        if not isinstance(value, dict) or not isinstance(value.get("choices"), list):
            kind = part.get("type", "unknown") if isinstance(part, dict) else "unknown"
            found.leave_out_kind(str(kind))
            continue
        if _has_place(part) or part.get("id") in regions:
            found.leave_out("choices about a region")
            continue
        chosen[str(part.get("from_name", ""))].extend(value["choices"])
    if not annotation["result"]:
        found.leave_out("without a choice")
    for question, choices in chosen.items():
        if annotation.get("ground_truth"):
            found.gold(place, task, question, choices)
            found.leave_out("ground truth, kept as gold")
        else:
            found.answer(place, task, _worker(annotation, emails), question, choices)


def _has_place(part: dict[str, Any]) -> bool:
    """Whether a part is a region, or about one, rather than about the task."""
    value = part.get("value")
    return isinstance(value, dict) and not PLACE.isdisjoint(value)


def _rejected(annotation: dict[str, Any]) -> bool:
    """Whether a reviewer had the last word, and rejected."""
    reviews = annotation.get("reviews")
    last = reviews[-1] if isinstance(reviews, list) and reviews else None
    if (action := annotation.get("last_action")) is not None:
        return bool(action == "rejected")
    return isinstance(last, dict) and last.get("accepted") is False


def _emails(tasks: list[dict[str, Any]]) -> dict[Any, str]:
    """Returns the addresses of annotators by number, where any of the annotations says both: others
    may have the number alone.
    """
    given = (task.get(name) for task in tasks for name in ANNOTATION_LISTS)
    people = (
        annotation.get("completed_by")
        for annotations in given
        for annotation in (annotations if isinstance(annotations, list) else ())
        if isinstance(annotation, dict)
    )
    return {
        by["id"]: by["email"]
        for by in people
        if isinstance(by, dict) and by.get("email") and isinstance(by.get("id"), int)
    }


def _worker(annotation: dict[str, Any], emails: dict[Any, str]) -> Any:
    by = annotation.get("completed_by")
    number = by.get("id") if isinstance(by, dict) else by
    email = by.get("email") if isinstance(by, dict) else None
    return email or (emails.get(number, number) if isinstance(number, int) else number)


def read_min(head: Head, found: Collector) -> None:
    """Reads the export JSON_MIN."""
    entries = list(records(read_text(head.path), str(head.path)))
    question = found.wanted if found.wanted is not None else _question(entries, found)
    for place, entry in entries:
        if not {"id", "annotator"} <= entry.keys():
            found.fail(place, "'id' and 'annotator'", ", ".join(entry) or "none")
        fields = {key: value for key, value in entry.items() if key not in (*ABOUT, question)}
        found.text(place, entry["id"], fields)
        if entry["annotator"] in (None, {}) or question not in entry:
            found.leave_out("without a choice")
            continue
        choices = choices_of(entry[question])
        if choices is None:
            found.leave_out_kind(question)
            continue
        found.answer(place, entry["id"], entry["annotator"], question, choices)


def _question(entries: list[tuple[str, dict[str, Any]]], found: Collector) -> str:
    """Returns the field that holds the answers.

    The export does not tell them from the fields of the task. An answer differs between
    annotations of one task somewhere, and a field of the task nowhere. Where another field has the
    same value in several tasks, as answers that all agree on have, a warning says which was taken;
    a remark beside it is refused.
    """
    seen: dict[Any, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    fields: dict[str, None] = {}
    for place, entry in entries:
        for key, value in entry.items():
            if key not in ABOUT and choices_of(value) is not None:
                task = found.identity(place, "task", entry.get("id"))
                seen[task][key].add(repr(value))
                fields[key] = None
    differ = [key for key in fields if any(len(task[key]) > 1 for task in seen.values())]
    if len(differ) == 1:
        others = [key for key in fields if key != differ[0] and _repeats(key, seen.values())]
        if not others or not REMARK.search(differ[0].lower()):
            if others:
                warnings.warn(
                    f"{found.path}: the answers are taken from {differ[0]!r}, the one field in"
                    f" which annotations of a task differ; --question names another, as"
                    f" {others[0]!r}",
                    stacklevel=5,
                )
            return differ[0]
        differ += others
    shown = ", ".join(repr(name) for name in (differ or fields))
    found.fail(
        "",
        "one field of choices in which annotations of a task differ (JSON_MIN does not say which"
        " fields are answers)",
        f"{shown or 'none'}; --question names one",
    )


def _repeats(key: str, tasks: Iterable[dict[str, set[str]]]) -> bool:
    """Whether a field has several values, some of them in several tasks."""
    values = [value for task in tasks for value in task.get(key, ())]
    return 1 < len(set(values)) < len(values)
