"""What a user holds in memory: frames as they are, matrices, features whose index names tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.annotations.core import Annotations
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels.long import as_frame
from neucrowd_tf.io.names.ids import as_name_array, spelt
from neucrowd_tf.io.tables.format import PLAIN
from neucrowd_tf.io.tables.headers import ALIASES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

SHAPES = (
    "a column each for task, worker and label (Annotations.from_frame(frame, task=..., worker=...,"
    " label=...) takes other names), or a row an instance and a column an annotator"
)


def as_annotations(annotations: Any, num_classes: int | None = None) -> Annotations:
    """Returns `Annotations` of what a user holds.

    Args:
        annotations: `Annotations`; a frame (or what has `to_pandas`) with a row a label, in columns
            `task`, `worker`, `label` or their aliases; a frame with a row an instance and a column
            an annotator, of class codes with -1 or of labels with NaN for missing ones; or a dense
            `[N, R]` matrix of class codes with -1 for missing ones.
        num_classes: C of a matrix of codes; by default one more than the largest.

    Raises:
        DataError: a frame with some of the three columns only, or of something else.
    """
    if isinstance(annotations, Annotations):
        return annotations
    frame = as_frame(annotations)
    if not isinstance(frame, pd.DataFrame):
        return Annotations.from_dense(annotations, num_classes=num_classes)
    roles = PLAIN.roles(list(frame.columns))
    if set(roles) == set(ALIASES):
        return Annotations.from_frame(frame)
    if roles:
        missing = next(role for role in ALIASES if role not in roles)
        columns = ", ".join(repr(name) for name in list(frame.columns)[:8])
        raise DataError(
            f"annotations: expected {SHAPES}; received columns {columns}, none of them a {missing}"
        )
    if all(dtype.kind in "iu" for dtype in frame.dtypes if isinstance(dtype, np.dtype)) and all(
        isinstance(dtype, np.dtype) for dtype in frame.dtypes
    ):
        return Annotations.from_dense(
            frame.to_numpy(),
            num_classes=num_classes,
            instance_names=None if numbered(frame.index) else frame.index,
            annotator_names=frame.columns,
        )
    if frame.isna().to_numpy().any():
        return Annotations.from_wide_frame(frame)
    raise DataError(
        f"annotations: expected {SHAPES}, with -1 or NaN where there is no label; received columns"
        f" {', '.join(f'{name!r} of {dtype}' for name, dtype in list(frame.dtypes.items())[:8])}"
    )


def numbered(index: pd.Index) -> bool:
    """Whether an index says no more than the rows' numbers, as one that nobody set does."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def align_annotations(
    features: ArrayLike, annotations: Any, num_classes: int | None = None
) -> Annotations:
    """Returns annotations with an instance for each row of `features`, in their order.

    Features with an index (a DataFrame, a Series) are matched with the annotations by name. Arrays
    have no names: their rows are the annotations' instances in order, where these have one. A frame
    with a row a label has none, so that its tasks must then be the numbers of the rows.

    Args:
        features: `[N, ...]`.
        annotations, num_classes: whatever `as_annotations` takes.

    Raises:
        DataError: what cannot be matched with certainty.
    """
    crowd = as_annotations(annotations, num_classes)
    ordered = isinstance(annotations, Annotations) or not _is_long(annotations)
    index = getattr(features, "index", None)
    if not isinstance(index, pd.Index) or numbered(index):
        return crowd if ordered else _by_row_number(crowd, np.shape(features)[0])
    if isinstance(features, pd.DataFrame) and "task" in features.columns:
        raise DataError(
            "features: expected numbers alone, received a column 'task'; set_index('task') makes it"
            " the name of each row"
        )
    names = as_name_array(index)
    if not index.is_unique:
        twice = spelt(names[index.duplicated()][0])
        raise DataError(f"features: expected each task once in the index, received {twice} again")
    held = crowd.instance_names
    if len(held) == len(names) and held.tolist() == names.tolist():
        return crowd
    if not crowd.named:
        if len(held) == len(names) and set(held.tolist()) == set(names.tolist()):
            raise DataError(
                "features: expected an index in the annotations' order, received the rows' numbers"
                " in another one, while the annotations name no tasks; features.to_numpy() if row i"
                " is instance i, features.sort_index() if the index says which it is"
            )
        return crowd  # a matrix: row i is instance i
    lost = sorted(set(held.tolist()) - set(names.tolist()), key=held.tolist().index)
    if lost:
        first = names.tolist()[0] if len(names) else "none"
        raise DataError(
            f"annotations: expected tasks of the features' index (such as {spelt(first)}), received"
            f" {spelt(lost[0])} and {len(lost) - 1} others that it does not have"
        )
    return crowd.align(names)


def _is_long(annotations: Any) -> bool:
    columns = getattr(as_frame(annotations), "columns", None)
    return columns is not None and set(PLAIN.roles(list(columns))) == set(ALIASES)


def _by_row_number(crowd: Annotations, size: int) -> Annotations:
    names: NDArray[Any] = crowd.instance_names
    bad = (
        np.flatnonzero((names < 0) | (names >= size))[:1]
        if names.dtype.kind in "iu"
        else np.zeros(1, dtype=np.int64)
    )
    if len(bad) and len(names):
        raise DataError(
            f"features: expected an index of tasks to match the annotations with, received rows"
            f" without names, and the task {spelt(names[bad[0]])}, which is no row from 0 to"
            f" {size - 1}; features.set_index(...), or Annotations.from_frame(frame,"
            " instance_names=tasks in the rows' order)"
        )
    return crowd.align(np.arange(size))
