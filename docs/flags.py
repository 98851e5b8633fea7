"""Writes docs/reference/flags.csv: the flags of each command, from their declarations."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from neucrowd_tf.__main__ import COMMANDS, RUN
from neucrowd_tf.cli.commands import flags_of
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.declare.flag_parsing import flag_groups

PAGE = Path(__file__).parent / "reference" / "flags.csv"
COLUMNS = ("flag", "commands", "group", "meaning")


def table() -> str:
    """Returns the table as CSV: a row per flag and meaning, with the commands that have it."""
    owners: dict[tuple[str, str, str], list[str]] = {}
    for command in [RUN, *(name for name in COMMANDS if name != RUN)]:
        kind = Options if command == RUN else flags_of(command)
        for group, flags in flag_groups(kind).items():
            for name, meaning in flags.items():
                row = f"--{name}", group, re.sub(r"\s+", " ", meaning)
                owners.setdefault(row, []).append(command)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for (flag, group, meaning), commands in sorted(owners.items()):
        writer.writerow([flag, ", ".join(commands), group, meaning])
    return text.getvalue()


if __name__ == "__main__":
    PAGE.write_text(table(), encoding="utf-8")
