"""The labels that a command reads, with gold labels, and what is checked of them."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path

from neucrowd_tf.aggregation.families import named_models
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.picking import starting_with
from neucrowd_tf.declare.types import Texts
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.column_names import is_model
from neucrowd_tf.io.gold import read_gold
from neucrowd_tf.io.labels import Reading, read_annotations, report_on_stderr
from neucrowd_tf.io.roles import RUNNING, as_list, command_line
from neucrowd_tf.io.schema import FLAGS, TableOptions
from neucrowd_tf.io.values import ALL, numbers_of
from neucrowd_tf.names import close_names, without

MOST_CELLS = 10**8  # of confusion matrices or probabilities, of which several are in memory
LARGE = 10**6  # cells from which their number is printed, if there are many classes
MANY_CLASSES = 100


def check_size(path: Path, crowd: Annotations) -> None:
    """States how large the arrays of an inference are, before the work.

    Raises:
        DataError: they would not fit into the memory of a usual machine.
    """
    classes = crowd.num_classes
    annotators = crowd.num_annotators
    items = crowd.num_instances
    cells = classes * max(classes * annotators, items)
    text = f"{classes:,} classes"
    if classes * annotators >= items:
        text += f" x {classes:,} x {annotators:,} annotators: confusion matrices"
    else:
        text += f" x {items:,} items: probabilities"
    text += f" of {cells:,} cells"
    if cells > MOST_CELLS:
        raise DataError(f"{path}: {text}, more than {MOST_CELLS:,}. Join rare classes.")
    if classes > MANY_CLASSES and cells > LARGE:
        report_on_stderr(f"{text}. This takes minutes.")


def read_labels(
    path: Path,
    options: TableOptions,
    gold: Path | None = None,
    *,
    scale: str = "nominal",
    items: Texts | None = None,
    identities: str = "",
    infers: bool = True,
) -> tuple[Reading, dict[object, object] | None]:
    """Returns the labels of a file, and the gold labels if there are any.

    Args:
        path: the file of labels.
        options: how it is read.
        gold: the file of gold labels.
        scale: "ordinal" if classes need an order.
        items: ids of a table of features, see `read_annotations`.
        identities: what to do instead if there are vote counts alone; "" accepts them.
        infers: whether the command infers labels, so that their size matters.

    Raises:
        DataError: a file that cannot be used.
    """
    reading = read_annotations(path, options, items=items)
    crowd = reading.annotations
    if infers:
        check_size(path, crowd)
    if identities and not crowd.has_identities:
        raise DataError(f"{path}: vote counts do not name annotators. {identities}")
    names = list(map(str, crowd.class_names.tolist()))
    ordered = options.bins or options.classes not in ((), ALL) or numbers_of(names) is not None
    if scale == "ordinal" and not ordered and len(names) > 2:
        command = command_line(path, ["--classes=LEAST,...,MOST"])
        raise DataError(
            f"{path}: --scale=ordinal: classes that are texts have no known order. Name"
            f" {as_list(names)} from the least to the most:\n  {command}"
        )
    if gold is None:
        return reading, None
    return reading, read_gold(gold, crowd, options, reading.pairs)


def models_of(reading: Reading, path: Path, patterns: Collection[str]) -> tuple[str, ...]:
    """Returns the annotators that --model_annotator names.

    Raises:
        UsageError: a name or pattern that no annotator has.
        DataError: vote counts, or a name or pattern that a column has: with the commands that add
            the column's labels.
    """
    crowd = reading.annotations
    if patterns and not crowd.has_identities:
        raise DataError(f"{path}: vote counts do not name annotators. Remove --model_annotator.")
    try:
        return named_models(patterns, crowd.annotator_names)
    except UsageError:
        columns = list(filter(is_model, reading.further))
        for column in without(reading.further, columns):
            if any(fnmatchcase(column, name) or close_names(name, [column]) for name in patterns):
                columns.append(column)
        if not columns:
            raise
    named = shlex.quote(as_list(columns))
    merged = shlex.quote(f"{path.stem}.merged.csv")
    command, *typed = RUNNING.get()
    reading_flags = starting_with(typed, tuple(f"--{name}=" for name in FLAGS))
    how = map(shlex.quote, reading_flags)
    source = shlex.quote(f"--annotations={path}")
    add = ["neucrowd merge", source, *how, f"--annotator_columns={named}", f"--output={merged}"]
    replaced = starting_with(typed, ("--annotations=", "--model_annotator="))
    rest = list(map(shlex.quote, without(typed, reading_flags + replaced)))
    rest += [f"--annotations={merged}", f"--model_annotator={named}"]
    raise DataError(
        f"--model_annotator: {' and '.join(columns)} of {path} is a column, not an annotator. Add"
        f" its labels as an annotator's first:\n  {' '.join(add)}\n  neucrowd"
        f" {' '.join([command, *rest])}"
    )
