"""The command `neucrowd merge`: adds new labels to a table of labels."""

from __future__ import annotations

import shlex
from pathlib import Path

from neucrowd_tf.cli.command_line import check_outputs, write_outputs
from neucrowd_tf.cli.commands.merge_flags import Merge
from neucrowd_tf.cli.commands.reading import read_labels
from neucrowd_tf.declare.types import Texts
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.items import options_beside
from neucrowd_tf.io.labels import Reading, read_annotator_columns
from neucrowd_tf.io.roles import as_list, command_line
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.tables.writing import to_csv

HEADER = ("task", "annotator", "label")
TABLES = (".csv", ".tsv", ".txt", ".tab", ".parquet", ".pq")


def run(flags: Merge) -> list[str]:
    """Writes the labels of both files; returns notes for standard error.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    inputs = {"--annotations": flags.annotations, "--labels": flags.labels}
    check_outputs({"--output": flags.output}, inputs)
    table = _triples(_read(flags.annotations, flags))
    size = len(table)
    before = _names(table)
    reading = _new_labels(flags)
    new = _triples(reading)
    if not flags.annotator_columns and reading.further and table.items() >= new.items():
        raise DataError(_question(flags, reading.further))
    repeated = len(new.keys() & table.keys())
    changed = repeated - len(new.items() & table.items())
    table.update(new)
    # As the files have them: the table is read again, with further labels.
    rows = ([*pair, label] for pair, label in table.items())
    write_outputs({flags.output: to_csv(HEADER, rows)})
    notes = [
        f"{size:,} labels and {len(new):,} new ones: {len(new) - repeated:,} added,"
        f" {changed:,} replaced, {repeated - changed:,} equal to earlier ones;"
        f" {len(table):,} labels in all."
    ]
    for title, every in _names(new).items():
        if names := every - before[title]:
            first = ", ".join(map(repr, sorted(names)[:5]))
            notes.append(f"{len(names):,} {title} are new: {first}. Check their spelling.")
    return notes


def _names(table: dict[tuple[str, str], str]) -> dict[str, set[str]]:
    """Returns the items, annotators and classes of a table."""
    items, annotators = map(set, zip(*table, strict=True))
    return {"items": items, "annotators": annotators, "classes": set(table.values())}


def _read(path: Path, options: TableOptions) -> Reading:
    """Returns the labels of a file that names annotators."""
    reading, _ = read_labels(path, options, identities="Merge labels of annotators.", infers=False)
    return reading


def _new_labels(flags: Merge) -> Reading:
    """Returns the labels to add.

    Raises:
        UsageError: no flag names them.
    """
    if flags.annotator_columns:
        path = flags.labels or flags.annotations
        return read_annotator_columns(path, flags, flags.annotator_columns)
    if flags.labels is None:
        raise UsageError(
            "--labels: required. Name the file of new labels, or columns with --annotator_columns."
        )
    beside = ending(flags.labels) in TABLES
    return _read(flags.labels, options_beside(flags.labels, flags) if beside else flags)


def _question(flags: Merge, columns: Texts) -> str:
    """Returns what to do if all labels are there already, and columns may have others."""
    named = as_list(columns)
    command = command_line(flags.annotations, [f"--annotator_columns={shlex.quote(named)}"])
    return (
        f"{flags.labels}: no label is new. Is {' or '.join(columns)} an annotator? To add"
        f" the labels of this column:\n  {command}"
    )


def _triples(reading: Reading) -> dict[tuple[str, str], str]:
    """Returns the label of each pair of item and annotator."""
    items, annotators, labels = reading.annotations.to_frame().astype(str).to_numpy().T.tolist()
    return dict(zip(zip(items, annotators, strict=True), labels, strict=True))
