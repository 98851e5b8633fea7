"""Writes docs/reference/flags.csv: the flags of each command, from their declarations."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from neucrowd_tf.__main__ import COMMANDS, RUN
from neucrowd_tf.cli.commands import flags_of
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.declare.flag_parsing import flag_groups
from neucrowd_tf.io.tables.writing import to_csv

PAGE = Path(__file__).parent / "reference" / "flags.csv"
COLUMNS = ("flag", "commands", "group", "meaning")


def table() -> str:
    """Returns the table as CSV: a row per flag and meaning, with the commands that have it."""
    owners = defaultdict(list)
    for command in dict.fromkeys([RUN, *COMMANDS]):
        declarations = Options if command == RUN else flags_of(command)
        for group, flags in flag_groups(declarations).items():
            for name, meaning in flags.items():
                owners[f"--{name}", group, re.sub(r"\s+", " ", meaning)].append(command)
    rows = []
    for (flag, group, meaning), commands in sorted(owners.items()):
        rows.append((flag, ", ".join(commands), group, meaning))
    return to_csv(COLUMNS, rows)


if __name__ == "__main__":
    PAGE.write_text(table(), encoding="utf-8")
