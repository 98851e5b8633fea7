"""Writes each method page's table of parameters from what the classes declare.

Run `python docs/methods/parameters.py`.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
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


def table(kind: Any, above: set[tuple[str, str]]) -> str:
    """Returns the parameters of a constructor in Markdown.

    Those without an entry stand in the last row, and so do those that are `above`, which this
    table's are added to.
    """
    parameters = {
        name: inspect.signature(kind.__init__).parameters[name] for name in names_of(kind)
    }
    rows, left = [], dict(parameters)
    for names, text in described(kind):
        entry = ", ".join(f"{name}={parameters[name].default!r}" for name in names), text
        if entry in above:
            continue
        above.add(entry)
        defaults = ", ".join(f"`{shown(parameters[name].default)}`" for name in names)
        rows.append(
            f"| {', '.join(f'`{name}`' for name in names)} | {defaults} |"
            f" {text.replace('|', chr(92) + '|')} |"
        )
        for name in names:
            left.pop(name, None)
    if left:
        rows.append(f"| {', '.join(f'`{name}`' for name in left)} | | as above |")
    return "\n".join(["| parameter | default | meaning |", "|---|---|---|", *rows]) + "\n"


def page(text: str) -> str:
    """Returns a page with its tables written anew."""
    above: set[tuple[str, str]] = set()

    def fill(match: re.Match[str]) -> str:
        kind = getattr(importlib.import_module(match[2]), match[3])
        return match[1] + table(kind, above) + match[4]

    return MARK.sub(fill, text)


def main() -> None:
    """Rewrites the pages beside this file."""
    sys.path.insert(0, str(HERE.parent.parent))
    for path in sorted(HERE.glob("*.md")):
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
