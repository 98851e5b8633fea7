"""The command `neucrowd merge`: adds new labels to a table of labels."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Annotated

from neucrowd_tf.cli.command_line import STDOUT, check_outputs, run_command, write_outputs
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.items import options_beside
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import ANNOTATIONS, TableOptions
from neucrowd_tf.io.tables.writing import text_cell, to_csv

HEADER = ("task", "annotator", "label")
TABLES = (".csv", ".tsv", ".txt", ".tab", ".parquet", ".pq")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags(TableOptions):
    """Adds new labels, such as the answers to relabel.csv, to a table of labels.

    If an annotator has labelled an item before, the new label replaces the earlier one. Flags that
    say how a file is read apply to both files; a named column, to the file that has it.
    """

    annotations: Annotated[Path, ANNOTATIONS]
    labels: Annotated[
        Path,
        "File of new labels: task,annotator,label, or another layout that --annotations accepts."
        " Rows without a label are ignored.",
    ]
    output: Annotated[Path, f"CSV to write: {','.join(HEADER)}. `-` prints."] = STDOUT


def merge(flags: Flags) -> list[str]:
    """Writes the labels of both files; returns notes for standard error.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    inputs = {"--annotations": flags.annotations, "--labels": flags.labels}
    check_outputs({"--output": flags.output}, inputs)
    table = _triples(flags.annotations, flags)
    size, items = len(table), {item for item, _ in table}
    classes, annotators = set(table.values()), {annotator for _, annotator in table}
    beside = ending(flags.labels) in TABLES
    new = _triples(flags.labels, options_beside(flags.labels, flags) if beside else flags)
    changed = sum(table.get(pair, label) != label for pair, label in new.items())
    repeated = sum(pair in table for pair in new)
    table.update(new)
    rows = ([text_cell(cell) for cell in (*pair, label)] for pair, label in table.items())
    write_outputs({flags.output: to_csv(HEADER, rows)})
    notes = [
        f"{size:,} labels and {len(new):,} new ones: {len(new) - repeated:,} added,"
        f" {changed:,} replaced, {repeated - changed:,} equal to earlier ones;"
        f" {len(table):,} labels in all."
    ]
    fresh = {
        "items": {item for item, _ in new} - items,
        "annotators": {annotator for _, annotator in new} - annotators,
        "classes": set(new.values()) - classes,
    }
    for title, names in fresh.items():
        if names:
            first = ", ".join(map(repr, sorted(names)[:5]))
            notes.append(f"{len(names):,} {title} are new: {first}. Check their spelling.")
    return notes


def _triples(path: Path, options: TableOptions) -> dict[tuple[str, str], str]:
    """Returns the label of each pair of item and annotator."""
    crowd = read_annotations(path, options).annotations
    if not crowd.has_identities:
        raise DataError(f"{path}: vote counts do not name annotators. Merge labels of annotators.")
    rows = (map(str, row) for row in crowd.to_frame().itertuples(index=False))
    return {(item, annotator): label for item, annotator, label in rows}


main = functools.partial(run_command, Flags, merge, "neucrowd merge")
