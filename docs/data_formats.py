"""Writes docs/data_formats.md from the options, aliases and checks."""

from __future__ import annotations

from pathlib import Path

from neucrowd_tf.io.checks import catalogue
from neucrowd_tf.io.column_names import SECOND
from neucrowd_tf.io.schema import FLAGS
from neucrowd_tf.names import ALIASES

PAGE = Path(__file__).with_suffix(".md")
ROLES = {"task": "item", "worker": "annotator", "label": "label"}


def aliases() -> str:
    """Returns the names of columns by role."""
    lines = []
    for role, word in ROLES.items():
        for names, kind in ((ALIASES[role], "used"), (SECOND[role], "proposed")):
            lines.append(f"- **{word}**, {kind}: {', '.join(sorted(names))}")
    return "\n".join(lines)


def flags() -> str:
    """Returns the flags of reading labels."""
    return "\n".join(f"- `--{name}`: {text}" for name, text in FLAGS.items())


def checks() -> str:
    """Returns the catalogue: an entry per check."""
    return "\n\n".join(
        f"**{check.name}.** {check.title} *Cause:* {check.cause} *Fix:* {check.advice}"
        f" *Example:* `{check.example!s}`".replace("\t", "<tab>")
        for check in catalogue().values()
    )


def page(text: str) -> str:
    """Returns the page with its generated sections as they are now."""
    for name, section in (("aliases", aliases), ("flags", flags), ("checks", checks)):
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        text = f"{before}{start}\n{section()}\n\n{end}{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
