"""Writes docs/reference/parameters.csv: each method's arguments, from what its class declares."""

from __future__ import annotations

import inspect
import re
import sys
from collections import defaultdict
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
    ours = set()
    for method in filter(inspect.isclass, methods):
        if method.__module__.startswith(("neucrowd_tf", "baselines")):
            ours.add(method)
    return sorted(ours, key=lambda estimator: estimator.__name__)


def table() -> str:
    """Returns the table as CSV: a row per argument, default and meaning, with its classes."""
    from neucrowd_tf.declare.declarations import declared
    from neucrowd_tf.io.tables.writing import to_csv

    owners = defaultdict(list)
    for estimator in classes():
        parameters = inspect.signature(estimator).parameters
        for field in declared(estimator):
            if field.name in parameters:
                meaning = re.sub(r"\s+", " ", field.meaning)
                owners[field.name, shown(field.default), meaning].append(estimator.__name__)
    rows = []
    for row, names in sorted(owners.items()):
        rows.append((*row, ", ".join(dict.fromkeys(names))))
    return to_csv(COLUMNS, rows)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))  # baselines
    PAGE.write_text(table(), encoding="utf-8")
