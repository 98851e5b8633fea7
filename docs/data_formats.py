"""Writes the generated parts of docs/howto/data_formats.md and docs/reference/checks.md."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from neucrowd_tf.io.checks import catalogue
from neucrowd_tf.io.column_names import SECOND
from neucrowd_tf.io.roles import WORDS
from neucrowd_tf.names import ALIASES

HERE = Path(__file__).parent
ENDS = ("id", "ids", "no")  # shown as *
PAGES = (HERE / "howto" / "data_formats.md", HERE / "reference" / "checks.md")
MARK = re.compile(r"(<!-- (aliases|checks) -->\n).*?(?=<!-- end of \2 -->)", re.DOTALL)


def wrapped(line: str) -> str:
    """Returns a list item in lines of at most 100 characters."""
    return textwrap.fill(
        line, 100, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )


def aliases() -> str:
    """Returns the names of columns by role."""
    lines = []
    for role, word in WORDS.items():
        for names, kind in ((ALIASES[role], "used"), (SECOND[role], "proposed")):
            ended = {name for name in names if {f"{name}{end}" for end in ENDS} <= {*names}}
            left = {*names} - {f"{name}{end}" for name in ended for end in ENDS} - ended
            shown = sorted([*left, *(f"{name}\\*" for name in ended)])
            lines.append(wrapped(f"- **{word}**, {kind}: {', '.join(shown)}"))
    return "\n".join(lines)


def checks() -> str:
    """Returns the catalogue: a section per check."""
    parts = []
    for check in catalogue().values():
        items = f"- Cause: {check.cause}", f"- Example: `{check.example!s}`.".replace("\t", "<tab>")
        parts.append("\n".join([f"## {check.name}\n", f"{check.title}\n", *map(wrapped, items)]))
    return "\n\n".join(parts)


SECTIONS = {"aliases": aliases, "checks": checks}


def page(text: str) -> str:
    """Returns a page with its generated sections as they are now."""
    return MARK.sub(lambda match: f"{match[1]}\n{SECTIONS[match[2]]()}\n\n", text)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
