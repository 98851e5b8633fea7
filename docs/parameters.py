"""Writes docs/reference/parameters.csv: each method's arguments, from what its class declares."""

from __future__ import annotations

import csv
import inspect
import io
import re
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent / "reference" / "parameters.csv"
ROOT = PAGE.parents[2]
COLUMNS = ("argument", "default", "meaning", "classes")


def shown(value: Any) -> str:
    """Returns a default value, a long sequence by its ends."""
    if isinstance(value, tuple) and len(value) > 6:
        return f"{value[0]} ... {value[-1]}"
    return repr(value)


def classes() -> list[type]:
    """Returns the classes of the registered methods and of truth inference."""
    from neucrowd_tf import aggregation
    from neucrowd_tf.cli.runs import plugins
    from neucrowd_tf.declare import registry

    plugins.register(("baselines",))
    methods = [method.factory for method in registry.methods()]
    methods += [getattr(aggregation, name) for name in aggregation.__all__]
    kinds = {kind for kind in methods if inspect.isclass(kind)}
    ours = {kind for kind in kinds if kind.__module__.startswith(("neucrowd_tf", "baselines"))}
    return sorted(ours, key=lambda kind: kind.__name__)


def table() -> str:
    """Returns the table as CSV: a row per argument, default and meaning, with its classes."""
    from neucrowd_tf.declare.declarations import declared

    owners: dict[tuple[str, str, str], list[str]] = {}
    for kind in classes():
        taken = set(inspect.signature(kind).parameters)
        for field in declared(kind):
            if field.name in taken:
                meaning = re.sub(r"\s+", " ", field.meaning)
                row = field.name, shown(field.default), meaning
                owners.setdefault(row, []).append(kind.__name__)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row, names in sorted(owners.items()):
        writer.writerow([*row, ", ".join(dict.fromkeys(names))])
    return text.getvalue()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))  # baselines
    PAGE.write_text(table(), encoding="utf-8")
