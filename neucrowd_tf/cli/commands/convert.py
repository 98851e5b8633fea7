"""The command `neucrowd convert`: an annotation tool's export as annotations.csv."""

from __future__ import annotations

from neucrowd_tf.cli.command_line import check_outputs, write_outputs
from neucrowd_tf.cli.commands.convert_flags import Convert
from neucrowd_tf.cli.commands.reading import read_labels
from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.tables.writing import to_csv

COLUMNS = ("task", "annotator", "label")


def run(flags: Convert) -> list[str]:
    """Reads the export and writes the files that the flags name; returns notes.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    outputs = {"--output": flags.output, "--tasks": flags.tasks, "--gold": flags.gold}
    check_outputs(outputs, {"--input": flags.input})
    reading, _ = read_labels(flags.input, flags, identities="Convert labels.", infers=False)
    texts = reading.texts
    if flags.tasks is not None and not texts:
        raise UsageError(f"--tasks: {flags.input} does not contain the texts. Leave --tasks out.")
    if flags.gold is not None and not reading.gold:
        raise UsageError(f"--gold: {flags.input} does not contain true labels. Leave --gold out.")
    rows = ([*map(str, row)] for row in reading.annotations.to_frame().itertuples(index=False))
    written = {flags.output: to_csv(COLUMNS, rows)}
    if flags.tasks is not None:
        written[flags.tasks] = to_csv(("task", "text"), texts.items())
    if flags.gold is not None:
        written[flags.gold] = to_csv(("task", "true_label"), reading.gold.items())
    write_outputs(written)
    return []
