"""Figure Eight's (CrowdFlower's, Appen's) full report as CSV, and its JSON lines.

CSV: a row per judgment, with `_unit_id`, `_worker_id`, other columns that begin with `_`, the
answers and the unit's columns. JSON: a line per unit, with `results.judgments[]`, each with
`worker_id` and the answers in `data`.

References:
    Appen help centre, "Guide to: Reports page" (full report, JSON), as published files have it.
"""

from __future__ import annotations

from neucrowd_tf.declare.picking import starting_with
from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers.answers import Answers
from neucrowd_tf.io.importers.tables import of_columns, read_table
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.names import without

NAME = "Figure Eight"
UNIT = "_unit_id"
WORKER = "_worker_id"


def matches(head: Head) -> bool:
    """Whether a file looks like one of the two reports."""
    return UNIT in head.columns or "judgments" in _results(head.first or {})


def _results(record: Fields) -> Fields:
    results = record.get("results")
    if isinstance(results, dict):
        return results
    return {}


def read(head: Head, options: TableOptions) -> LabelColumns:
    """Reads the judgments; those of test questions count, and a line says how many they are."""
    if UNIT in head.columns:
        return _read_csv(head, options)
    return Answers(head, NAME, options, item="id", annotator="worker_id").read(head.records(), _add)


def _add(answers: Answers, place: str, unit: Fields) -> None:
    if isinstance(unit.get("data"), dict):
        answers.text(unit.get("id"), unit["data"])
    for judgment in _results(unit).get("judgments") or ():
        answers.add_form(place, unit.get("id"), judgment.get("worker_id"), judgment["data"])


def _read_csv(head: Head, options: TableOptions) -> LabelColumns:
    if WORKER not in head.columns and not options.worker_column:
        answers = of_columns(head, NAME, options, [UNIT], [WORKER])
        answers.left_out["units without annotators (download the full report)"] += 1
        raise answers.nothing()
    table = head.table()
    notes = []
    for name, kind in (("_golden", "test questions"), ("_tainted", "untrusted annotators")):
        cells = map(str.lower, table[name] if name in table.columns else [])
        if count := list(cells).count("true"):
            notes.append(f"{count:,} labels are of {kind} ({name}).")
    columns = without(table.columns, starting_with(table.columns, ("_", "orig_")))
    return read_table(
        head, options, NAME, item=UNIT, annotator=WORKER, answers=columns, notes=notes
    )
