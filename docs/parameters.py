"""Writes docs/reference/parameters.md from what the classes declare."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from neucrowd_tf.declare import declared
from neucrowd_tf.methods.crowd_layer import CrowdLayer

PAGE = Path(__file__).resolve().parent / "reference" / "parameters.md"
MARK = re.compile(r"(<!-- parameters of ([\w.]+):(\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def shown(value: Any) -> str:
    """Returns a default value, a long sequence by its ends."""
    if isinstance(value, tuple) and len(value) > 6:
        return f"{value[0]} ... {value[-1]}"
    return repr(value)


def entries(kind: Any, above: set[tuple[str, str]]) -> str:
    """Returns the parameters of a constructor as a list in Markdown.

    Those without a meaning stand in the last line, and so do those that are `above`, which this
    list's are added to.
    """
    lines, left = [], list(inspect.signature(kind).parameters)
    for field in declared(kind):
        entry = f"{field.name}={field.default!r}", field.meaning
        if field.meaning and entry not in above:
            above.add(entry)
            left.remove(field.name)
            line = f"- `{field.name}={shown(field.default)}`: {field.meaning}"
            lines += textwrap.wrap(line, 100, subsequent_indent="  ", break_on_hyphens=False)
    if left:
        names = ", ".join(f"`{name}`" for name in left)
        if len(left) > 12 and {*left} < {*inspect.signature(CrowdLayer).parameters}:
            names = "the other arguments of `CrowdLayer`, but `initial`"
        lines += textwrap.wrap(f"- As above: {names}.", 100, subsequent_indent="  ")
    return "\n".join(["", *lines, "", ""])


def page(text: str) -> str:
    """Returns the page with its lists written again; each argument is explained once."""
    above: set[tuple[str, str]] = set()

    def fill(match: re.Match[str]) -> str:
        kind = getattr(importlib.import_module(match[2]), match[3])
        return match[1] + entries(kind, above) + match[4]

    return MARK.sub(fill, text)


if __name__ == "__main__":
    sys.path.insert(0, str(PAGE.parents[2]))  # baselines
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
