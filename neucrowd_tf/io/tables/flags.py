"""What every command says of the labels it reads: declared here once, for argparse and for absl."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.names.ids import as_list, listed
from neucrowd_tf.io.tables.format import TableFormat

ANNOTATIONS = (
    "labels: CSV with task, worker, label, or any other layout that --dataset=table reads; an"
    " annotation tool's export"
)
MODEL_ANNOTATOR = (
    "annotators that are models, separated by commas: labels like others', but counted apart in"
    " agreement"
)
# How a table of labels is written, and what is taken of an export, as `TableFormat.of` takes them.
TABLE_OPTIONS = {
    "separator": "the sign between the columns of a CSV, or tab",
    "task_column": "the name of the column of tasks",
    "worker_column": "the name of the column of annotators",
    "label_column": "the name of the column of labels",
    "missing": "what stands for a missing label, separated by commas, as NA,-1; empty where no text"
    " does",
    "classes": "all classes in their order, separated by commas; by default those in use, sorted",
    "exact_names": "names that differ in case, spaces or a number's spelling alone are others",
    "question": "which question's answers, where an annotation tool's export has several",
    "first": "the first of several choices in an export's answer",
}
SWITCHES = ("exact_names", "first")


def add_option(add: Any, name: str) -> None:
    """Adds one of `TABLE_OPTIONS` with a parser's (or a group's) `add_argument`."""
    if name in SWITCHES:
        add(f"--{name}", action="store_true", help=TABLE_OPTIONS[name])
    else:
        add(f"--{name}", help=TABLE_OPTIONS[name])


def add_table_options(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Adds `--annotations`, how they are written, and which annotators are models."""
    add = parser.add_argument
    add("--annotations", type=Path, required=required, help=f"{ANNOTATIONS}; - for stdin")
    add("--model_annotator", help=MODEL_ANNOTATOR)
    group = parser.add_argument_group("how a table of labels is written, and what of an export")
    for name in TABLE_OPTIONS:
        add_option(group.add_argument, name)


def table_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns what was given, for `TableFormat.of`."""
    return {name: getattr(arguments, name) for name in TABLE_OPTIONS}


def layout_of(arguments: argparse.Namespace) -> TableFormat:
    """Returns how the labels are written."""
    return TableFormat.of(**table_options(arguments))


def model_names(text: str | None, annotators: Iterable[Any]) -> list[str]:
    """Returns the names in `--model_annotator`.

    Raises:
        UsageError: one that is no annotator's.
    """
    names = [name for name in listed(text or "") if name]
    known = dict.fromkeys(map(str, annotators))
    for name in names:
        if name not in known:
            hint = next((f"; {as_list([other])} is one" for other in known if "," in other), "")
            raise UsageError(
                f"--model_annotator: expected an annotator's name, received {name!r}{hint}"
            )
    return names
