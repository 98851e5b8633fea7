"""Names that play another role than their column's: labels that are annotators, tasks or the row's
own, rows whose columns stand in another order; and annotators who share no class with others.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.names.ids import spelt

# What numbers a class, as a file spells it.
_CODE = re.compile(r"[-+]?\d+(\.0*)?")
_SHORT = 2  # letters, as A and B are, which annotators and answers may share
_FEW = 3  # labels, which may be apart by chance
Column = tuple[list[Any], np.ndarray]


def check_roles(
    tasks: Column, workers: Column, labels: Column, source: str | Path, where: Callable[[int], str]
) -> None:
    """Raises DataError for labels that are all names of annotators, or of tasks (where they are
    numbers, for those that are their row's), and for rows whose annotator and label are exchanged;
    warns of words that are tasks and annotators at once, and of annotators whose classes no other
    gives.

    Args:
        tasks, workers, labels: distinct names, and codes `[A]`, as `names.coded` gives them.
        source: what to call the table in warnings.
        where: says where annotation i is.
    """
    texts = {str(label) for label in labels[0]}
    # Readers of wide tables and of exports have numbers as text.
    codes = all(_CODE.fullmatch(text) for text in texts)
    for column, what in ((tasks, "tasks"), (workers, "annotators")) if len(texts) > 1 else ():
        if texts <= set(map(str, column[0])) and (not codes or _same(column, labels)):
            raise DataError(
                f"{where(0)}: expected a label, received {spelt(labels[0][labels[1][0]])}, as all"
                f" labels one of the {what}' names (columns exchanged?); --classes=... names all"
                " classes"
            )
    _check_exchanged(_words(workers) & set(labels[0]), workers, labels, where)
    both = {name for name in _words(workers) & set(tasks[0]) if len(name) > _SHORT}
    if both:
        first = next(name for name in workers[0] if name in both)
        warnings.warn(
            f"{source}: {len(both)} names are a task's and an annotator's (the first: {first!r}),"
            " as where the columns of several files stand in another order; they are taken for"
            " both",
            stacklevel=5,
        )
    _tell_apart(tasks[1], workers, labels, source)


def _same(column: Column, labels: Column) -> bool:
    """Whether each row has the same name in both columns."""
    names, others = ([str(name) for name in given[0]] for given in (column, labels))
    known = {name: code for code, name in enumerate(others)}
    to = np.array([known.get(name, -1) for name in names])
    return bool((to[column[1]] == labels[1]).all())


def _words(column: Column) -> set[str]:
    return {name for name in column[0] if isinstance(name, str) and not _CODE.fullmatch(name)}


def _check_exchanged(
    both: set[str], workers: Column, labels: Column, where: Callable[[int], str]
) -> None:
    """Raises DataError for annotators named as classes that others give, whose own labels nobody
    else gives.
    """
    if not both:
        return
    here = np.isin(workers[1], [code for code, name in enumerate(workers[0]) if name in both])
    theirs, others = np.unique(labels[1][here]), np.unique(labels[1][~here])
    if len(np.intersect1d(theirs, others)) or not both & {labels[0][code] for code in others}:
        return
    row = int(here.argmax())
    worker, label = workers[0][workers[1][row]], labels[0][labels[1][row]]
    raise DataError(
        f"{where(row)}: expected a label, received {spelt(label)}, which only annotators named as"
        f" classes give, as {spelt(worker)} is (columns exchanged?); --classes=... names all"
        " classes"
    )


def _tell_apart(tasks: np.ndarray, workers: Column, labels: Column, source: str | Path) -> None:
    """Warns of annotators who share no class with others, directly or through others, on tasks that
    these labelled too.
    """
    size, width = len(workers[0]), len(labels[0])
    pairs = np.unique(workers[1].astype(np.int64) * width + labels[1])
    edges = (pairs // width, size + pairs % width)
    graph = csr_array((np.ones(len(pairs)), edges), shape=(size + width, size + width))
    groups, group = connected_components(graph, directed=False)
    if groups < 2:
        return
    of = group[workers[1]]
    main = int(np.bincount(of).argmax())
    if (group[:size] == main).sum() < 2:
        return
    shared = np.isin(tasks, tasks[of == main]) & (of != main)
    often = np.bincount(workers[1][shared], minlength=size) >= _FEW
    apart = np.unique(group[:size][often])
    if len(apart):
        at = int(np.isin(of, apart).argmax())
        names = [spelt(labels[0][code]) for code in np.flatnonzero(group[size:] == of[at])[:3]]
        who = int(np.isin(group[:size], apart).sum())
        warnings.warn(
            f"{source}: {who} annotators (the first: {spelt(workers[0][workers[1][at]])}) gave"
            f" {int(np.isin(of, apart).sum())} labels, none of a class that others give"
            f" ({', '.join(names)}), as in another language or spelling; they are taken for classes"
            " of their own",
            stacklevel=6,
        )
