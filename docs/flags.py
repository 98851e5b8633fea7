"""Writes docs/reference/flags.md: each command's flags, as `neucrowd COMMAND --help` shows them."""

from __future__ import annotations

import os
from pathlib import Path

from neucrowd_tf.__main__ import COMMANDS, RUN
from neucrowd_tf.commands.flags import FLAGS
from neucrowd_tf.flags import help_text
from neucrowd_tf.harness.flags import Options

PAGE = Path(__file__).parent / "reference" / "flags.md"
FLAGFILE = "\n  --flagfile:"
HEAD = """# Flags of every command

This reference lists the flags of each command, for anyone who writes a command line. It is made
from the declarations (`python docs/flags.py`); `neucrowd COMMAND --help` prints the same text.
A group of flags is listed with the first command that has it.

"""


def once(text: str, command: str, shown: dict[str, str]) -> str:
    """Returns a help text with a reference in place of groups of flags that are `shown` already."""
    text, mark, last = text.partition(FLAGFILE)
    groups = []
    for group in text.rstrip("\n").split("\n\n"):
        title, colon, flags = group.partition(":\n")
        if colon and title != "Flags" and shown.setdefault(flags, command) != command:
            group = f"{title}: the flags of neucrowd {shown[flags]}."
        groups.append(group)
    return "\n\n".join(groups) + ("\n\n" + mark.lstrip("\n") + last if mark else "")


def page() -> str:
    """Returns the page."""
    os.environ["COLUMNS"] = "96"  # the width of absl's help
    names = [name for name in COMMANDS if name != RUN]
    parts = [HEAD, *(f"- [neucrowd {name}](#neucrowd-{name})\n" for name in [RUN, *names])]
    kinds = {RUN: Options} | {name: FLAGS[name] for name in names}
    shown: dict[str, str] = {}
    for name, kind in kinds.items():
        text = once(help_text(kind, f"neucrowd {name}"), name, shown)
        parts.append(f"\n## neucrowd {name}\n\n```text\n{text}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
