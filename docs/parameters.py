"""Writes docs/reference/parameters.md from what the classes declare."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from neucrowd_tf.declare.declarations import declared
from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer

PAGE = Path(__file__).resolve().parent / "reference" / "parameters.md"
MARK = re.compile(r"(<!--([\w.]+):(\w+)-->\n).*?(<!--end-->)", re.DOTALL)


def shown(value: Any) -> str:
    """Returns a default value, a long sequence by its ends."""
    if isinstance(value, tuple) and len(value) > 6:
        return f"{value[0]} ... {value[-1]}"
    return repr(value)


def entries(kind: Any, above: dict[tuple[str, str], str]) -> str:
    """Returns the parameters of a constructor as a list in Markdown.

    The last line has those without a meaning and those that are `above`, which this list's are
    added to; it shows a default that is not that of the earlier list.
    """
    lines, left = [], {name: name for name in inspect.signature(kind).parameters}
    for field in declared(kind):
        entry, text = (field.name, field.meaning), f"{field.name}={shown(field.default)}"
        if field.meaning and entry not in above:
            above[entry] = text
            del left[field.name]
            line = f"- `{text}`: {field.meaning}"
            lines += textwrap.wrap(line, 100, subsequent_indent="  ", break_on_hyphens=False)
        elif field.meaning and above[entry] != text:
            left[field.name] = text
    same = {name for name, text in left.items() if name == text}
    names = [f"`{text}`" for text in left.values()]
    if len(same) > 12 and same < {*inspect.signature(CrowdLayer).parameters}:
        names = [f"`{left[name]}`" for name in left if name not in same]
        names.append("the other arguments of `CrowdLayer`, but `initial`")
    if left:
        lines += textwrap.wrap(f"- As above: {', '.join(names)}.", 100, subsequent_indent="  ")
    return "\n".join(["", *lines, "", ""])


def page(text: str) -> str:
    """Returns the page with its lists written again; each argument is explained once."""
    above: dict[tuple[str, str], str] = {}

    def fill(match: re.Match[str]) -> str:
        kind = getattr(importlib.import_module(match[2]), match[3])
        return match[1] + entries(kind, above) + match[4]

    return MARK.sub(fill, text)


if __name__ == "__main__":
    sys.path.insert(0, str(PAGE.parents[2]))  # baselines
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
