"""The command `neucrowd convert`: an annotation tool's export as annotations.csv."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Annotated

from neucrowd_tf.cli.command_line import STDOUT, check_outputs, run_command, write_outputs
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.tables.writing import to_csv

COLUMNS = ("task", "annotator", "label")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags(TableOptions):
    """Writes the labels of an annotation tool's export, or of a table, as task,annotator,label.

    What was read and left out is printed to standard error.
    """

    input: Annotated[Path, "Export or table: a file, or SageMaker's folder."]
    output: Annotated[Path, "CSV to write: task,annotator,label. `-` prints."] = STDOUT
    tasks: Annotated[
        Path | None, "CSV to write: task,text, if the export has the texts that were labelled."
    ] = None
    gold: Annotated[
        Path | None, "CSV to write: task,true_label, if the export has true labels."
    ] = None


def convert(flags: Flags) -> list[str]:
    """Reads the export and writes the files that the flags name; returns notes.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    outputs = {"--output": flags.output, "--tasks": flags.tasks, "--gold": flags.gold}
    check_outputs(outputs, {"--input": flags.input})
    reading = read_annotations(flags.input, flags)
    crowd, texts = reading.annotations, dict(reading.texts)
    if not crowd.has_identities:
        raise DataError(f"{flags.input}: vote counts do not name annotators. Convert labels.")
    if flags.tasks is not None and not texts:
        raise UsageError(f"--tasks: {flags.input} does not contain the texts. Leave --tasks out.")
    if flags.gold is not None and not reading.gold:
        raise UsageError(f"--gold: {flags.input} does not contain true labels. Leave --gold out.")
    rows = ([*map(str, row)] for row in crowd.to_frame().itertuples(index=False))
    written = {flags.output: to_csv(COLUMNS, rows)}
    if flags.tasks is not None:
        written[flags.tasks] = to_csv(("task", "text"), texts.items())
    if flags.gold is not None:
        written[flags.gold] = to_csv(("task", "true_label"), reading.gold.items())
    write_outputs(written)
    return []


main = functools.partial(run_command, Flags, convert, "neucrowd convert")
