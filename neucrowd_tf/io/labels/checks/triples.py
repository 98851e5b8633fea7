"""Checks of triples of tasks, annotators and labels: what is no name and no class, and what is
told.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.io.labels.checks.classes import check_classes
from neucrowd_tf.io.labels.checks.roles import check_roles
from neucrowd_tf.io.labels.table import LabelTable
from neucrowd_tf.io.names.checks import check_names
from neucrowd_tf.io.names.ids import coded, occurrences, spelt
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.headers import ALIASES

FEW_ROWS = 10


def check_table(table: LabelTable, layout: TableFormat, *, wide: bool = False) -> None:
    """Checks the names of triples as `check_names` does, and labels that are numbers as those of no
    class are: -1 and fractions.

    Args:
        wide: whether the triples come from cells, each of whose places says its column.
    """
    if table.triples is None:
        return
    column, alone, single, found = table.triples[0], [], [], []
    for role, column in zip(ALIASES, table.triples, strict=True):
        names, codes = coded(column)
        found.append((names, codes))
        if wide and role != "label":  # the header and the column of tasks have each once
            continue
        counts, first = occurrences(codes, len(names))
        known = layout.classes if role == "label" else ()
        check_names(
            names,
            counts,
            first,
            role,
            functools.partial(table.place, column=None if wide else role),
            known=known,
            exact=layout.exact_names,
            missing=layout.missing,
        )
        if role == "label" and not known and not layout.own:
            check_classes(names, counts, first, table, layout, None if wide else role)
        alone.append(set(first[counts == 1].tolist()))
        if role != "label" and len(names) == len(column) >= FEW_ROWS:
            single.append(role)
        if role == "worker" and len(names) == 1:  # who labels each task once
            single = []
    if layout.own:
        return
    if len(column) and not layout.classes:
        tasks, workers, labels = found
        where = functools.partial(table.place, column=None if wide else "label")
        check_roles(tasks, workers, labels, table.source, where)
    if single and not wide:
        of = {"task": "task has one label alone", "worker": "annotator gave one label alone"}
        warnings.warn(
            f"{table.source}: every {of[single[0]]}, as where the column numbers the rows"
            f" (--{single[0]}_column names another)",
            stacklevel=4,
        )
    rows = set() if wide else alone[1] & alone[2]
    if rows and len(rows) * FEW_ROWS <= len(column):
        row = min(rows)
        worker, label = (spelt(names[codes[row]]) for names, codes in found[1:])
        warnings.warn(
            f"{table.place(row)}: the annotator {worker} and the label {label} occur in this place"
            " alone, and are taken as they are (a footer, or a note?)",
            stacklevel=4,
        )


def check_vocabulary(
    source: str | Path, workers: Iterable[Any], labels: Iterable[Any], layout: TableFormat = PLAIN
) -> None:
    """Checks the distinct annotators and classes of a source that is read by parts, as
    `check_table` does.
    """
    table = LabelTable(source, line=lambda _: "")
    for role, column in (("worker", list(workers)), ("label", list(labels))):
        nowhere = np.zeros(len(column), dtype=np.int64)
        known = layout.classes if role == "label" else ()
        check_names(
            column,
            nowhere,
            nowhere,
            role,
            functools.partial(table.place, column=role),
            known=known,
            exact=layout.exact_names,
            missing=layout.missing,
        )
        if role == "label" and not known and not layout.own:
            check_classes(column, nowhere, nowhere, table, layout, role)
