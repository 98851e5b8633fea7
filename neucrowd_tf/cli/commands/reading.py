"""The labels that a command reads, with gold labels, and what is checked of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.gold import read_gold
from neucrowd_tf.io.labels import Reading, read_annotations
from neucrowd_tf.io.roles import as_list, command_line
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.values import ALL, numbers_of


def read_labels(
    path: Path,
    options: TableOptions,
    gold: Path | None = None,
    *,
    scale: str = "nominal",
    items: Sequence[str] | None = None,
    identities: str = "",
) -> tuple[Reading, dict[object, object] | None]:
    """Returns the labels of a file, and the gold labels if there are any.

    Args:
        path: the file of labels.
        options: how it is read.
        gold: the file of gold labels.
        scale: "ordinal" if classes need an order.
        items: ids of a table of features, see `read_annotations`.
        identities: what to do instead if there are vote counts alone; "" accepts them.

    Raises:
        DataError: a file that cannot be used.
    """
    reading = read_annotations(path, options, items=items)
    crowd = reading.annotations
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
