"""The options of commands that say how a table of labels is written, as `TableFormat.of` takes
them.
"""

from __future__ import annotations

import argparse
from typing import Any

TABLE_OPTIONS = {
    "separator": "the sign between the columns of a CSV, or tab",
    "task_column": "the name of the column of tasks",
    "worker_column": "the name of the column of annotators",
    "label_column": "the name of the column of labels",
    "missing": "what stands for a missing label, separated by commas: NA,-1",
    "classes": "all classes, separated by commas",
    "exact_names": "names that differ in case, spaces or a number's spelling alone are others",
}


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options to a parser."""
    group = parser.add_argument_group("how a table of labels is written")
    for name, text in TABLE_OPTIONS.items():
        if name == "exact_names":
            group.add_argument(f"--{name}", action="store_true", help=text)
        else:
            group.add_argument(f"--{name}", help=text)


def table_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns what was given, for `TableFormat.of`."""
    return {name: getattr(arguments, name) for name in TABLE_OPTIONS}
