"""The command `neucrowd convert`: an annotation tool's export as annotations.csv."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.flags import flag
from neucrowd_tf.io.command_line import (
    STDOUT,
    check_outputs,
    run_command,
    table_options,
    write_outputs,
)
from neucrowd_tf.io.files.reading import ending, read_bytes, read_text
from neucrowd_tf.io.importers import TOOLS, Export, from_table, read_export
from neucrowd_tf.io.importers.records import records, rows
from neucrowd_tf.io.labels.checks.triples import check_table
from neucrowd_tf.io.labels.table import LabelTable
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.headers import SAMPLE, check_commas, separator_of
from neucrowd_tf.io.tables.parquet import read_frame
from neucrowd_tf.io.tables.writing import to_csv

COLUMNS = ("task", "worker", "label")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags(TableOptions):
    """Writes the labels of an annotation tool's export, or of a table, as task,worker,label.

    The numbers of labels that were read and left out are printed to standard error.
    """

    input: Path = flag(help="Export: a file, or SageMaker's folder.")
    output: Path = flag(STDOUT, help="CSV to write: task,worker,label. `-` prints.")
    tool: str = flag(
        "auto", name="from", help=f"Tool that wrote the export: auto, {', '.join(TOOLS)}, or table."
    )
    tasks: Path | None = flag(
        None, help="CSV to write: task,text, if the export has the texts that were labelled."
    )
    gold: Path | None = flag(None, help="CSV to write: task,label, if the export has true labels.")
    text_column: str | None = flag(
        None, help="Column of the labelled texts (only with --from=table)."
    )


def convert(flags: Flags) -> list[str]:
    """Reads the export and writes the files that the flags name; returns notes.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    check_outputs(
        {"--output": flags.output, "--tasks": flags.tasks, "--gold": flags.gold},
        {"--input": flags.input},
    )
    layout = TableFormat.from_options(table_options(flags))
    if flags.tool == "table":
        export = _table(flags, layout)
    else:
        export = read_export(
            flags.input,
            flags.tool,
            question=flags.question,
            first=flags.first,
            duplicates=flags.duplicates,
            layout=layout,
        )
    if flags.tasks is not None and not export.texts:
        raise UsageError(f"--tasks: {flags.input} does not contain the texts. Leave --tasks out.")
    if flags.gold is not None and not export.gold:
        raise UsageError(f"--gold: {flags.input} does not contain true labels. Leave --gold out.")
    triples = zip(export.tasks, export.workers, export.labels, strict=True)
    written = {flags.output: to_csv(COLUMNS, triples)}
    if flags.tasks is not None:
        written[flags.tasks] = to_csv(("task", "text"), export.texts.items())
    if flags.gold is not None:
        written[flags.gold] = to_csv(("task", "label"), export.gold.items())
    write_outputs(written)
    name = TOOLS[export.tool].title if export.tool in TOOLS else "table"
    doubts = [f"warning: {one_line(DataError(doubt))}" for doubt in _doubts(export)]
    return [*doubts, f"{name}: {export.summary()}"]


def _table(flags: Flags, layout: TableFormat) -> Export:
    """Reads a table by its ending: Parquet, JSON (Lines), tabs or commas."""
    path = flags.input
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    if ending(path) in (".parquet", ".pq"):
        frame = read_frame(path)
    elif ending(path) in (".jsonl", ".ndjson", ".json"):
        objects = [record for _, record in records(read_text(path), str(path))]
        frame = pd.DataFrame(objects, dtype=object)
    else:
        tabs = ending(path) in (".tsv", ".tab")
        separator = layout.separator or ("\t" if tabs else separator_of(read_bytes(path)[:SAMPLE]))
        frame = pd.DataFrame([row for _, row in rows(path, separator)]).replace("", None)
        check_commas(path, list(frame.columns), separator)
    columns = {name: getattr(layout, name) or name for name in COLUMNS}
    wanted = set(columns.values())
    if len(wanted) == len(columns) and wanted <= set(frame.columns):
        layout.require(path, list(frame.columns), *COLUMNS)
    return from_table(
        frame, **columns, text=flags.text_column, source=path, duplicates=flags.duplicates
    )


def _doubts(export: Export) -> list[str]:
    """Returns the errors and warnings of reading the written labels without flags."""
    triples = (export.tasks, export.workers, export.labels)
    table = LabelTable(export.path, triples, line=lambda i: export.places[i])
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            check_table(table, PLAIN)
        except DataError as error:
            return [str(error)]
    return [str(item.message) for item in raised]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_command(Flags, convert, "neucrowd convert", argv)


if __name__ == "__main__":
    sys.exit(main())
