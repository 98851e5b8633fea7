"""Prodigy's JSONL, as `prodigy db-out` writes it.

A line is one answer: `_input_hash` is the task, `_annotator_id` (or `_session_id`) who answered,
`answer` accept, reject or ignore. Of several options `accept` holds the ids that were chosen; where
one `label` was shown, accept and reject say whether it fits.

References:
    prodi.gy/docs/review, prodi.gy/docs/api-interfaces (choice, classification).
"""

from __future__ import annotations

from neucrowd_tf.io.files.reading import read_text
from neucrowd_tf.io.importers.export import Collector
from neucrowd_tf.io.importers.heads import Head
from neucrowd_tf.io.importers.records import records

CHOICE = "accept"


def is_export(head: Head) -> bool:
    """Whether a file looks like Prodigy's."""
    return head.kind == "json" and "_input_hash" in head.first and "answer" in head.first


def read(head: Head, found: Collector) -> None:
    """Reads the lines. A question with options is called "accept", one with a label like it."""
    for place, line in records(read_text(head.path), str(head.path)):
        if "_input_hash" not in line or "answer" not in line:
            found.fail(place, "'_input_hash' and 'answer'", ", ".join(line) or "none")
        task, answer = line["_input_hash"], line["answer"]
        worker = line.get("_annotator_id") or line.get("_session_id")
        about = {"answer", "label", *(name for name in line if name.startswith("_"))}
        found.text(place, task, {name: line[name] for name in line if name not in about})
        if answer == "ignore":
            found.leave_out("ignored by the annotator")
        elif answer not in ("accept", "reject"):
            found.fail(place, "the answer accept, reject or ignore", repr(answer)[:80])
        elif isinstance(line.get("accept"), list):
            if answer == "reject":
                found.leave_out("rejected by the annotator")
            else:
                found.answer(place, task, worker, CHOICE, line["accept"])
        elif isinstance(line.get("label"), str):
            found.answer(place, task, worker, line["label"], [answer])
        else:
            found.leave_out_kind(str(line.get("_view_id", "neither 'accept' nor 'label'")))
