"""Writes the generated part of docs/howto/data_formats.md, and docs/reference/checks.csv."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from neucrowd_tf.io.checks import catalogue
from neucrowd_tf.io.column_names import SECOND
from neucrowd_tf.io.roles import WORDS
from neucrowd_tf.io.tables.writing import to_csv
from neucrowd_tf.names import ALIASES

HERE = Path(__file__).parent
ENDS = ("id", "ids", "no")  # shown as *
PAGE = HERE / "howto" / "data_formats.md"
TABLE = HERE / "reference" / "checks.csv"
MARK = re.compile(r"(<!-- aliases -->\n).*?(?=<!-- end of aliases -->)", re.DOTALL)


def wrapped(line: str) -> str:
    """Returns a list item in lines of at most 100 characters."""
    return textwrap.fill(
        line, 100, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )


def aliases() -> str:
    """Returns the names of columns by role."""
    lines = []
    for role, word in WORDS.items():
        for names, use in ((ALIASES[role], "used"), (SECOND[role], "proposed")):
            shown = {*names}
            for name in names:
                with_endings = {f"{name}{end}" for end in ENDS}
                if with_endings <= {*names}:
                    shown -= {name, *with_endings}
                    shown.add(f"{name}\\*")
            lines.append(wrapped(f"- **{word}**, {use}: {', '.join(sorted(shown))}"))
    return "\n".join(lines)


def checks() -> str:
    """Returns the catalogue of checks as CSV."""
    rows = []
    for check in catalogue().values():
        example = str(check.example).replace("\t", "<tab>")
        rows.append((check.name, check.title, check.cause, example))
    return to_csv(("check", "problem", "cause", "example"), rows)


def page(text: str) -> str:
    """Returns the page with its generated section as it is now."""
    return MARK.sub(lambda match: f"{match[1]}\n{aliases()}\n\n", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    TABLE.write_text(checks(), encoding="utf-8")
