"""Writes docs/reference/parameters.md from what the classes declare."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent / "reference" / "parameters.md"
MARK = re.compile(r"(<!-- parameters of ([\w.]+):(\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def names_of(kind: Any) -> list[str]:
    """Returns the arguments of a constructor in its order."""
    return [name for name in inspect.signature(kind.__init__).parameters if name != "self"]


def described(kind: Any) -> list[tuple[list[str], str]]:
    """Returns the names and the text of each entry.

    Entries are declared with `neucrowd_tf.arguments`, or stand under "Args:" in the class's
    docstring.
    """
    if "__dataclass_fields__" in vars(kind):
        from neucrowd_tf.arguments import declared

        return [
            ([field.name], field.metadata["meaning"])
            for field in declared(kind)
            if field.metadata.get("meaning")
        ]
    match = re.search(r"Args:\n(.*?)(?:\n\n|\Z)", inspect.getdoc(kind) or "", re.DOTALL)
    entries: list[tuple[list[str], str]] = []
    for line in (match[1] if match else "").split("\n"):
        start = re.match(r"^    ([A-Za-z_][\w, ]*): (.*)$", line)
        if start:
            entries.append(([name.strip() for name in start[1].split(",")], start[2]))
        elif entries:
            names, text = entries[-1]
            entries[-1] = names, f"{text} {line.strip()}"
    return entries


def shown(value: Any) -> str:
    """Returns a default value, a long sequence by its ends."""
    if isinstance(value, tuple) and len(value) > 6:
        return f"{value[0]} ... {value[-1]}"
    return repr(value)


def entries(kind: Any, above: set[tuple[str, str]]) -> str:
    """Returns the parameters of a constructor as a list in Markdown.

    Those without an entry stand in the last line, and so do those that are `above`, which this
    list's are added to.
    """
    parameters = {
        name: inspect.signature(kind.__init__).parameters[name] for name in names_of(kind)
    }
    lines, left = [], dict(parameters)
    for names, text in described(kind):
        entry = ", ".join(f"{name}={parameters[name].default!r}" for name in names), text
        if entry in above:
            continue
        above.add(entry)
        shown_names = ", ".join(f"`{name}={shown(parameters[name].default)}`" for name in names)
        lines += textwrap.wrap(
            f"- {shown_names}: {text}", 100, subsequent_indent="  ", break_on_hyphens=False
        )
        for name in names:
            left.pop(name, None)
    if left:
        as_above = f"- As above: {', '.join(f'`{name}`' for name in left)}."
        lines += textwrap.wrap(as_above, 100, subsequent_indent="  ")
    return "\n".join(["", *lines, "", ""])


def page(text: str) -> str:
    """Returns the page with its lists written again; a section has its own "as above"."""
    above: set[tuple[str, str]] = set()

    def fill(match: re.Match[str]) -> str:
        kind = getattr(importlib.import_module(match[2]), match[3])
        return match[1] + entries(kind, above) + match[4]

    sections = []
    for section in re.split(r"(?m)^(?=## )", text):
        above.clear()
        sections.append(MARK.sub(fill, section))
    return "".join(sections)


def main() -> None:
    """Rewrites the page."""
    sys.path.insert(0, str(PAGE.parent.parent.parent))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
