"""The command `neucrowd merge`: adds new labels to a table of labels."""

from __future__ import annotations

from pathlib import Path

from neucrowd_tf.cli.command_line import check_outputs, write_outputs
from neucrowd_tf.cli.commands.merge_flags import Merge
from neucrowd_tf.cli.commands.reading import read_labels
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.items import options_beside
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
    table = _triples(flags.annotations, flags)
    size = len(table)
    before = _names(table)
    beside = ending(flags.labels) in TABLES
    new = _triples(flags.labels, options_beside(flags.labels, flags) if beside else flags)
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


def _triples(path: Path, options: TableOptions) -> dict[tuple[str, str], str]:
    """Returns the label of each pair of item and annotator."""
    reading, _ = read_labels(path, options, identities="Merge labels of annotators.", infers=False)
    items, annotators, labels = reading.annotations.to_frame().astype(str).to_numpy().T.tolist()
    return dict(zip(zip(items, annotators, strict=True), labels, strict=True))
