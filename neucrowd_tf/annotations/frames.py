"""Annotations from frames and matrices in memory, and features whose index names instances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neucrowd_tf.annotations.codes import as_frame
from neucrowd_tf.annotations.core import Annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.names import as_name_array, roles_of, spelt

SHAPES = (
    "one column each for task, worker and label (Annotations.from_frame(frame, task=...,"
    " worker=..., label=...) accepts other names), or a row per instance and a column per annotator"
)


def as_annotations(annotations: Any, num_classes: int | None = None) -> Annotations:
    """Returns `Annotations` from annotations in any form.

    Args:
        annotations: `Annotations`; a frame (or what has `to_pandas`) with a row per label, in
            columns `task`, `worker`, `label` or their aliases; a frame with a row per instance and
            a column per annotator, of class codes with -1 or of labels with NaN for missing ones;
            or a dense `[N, R]` matrix of class codes with -1 for missing ones.
        num_classes: C of a matrix of codes; by default one more than the largest.

    Raises:
        DataError: a frame with some of the three columns only, or of another form.
    """
    if isinstance(annotations, Annotations):
        return annotations
    frame = as_frame(annotations)
    if frame is None:
        return Annotations.from_dense(annotations, num_classes=num_classes)
    roles = roles_of(frame.columns)
    if all(roles.values()):
        return Annotations.from_frame(frame)
    if any(roles.values()):
        missing = next(role for role, columns in roles.items() if not columns)
        columns = ", ".join(repr(name) for name in list(frame.columns)[:8])
        raise DataError(
            f"annotations: expected {SHAPES}; received columns {columns}, none of them a {missing}"
        )
    if all(isinstance(dtype, np.dtype) and dtype.kind in "iu" for dtype in frame.dtypes):
        return Annotations.from_dense(
            frame.to_numpy(),
            num_classes=num_classes,
            instance_names=None if numbered(frame.index) else frame.index,
            annotator_names=frame.columns,
        )
    if frame.isna().to_numpy().any():
        return Annotations.from_wide_frame(frame)
    raise DataError(
        f"annotations: expected {SHAPES}, with -1 or NaN for missing labels; received columns"
        f" {', '.join(f'{name!r} of {dtype}' for name, dtype in list(frame.dtypes.items())[:8])}"
    )


def numbered(index: Any) -> bool:
    """Whether a pandas index numbers the rows, as one that nobody set does."""
    start, step = getattr(index, "start", None), getattr(index, "step", None)
    return start == 0 and step == 1


def align_annotations(
    features: ArrayLike, annotations: Any, num_classes: int | None = None
) -> Annotations:
    """Returns annotations with an instance for each row of `features`, in their order.

    Features with an index (a DataFrame, a Series) are matched with the annotations by name. Arrays
    have no names: their rows are the annotations' instances in order. A frame with a row per label
    has no such order, so that its tasks must be the numbers of the rows.

    Args:
        features: `[N, ...]`.
        annotations: see `as_annotations`.
        num_classes: see `as_annotations`.

    Raises:
        DataError: annotations that cannot be matched with certainty.
    """
    crowd = as_annotations(annotations, num_classes)
    index: Any = getattr(features, "index", None)
    if not hasattr(index, "is_unique") or numbered(index):
        return _by_row_number(crowd, int(np.shape(features)[0])) if _is_long(annotations) else crowd
    if "task" in getattr(features, "columns", ()):
        raise DataError(
            "features: expected numbers only, received a column 'task'; set_index('task') makes it"
            " the name of each row"
        )
    names = as_name_array(index)
    if not index.is_unique:
        twice = spelt(names[index.duplicated()][0])
        raise DataError(f"features: expected each task once in the index, received {twice} again")
    tasks, wanted = crowd.instance_names.tolist(), names.tolist()
    if tasks == wanted:
        return crowd
    if not crowd.named:
        if sorted(map(str, tasks)) == sorted(map(str, wanted)):
            raise DataError(
                "features: expected an index in the annotations' order, received the rows' numbers"
                " in another one, while the annotations have no names of tasks;"
                " features.to_numpy() if row i is instance i, features.sort_index() if the index"
                " is the instance's number"
            )
        return crowd  # a matrix: row i is instance i
    return crowd.align(names)


def _is_long(annotations: Any) -> bool:
    frame = None if isinstance(annotations, Annotations) else as_frame(annotations)
    return frame is not None and all(roles_of(frame.columns).values())


def _by_row_number(crowd: Annotations, size: int) -> Annotations:
    names: NDArray[Any] = crowd.instance_names
    for name in names.tolist():
        if not (isinstance(name, int) and 0 <= name < size):
            raise DataError(
                "features: the rows have no names, and the task"
                f" {spelt(name)} is not a row number from 0 to {size - 1}. Use"
                " features.set_index(...), or Annotations.from_frame(frame,"
                " instance_names=tasks in the rows' order)."
            )
    return crowd.align(np.arange(size))
