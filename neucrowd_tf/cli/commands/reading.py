"""The labels that a command reads, with gold labels, and what is checked of them."""

from __future__ import annotations

from pathlib import Path

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Texts
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.gold import read_gold
from neucrowd_tf.io.labels import Reading, read_annotations, report_on_stderr
from neucrowd_tf.io.roles import as_list, command_line
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.values import ALL, numbers_of

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
    return reading, None if gold is None else read_gold(gold, crowd, options)
