"""True labels of some training tasks, as a user gives them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import encode_labels
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.tables.format import PLAIN, TableFormat
from neucrowd_tf.io.tables.tasks import read_truth


def gold_codes(
    gold: str | os.PathLike[str] | Mapping[Any, Any] | None,
    annotations: Annotations,
    layout: TableFormat = PLAIN,
) -> NDArray[np.int64]:
    """Returns `[N]` class codes of the instances of annotations, -1 where no gold label is known.

    Args:
        gold: a CSV `task,label`, or labels by task; other tasks than those of the annotations (the
            test split's, say) are left out, and those of a file counted.
        annotations: of N instances.
        layout: how the file is written, as for `read_truth`.

    Raises:
        DataError: what is wrong with the file, a label that is no class, or no task in common.
    """
    names = [str(name) for name in annotations.instance_names.tolist()]
    if gold is None:
        return np.full(len(names), -1, dtype=np.int64)
    if isinstance(gold, Mapping):
        place = {name: row for row, name in enumerate(names)}
        known = [(place[str(task)], label) for task, label in gold.items() if str(task) in place]
        codes = np.full(len(names), -1, dtype=np.int64)
        if known:
            rows, labels = zip(*known, strict=True)
            codes[list(rows)] = encode_labels(
                np.asarray(labels), annotations.class_names, "gold labels"
            )
    else:
        classes = annotations.class_names
        codes = read_truth(Path(gold), np.asarray(names), classes, others=True, layout=layout)
    if (codes < 0).all():
        raise DataError(
            "gold: expected labels of tasks that have annotations and are trained on, received none"
        )
    return codes
