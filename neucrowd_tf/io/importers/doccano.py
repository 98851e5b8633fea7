"""doccano's exports of a classification project in which each annotator works alone.

Now: a zip of `<username>.jsonl` (or .json), a line an example with `id` and `label`, a list. Before
version 1.3: one JSONL with `annotations`, each with `label` and `user` (numbers).

References:
    doccano/doccano, backend/data_export/celery_tasks.py, pipeline/formatters.py; issues 113, 749
    and pull request 889 for the old form.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath
from typing import Any

from neucrowd_tf.io.files.reading import read_text
from neucrowd_tf.io.importers.archives import members
from neucrowd_tf.io.importers.export import Collector
from neucrowd_tf.io.importers.heads import Head
from neucrowd_tf.io.importers.records import records

ENDINGS = (".jsonl", ".json")
SHARED = "all"  # what a project in which annotators share their annotations is exported as


def is_export(head: Head) -> bool:
    """Whether a file looks like doccano's."""
    if head.kind in ("zip", "folder"):
        names = [PurePosixPath(name) for name in head.members]
        return any(name.suffix == ".jsonl" and len(name.parts) == 1 for name in names)
    listed = head.first.get("annotations")
    return (
        head.kind == "json"
        and "data" not in head.first
        and isinstance(listed, list)
        and all(isinstance(item, dict) and {"label", "user"} <= item.keys() for item in listed)
    )


def read(head: Head, found: Collector) -> None:
    """Reads either form."""
    if head.kind in ("zip", "folder"):
        for name, text in members(head.path, ENDINGS):
            _read_of_one(name, text, found)
        return
    for place, example in records(read_text(head.path), str(head.path)):
        if "id" not in example or not isinstance(example.get("annotations"), list):
            found.fail(place, "'id' and 'annotations'", ", ".join(example) or "none")
        found.text(place, example["id"], example)
        chosen: dict[Any, list[Any]] = defaultdict(list)
        for part in example["annotations"]:
            if not isinstance(part, dict) or not {"label", "user"} <= part.keys():
                found.fail(place, "annotations with 'label' and 'user'", repr(part)[:80])
            if "start_offset" in part:
                found.leave_out_kind("span")
                continue
            label = part.get("label_name", part["label"])
            chosen[part.get("user_name", part["user"])].append(label)
        for user, labels in chosen.items():
            found.answer(place, example["id"], user, "label", labels)


def _read_of_one(name: PurePosixPath, text: str, found: Collector) -> None:
    if name.stem == SHARED:
        found.fail(
            str(name),
            "a file an annotator, named after them",
            "one of all (doccano shares annotations in this project and does not say whose they"
            " are)",
        )
    for place, example in records(text, f"{found.path}: {name}"):
        where = f"{name}: {place}"
        if "id" not in example or not isinstance(example.get("label"), list):
            found.fail(where, "'id' and a list 'label'", ", ".join(example) or "none")
        found.text(where, example["id"], example)
        if any(isinstance(label, list) for label in example["label"]):
            found.leave_out_kind("span")
            continue
        found.answer(where, example["id"], name.stem, "label", example["label"])
