"""From an annotation tool's export to annotations.csv.

    python -m neucrowd_tf.convert --input=export.json --output=annotations.csv [--from=TOOL|auto]
        [--tasks=tasks.csv] [--gold=gold.csv] [--question=NAME] [--first]

What was read, and what was left out and why, is counted on stderr.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.io.command_line import STDOUT, Parser, check_outputs, run, write_outputs
from neucrowd_tf.io.files.reading import ending, read_bytes, read_text
from neucrowd_tf.io.importers import TOOLS, Export, from_table, read_export
from neucrowd_tf.io.importers.heads import read_head
from neucrowd_tf.io.importers.records import records, rows
from neucrowd_tf.io.labels.checks.triples import check_table
from neucrowd_tf.io.labels.table import LabelTable
from neucrowd_tf.io.tables.flags import add_option
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.headers import SAMPLE, check_commas, separator_of
from neucrowd_tf.io.tables.parquet import read_frame
from neucrowd_tf.io.tables.writing import to_csv

COLUMNS = ("task", "worker", "label")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m neucrowd_tf.convert",
        description="Writes the labels of an annotation tool's export as task,worker,label.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--input", type=Path, required=True, help="the export: a file, or SageMaker's folder")
    add("--output", type=Path, default=STDOUT, help="CSV task,worker,label (default: stdout)")
    add(
        "--from",
        dest="tool",
        default="auto",
        help=f"auto, table (name the columns), {', '.join(TOOLS)}",
    )
    add("--tasks", type=Path, help="CSV task,text to write: what was labelled, where it is known")
    add("--gold", type=Path, help="CSV task,label to write: the tool's own right answers")
    for name in ("question", "first"):
        add_option(add, name)
    add(
        "--duplicates",
        choices=("error", "first", "last"),
        default="error",
        help="which answer, where a worker answered a task again and differently",
    )
    for name in COLUMNS:
        add(f"--{name}_column", help=f"of a table, or of a tool's CSV: the {name}'s column")
    add("--text_column", help="with --from=table: the column of what was labelled")
    add("--separator", help="of a table or a tool's CSV: what separates its columns")
    return parser


def _table(arguments: argparse.Namespace) -> Export:
    """Reads a table of the user's own, by its ending: Parquet, JSON (Lines), tabs or commas."""
    path: Path = arguments.input
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    for name in ("question", "first"):
        if getattr(arguments, name):
            raise UsageError(
                f"--{name}: expected an annotation tool's export with it, received --from=table"
            )
    if ending(path) in (".parquet", ".pq"):
        frame = read_frame(path)
    elif ending(path) in (".jsonl", ".ndjson", ".json"):
        found = [record for _, record in records(read_text(path), str(path))]
        frame = pd.DataFrame(found, dtype=object)
    else:
        named = TableFormat.of(separator=arguments.separator).separator
        tabs = ending(path) in (".tsv", ".tab")
        separator = named or ("\t" if tabs else separator_of(read_bytes(path)[:SAMPLE]))
        frame = pd.DataFrame([row for _, row in rows(path, separator)]).replace("", None)
        check_commas(path, list(frame.columns), separator)
    given = {name: getattr(arguments, f"{name}_column") for name in COLUMNS}
    columns = {name: column or name for name, column in given.items()}
    wanted = set(columns.values())
    if len(wanted) == len(columns) and wanted <= set(frame.columns):  # `from_table` says it else
        TableFormat(**given).require(path, list(frame.columns), *COLUMNS)
    return from_table(
        frame, **columns, text=arguments.text_column, source=path, duplicates=arguments.duplicates
    )


def _export(arguments: argparse.Namespace) -> Export:
    """Reads a tool's export.

    Raises:
        UsageError: columns named of what has none.
    """
    path: Path = arguments.input
    of_tables = ["text_column"]
    if read_head(path, arguments.separator).kind != "table":
        of_tables += ["separator", *(f"{name}_column" for name in COLUMNS)]
    for name in of_tables:
        if getattr(arguments, name) is not None:
            raise UsageError(f"--{name}: expected --from=table with it, received {path}")
    layout = TableFormat.of(
        separator=arguments.separator,
        task_column=arguments.task_column,
        worker_column=arguments.worker_column,
        label_column=arguments.label_column,
    )
    return read_export(
        path,
        arguments.tool,
        question=arguments.question,
        first=arguments.first,
        duplicates=arguments.duplicates,
        layout=layout,
    )


def _doubts(export: Export) -> list[str]:
    """Returns what reading the labels again, with no further flags, would refuse or warn of."""
    triples = (export.tasks, export.workers, export.labels)
    table = LabelTable(export.path, triples, line=lambda i: export.places[i])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            check_table(table, PLAIN)
        except DataError as error:
            return [str(error)]
    return [str(item.message) for item in told]


def convert(arguments: argparse.Namespace) -> Export:
    """Reads the export and writes the files that the arguments name.

    Raises:
        UsageError, DataError: what cannot be used, in a line.
    """
    check_outputs(arguments, ("output", "tasks", "gold"), ("input",))
    export = _table(arguments) if arguments.tool == "table" else _export(arguments)
    if arguments.tasks is not None and not export.texts:
        raise UsageError("--tasks: expected an export that says what was labelled, received none")
    if arguments.gold is not None and not export.gold:
        raise UsageError("--gold: expected an export with gold labels, received none")
    rows = zip(export.tasks, export.workers, export.labels, strict=True)
    written = {arguments.output: to_csv(COLUMNS, rows)}
    if arguments.tasks is not None:
        written[arguments.tasks] = to_csv(("task", "text"), export.texts.items())
    if arguments.gold is not None:
        written[arguments.gold] = to_csv(("task", "label"), export.gold.items())
    write_outputs(written)
    return export


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one line on stderr."""
    return run(lambda: _notes(convert(_parser().parse_args(argv))))


def _notes(export: Export) -> list[str]:
    """Returns what to say of an export that was converted."""
    name = TOOLS[export.tool].title if export.tool in TOOLS else "table"
    doubts = (
        f"warning: {one_line(DataError(doubt))}"
        + " (a flag of the commands that read the labels)" * (" --" in doubt)
        for doubt in _doubts(export)
    )
    return [*doubts, f"{name}: {export.summary()}"]


if __name__ == "__main__":
    sys.exit(main())
