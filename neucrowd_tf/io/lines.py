"""The one to three lines that say how labels were read."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Array, Texts
from neucrowd_tf.io.checks import amounts
from neucrowd_tf.io.coding import CodedLabels
from neucrowd_tf.io.column_names import SHOWN, few, is_model, repeated_codings
from neucrowd_tf.io.columns import LabelColumns
from neucrowd_tf.io.roles import RUNNING, WORDS, as_list

RAREST = 5  # classes that are shown besides the most frequent ones


def lines_of(coded: CodedLabels, crowd: Annotations, counts: Array) -> tuple[str, ...]:
    """Returns the lines.

    Args:
        coded: the labels of the file.
        crowd: the annotations that were made of them.
        counts: `[C]` how many labels each class has in the file.
    """
    columns = coded.columns
    name = f"{coded.path.name}: {columns.layout}, "
    if columns.counts is not None:
        first = (
            f"{name}{sum(columns.counts):,} votes on {len(coded.items.names):,} items"
            f"; item {columns.roles['task']}"
        )
    else:
        labels, items, annotators = itertools.starmap(_counted, coded.sizes.items())
        first = f"{name}{labels} of {items} by {annotators}"
        sign = ";"
        for role, word in WORDS.items():
            if role in columns.roles:
                first += f"{sign} {word} {columns.roles[role]}"
                sign = ","
        if columns.reason:
            first += f" ({columns.reason})"
    return first, " ".join(_sentences(coded, crowd, counts)), *columns.notes


def _counted(word: str, size: int) -> str:
    return f"{size:,} {word}{'s' * (size != 1)}"


def _sentences(coded: CodedLabels, crowd: Annotations, counts: Array) -> Iterator[str]:
    """Yields the sentences of the second line."""
    columns = coded.columns
    annotators = coded.annotators.names
    yield class_line(crowd.class_names.tolist(), counts)
    yield from about_columns(columns, annotators, is_timed=coded.times is not None)
    if columns.left_out:
        yield f"Left out: {', '.join(amounts(columns.left_out))}."
    yield from coded.notes
    if columns.counts is None:
        most = int(np.bincount(crowd.instances).max(initial=0))
        yield from about_sizes(len(annotators), most, counts)


def about_columns(columns: LabelColumns, annotators: Texts, *, is_timed: bool) -> Iterator[str]:
    """Yields what other columns have, and which annotators may be no people or one person."""
    if columns.annotators_in_columns:
        yield f"Annotators: {few(annotators)}."
    if is_timed and "time" in columns.roles:
        yield f"Times: {columns.roles['time']}."
    if columns.unused:
        yield f"Unused columns: {few(columns.unused)}."
    running = " ".join(RUNNING.get())
    models = list(filter(is_model, columns.further))
    if models and "--annotator_columns" not in running:
        flag = f"--annotator_columns={shlex.quote(as_list(models))}"
        yield f"If {few(models)} annotated too: `neucrowd merge {flag}` adds these labels."
    models = list(filter(is_model, annotators))
    if models and "--model_annotator" not in running:
        flag = f"--model_annotator={shlex.quote(','.join(models))}"
        yield f"Annotators with names of models: {few(models)}."
        yield f"They count as people without {flag}."
    if again := repeated_codings(annotators):
        yield f"Annotators who may be further codings by others: {few(again)}."


def about_sizes(annotators: int, most: int, counts: Array) -> Iterator[str]:
    """Yields that there is one annotator, one label of each item (`most`), or one class."""
    if annotators == 1:
        yield "There is one annotator."
    elif most == 1:
        yield "Each item has one label."
    if np.sum(counts > 0) == 1:
        yield "All labels are the same."


def class_line(names: Sequence[Any], counts: Array) -> str:
    """Returns the classes with their counts: up to 12, otherwise 12 and the five rarest."""
    classes = []
    for code in np.argsort(-counts, kind="stable").tolist():
        classes.append(f"{' '.join(str(names[code]).split())} ({int(counts[code]):,})")
    if len(classes) <= SHOWN + RAREST:
        return f"classes: {', '.join(classes)}."
    rare = f"; rarest: {', '.join(classes[-RAREST:])}; {len(classes) - SHOWN - RAREST} others"
    return f"classes: {', '.join(classes[:SHOWN])}{rare}."
