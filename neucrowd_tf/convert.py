"""The command `neucrowd convert`: an annotation tool's export as annotations.csv."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from neucrowd_tf.commands.command_line import (
    STDOUT,
    check_outputs,
    run_command,
    table_options,
    write_outputs,
)
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.flags import flag
from neucrowd_tf.io.column_names import named_columns
from neucrowd_tf.io.importers import TOOLS
from neucrowd_tf.io.items import item_columns
from neucrowd_tf.io.labels import TABLE, read_annotations
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import read_table
from neucrowd_tf.io.tables.writing import to_csv

COLUMNS = ("task", "worker", "label")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags(TableOptions):
    """Writes the labels of an annotation tool's export, or of a table, as task,worker,label.

    What was read and left out is printed to standard error.
    """

    input: Path = flag(help="Export: a file, or SageMaker's folder.")
    output: Path = flag(STDOUT, help="CSV to write: task,worker,label. `-` prints.")
    tool: str = flag(
        "auto",
        name="from",
        choices=("auto", TABLE, *TOOLS),
        help=f"Tool that wrote the export: auto, {', '.join(TOOLS)}, or table.",
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
    options = table_options(flags)
    reading = read_annotations(flags.input, options, tool=flags.tool)
    crowd, texts = reading.annotations, dict(reading.texts)
    if not crowd.has_identities:
        raise DataError(f"{flags.input}: vote counts do not name annotators. Convert labels.")
    if flags.text_column is not None:
        if flags.tool != TABLE:
            raise UsageError("--text_column: only with --from=table.")
        table = read_table(flags.input, options)
        names = named_columns(flags.input, table.columns, [flags.text_column], "text_column")
        items = item_columns(table, options)
        texts = dict(zip(table.joined(items), table[names[0]], strict=True))
    if flags.tasks is not None and not texts:
        raise UsageError(f"--tasks: {flags.input} does not contain the texts. Leave --tasks out.")
    if flags.gold is not None and not reading.gold:
        raise UsageError(f"--gold: {flags.input} does not contain true labels. Leave --gold out.")
    rows = ([*map(str, row)] for row in crowd.to_frame().itertuples(index=False))
    written = {flags.output: to_csv(COLUMNS, rows)}
    if flags.tasks is not None:
        written[flags.tasks] = to_csv(("task", "text"), texts.items())
    if flags.gold is not None:
        written[flags.gold] = to_csv(("task", "label"), reading.gold.items())
    write_outputs(written)
    return []


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_command(Flags, convert, "neucrowd convert", argv)


if __name__ == "__main__":
    sys.exit(main())
