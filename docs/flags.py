"""Writes docs/reference/flags.md: each command's flags, as `neucrowd COMMAND --help` shows them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from neucrowd_tf.__main__ import COMMANDS, RUN
from neucrowd_tf.cli.commands import flags_of
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.declare.flag_parsing import help_text

PAGE = Path(__file__).parent / "reference" / "flags.md"
FLAGFILE = "\n  --flagfile:"
HEAD = """# Flags of every command

This reference lists the flags of each command, for anyone who writes a command line. It is made
from the declarations (`python docs/flags.py`); `neucrowd COMMAND --help` prints the same text.
A flag of a group is explained with the first command that has it. Every command also has
`--flagfile=FILE`, a file of further flags, one per line.

"""


def once(text: str, command: str, shown: dict[str, str]) -> str:
    """Returns a help text without --flagfile, and with references to flags `shown` already."""
    groups = []
    for group in text.partition(FLAGFILE)[0].rstrip("\n").split("\n\n"):
        title, colon, flags = group.partition(":\n")
        if colon and title != "Flags":
            entries = re.split(r"\n(?=  --)", flags)
            new = [entry for entry in entries if shown.setdefault(entry, command) == command]
            old = [entry.split(":")[0].strip() for entry in entries if entry not in new]
            where = f" {', '.join(old)} as in" if len(old) < 5 else " as in"
            group = "\n".join([f"{title}:{f'{where} neucrowd {RUN}.' if old else ''}", *new])
        groups.append(group)
    return "\n\n".join(groups)


def page() -> str:
    """Returns the page."""
    os.environ["COLUMNS"] = "96"  # the width of absl's help
    names = [name for name in COMMANDS if name != RUN]
    parts = [HEAD, *(f"- [neucrowd {name}](#neucrowd-{name})\n" for name in [RUN, *names])]
    shown: dict[str, str] = {}
    for name in [RUN, *names]:
        kind = Options if name == RUN else flags_of(name)
        text = once(help_text(kind, f"neucrowd {name}"), name, shown)
        parts.append(f"\n## neucrowd {name}\n\n```text\n{text}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
