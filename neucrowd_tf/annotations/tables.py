"""The one gate for tables in memory: names of rows and columns, and what float32 can hold.

Features, annotations and labels come as frames, Series, arrays or sparse matrices. What has names
is matched by them; what has none goes by position, and where neither is certain an error says so.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from neucrowd_tf.annotations.codes import as_frame, matched, numbered, unmasked, without_blanks
from neucrowd_tf.annotations.core import Annotations
from neucrowd_tf.declare.types import Array, Features, Floats, Floats32, Frame, Indices
from neucrowd_tf.errors import DataError, warn
from neucrowd_tf.names import SECOND_ITEM, as_name_array, folded, listed, roles_of, spelt, without

SHAPES = (
    "one column each for task, worker and label (Annotations.from_frame(frame, task=...,"
    " worker=..., label=...) accepts other names), or a row per instance and a column per annotator"
)
# Float32 may move a value by this share of half its column's range.
LOST = 1e-5
Names = Array | None


# --------------------------------------------------------------------------- names


def split_names(
    table: object, subject: str, columns: Names = None, tasks: Collection[object] = ()
) -> tuple[Any, Names]:
    """Returns a table without a column of item ids, and the names of its rows (None: no names).

    Features and labels of each method come through here first.

    The names are those of the index, or of a column that is named as item ids are in files, if
    nobody set the index.

    Args:
        table: features or labels; a frame, a Series, or anything without names.
        subject: its name in errors.
        columns: those that the table has to have; None for frames that are trained on.
        tasks: the items of the annotations. A column such as `key` or `row`, which may be a
            feature, has ids only if these are among them.

    Raises:
        DataError: no table, two columns of ids, or ids that are missing or stand twice.
    """
    if isinstance(table, (dict, set, str, bytes, Iterator)) or not hasattr(table, "__len__"):
        raise DataError(
            f"{subject}: expected an array or a table, received {type(table).__name__}. Pass an"
            " array [instances, features] or a DataFrame."
        )
    frame = as_frame(table)
    index: Any = getattr(table if frame is None else frame, "index", None)
    if not hasattr(index, "is_unique"):
        return table, None
    names = None if numbered(index) else as_name_array(index)
    if frame is None:
        return table, names
    ids = _id_columns(frame, columns, tasks)
    if not ids or len(frame.columns) == 1:
        return frame, names
    title = ids[0]
    column = frame[title]
    is_set = index.name is not None or getattr(index.dtype, "kind", "O") not in "iu"
    if len(ids) > 1 or (is_set and as_name_array(index).tolist() != column.tolist()):
        also = f"column {ids[1]!r}" if len(ids) > 1 else "the index"
        raise DataError(
            f"{subject}: column {title!r} and {also} both name the rows. Drop one, or rename the"
            " column if it is a feature"
        )
    for problem, bad in (("no id", column.isna()), ("{} again", column.duplicated())):
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"{subject}: row {row}: column {title!r} has"
                f" {problem.format(spelt(column.iloc[row]))}. Correct it, or rename the column if"
                " it is a feature."
            )
    return frame.drop(columns=title), as_name_array(column)


def _id_columns(frame: Frame, columns: Names, tasks: Collection[object]) -> list[Any]:
    """Returns the names of columns that have ids of the rows, see `split_names`."""
    others = frame.columns.tolist()
    if columns is not None:
        others = without(others, columns.tolist())
    ids = roles_of(others)["task"] or [name for name in others if folded(name) == "id"]
    if not ids:
        for name in others:
            if folded(name) in SECOND_ITEM and (
                columns is not None or (tasks and set(tasks) <= set(frame[name].tolist()))
            ):
                ids.append(name)
    # A measured value has the name of ids at times, such as `unit` or `sample`.
    fractions = frame[ids].select_dtypes(np.floating) % 1 > 0
    measured = fractions.columns[fractions.any()].tolist()
    return without(ids, measured)


def arrange_columns(frame: Frame, columns: Names, subject: str) -> Any:
    """Returns a frame's columns in the order of training.

    Raises:
        DataError: columns that training did not have, or that are missing.
    """
    if as_frame(frame) is None:
        return frame
    present = frame.columns.tolist()
    wanted = list(range(len(present))) if columns is None else columns.tolist()
    if (columns is None or numbered(frame.columns)) and set(wanted) != set(present):
        return frame  # one of them has no names
    if wanted == present:
        return frame
    missing = without(wanted, present)
    new = without(present, wanted)
    if missing or len(present) > len(wanted):
        problem = f"{missing[0]!r} is missing" if missing else f"{(new or present)[0]!r} is new"
        raise DataError(
            f"{subject}: column {problem}. Pass the columns of training: {listed(wanted, 8, repr)}"
        )
    return frame[wanted]


def column_names(frame: Frame, subject: str = "features") -> Names:
    """Returns the names of a frame's columns, None of what has none.

    Raises:
        DataError: a name stands twice.
    """
    columns = getattr(frame, "columns", None)
    if columns is None or numbered(columns):
        return None
    if not columns.is_unique:
        twice = columns[columns.duplicated()][0]
        raise DataError(f"{subject}: two columns are named {twice!r}. Rename one of them.")
    return as_name_array(columns)


def _is_reordered(names: Array, others: Array) -> bool:
    """Whether names are the same as others, in another order."""
    first = list(map(str, names.tolist()))
    second = list(map(str, others.tolist()))
    return first != second and sorted(first) == sorted(second)


def _ambiguous(subject: str) -> DataError:
    return DataError(
        "features: the index has row numbers in another order, and the"
        f" {subject} have no names. Pass features.to_numpy() if row i is instance i, or"
        " features.sort_index() if the index is the instance's number."
    )


def align_labels(labels: Any, table: Any, rows: Names, subject: str = "labels") -> Any:
    """Returns labels of rows by their names, or as they are if one side has none.

    Args:
        labels: `[M]`; a Series is matched by its index.
        table: the features, see `split_names`.
        rows: the names of its rows, or None.
        subject: the labels' name in errors.

    Raises:
        DataError: a row without label, or names that cannot decide.
    """
    index = getattr(labels, "index", None)
    if not hasattr(index, "is_unique"):
        return labels
    names = as_name_array(index)
    if rows is None or numbered(index):
        if rows is None and numbered(getattr(table, "index", None)):
            rows = np.arange(len(table))
        if rows is not None and _is_reordered(rows, names):
            raise _ambiguous(subject)
        return labels
    if rows.tolist() == names.tolist():
        return labels
    at = matched(rows, names, subject)
    if (at < 0).any():
        raise DataError(
            f"{subject}: {spelt(rows[at < 0][0])} of the features' index has no label. Add it,"
            f" or pass {subject}.to_numpy() if row i is label i."
        )
    return labels.iloc[at]


# --------------------------------------------------------------------------- numbers


def check_features(features: Features, subject: str = "features") -> Array:
    """Returns features as finite numbers `[N, ...]` of their own precision.

    Args:
        features: an array, a DataFrame (also with nullable, boolean or object columns of numbers)
            or a sparse matrix, which becomes dense.
        subject: their name in errors.

    Raises:
        DataError: not numbers, fewer than two dimensions, or a NaN or infinite value (with its row
            and column).
    """
    array = _as_numbers(features, subject)
    check_numbers(array, subject)
    return array


def check_numbers(array: Array, subject: str) -> None:
    """Raises DataError for an array that is no `[N, ...]` finite numbers, without copying it."""
    if array.dtype.kind not in "fiub":
        raise DataError(f"{subject}: expected numbers, received dtype {array.dtype}")
    if array.ndim < 2 or array.shape[-1] == 0:
        raise DataError(f"{subject}: expected shape [instances, features], received {array.shape}")
    _check_finite(array, array, subject)


def _texts_as_array(features: Features) -> Array:
    """Returns texts as an array; NumPy would make the text "nan" of NaN in a list."""
    if isinstance(features, (list, tuple)) and any(isinstance(text, str) for text in features):
        return np.array(features, dtype=object)
    return np.asarray(features)


def is_text(features: Features) -> bool:
    """Whether features are texts: one dimension, of strings, bytes or missing ones."""
    array = _texts_as_array(features)
    if array.ndim != 1:
        return False
    if array.dtype.kind != "O":
        return array.dtype.kind in "UST"
    has_text = False
    for value in array.tolist():
        has_text |= isinstance(value, (str, bytes))
        if isinstance(value, (int, float)) and value == value:
            return False
    return has_text


def check_texts(features: Features, subject: str = "texts") -> Array:
    """Returns texts `[N]` as an array of `str`; an empty list has none.

    Raises:
        DataError: something else.
    """
    if np.shape(features) != (0,) and not is_text(features):
        array = np.asarray(features)
        advice = " Pass the column of texts." * (array.ndim == 2)
        raise DataError(
            f"{subject}: expected texts, one per instance, received {array.dtype} of shape"
            f" {array.shape}.{advice}"
        )
    texts = _texts_as_array(features).astype(object)
    for row, text in enumerate(texts.tolist()):
        if not isinstance(text, str):
            raise DataError(
                f"{subject}: row {row}: expected a text, received {text!r}. Fill it in (with an"
                " empty text, say), decode bytes, or leave the row out."
            )
    return texts


def as_single(array: Array, subject: str, scaling: Floats | None = None) -> Floats32:
    """Returns finite numbers as float32, first rescaled in float64 if there is a `rescaling`.

    No other function makes float32 of what a method is fitted to or predicts.

    Args:
        array: numbers `[N, ...]`.
        subject: their name in errors.
        scaling: `[2, d]` see `rescaling`.

    Raises:
        DataError: a number that float32 does not reach.
    """
    with np.errstate(over="ignore"):
        if scaling is None:
            single = array.astype(np.float32, copy=False)
        else:
            middle, half = scaling
            single = np.empty(array.shape, np.float32)
            for rows in _row_blocks(array):
                single[rows] = (array[rows] - middle) / half
    _check_finite(single, array, subject)
    return single


def _row_blocks(array: Any) -> Iterator[slice]:
    """Yields rows of about 8 MB, so that what is computed of a matrix needs no copy of it."""
    rows = max(1, (1 << 20) // max(math.prod(array.shape[1:]), 1))
    for start in range(0, len(array), rows):
        yield slice(start, start + rows)


def _blocks(features: Any) -> Iterator[tuple[Any, Array]]:
    """Yields positions and numbers `[n, d]` of features in memory or out of it."""
    if isinstance(features, np.ndarray):
        blocks: Any = ((rows, features[rows]) for rows in _row_blocks(features))
    else:
        blocks = features.blocks(next(_row_blocks(features)).stop)
    for rows, block in blocks:
        yield rows, block.reshape(-1, block.shape[-1])


def _check_finite(values: Array, array: Array, subject: str) -> None:
    """Raises DataError for values that are not finite; `array` has the numbers to show."""
    for rows in _row_blocks(values):
        finite = np.isfinite(values[rows])
        if not finite.all():
            row, *column = np.argwhere(~finite)[0].tolist()
            position = (rows.start + row, *column)
            raise DataError(
                f"{subject}: {_shown(position)}: expected a finite number, received"
                f" {array[position]}"
            )


def rescaling(features: Any) -> Floats | None:
    """Returns the middle and half the range `[2, d]` of columns that float32 cannot hold.

    These are columns whose values it moves by more than `LOST` (seconds of an epoch), or that it
    does not reach. Others have 0 and 1. None: float32 holds all columns.

    Args:
        features: `[N, ..., d]`, an array or `LazyFeatures`; of images each channel is a column.

    Raises:
        DataError: a number that float32 does not reach, so far from the others of its column that
            they would become equal.
    """
    if np.can_cast(features.dtype, np.float32) or not len(features):
        return None
    moved = np.zeros(features.shape[-1])
    low = moved + np.inf
    high = -low
    with np.errstate(over="ignore"):
        for _, block in _blocks(features):
            exact = block.astype(np.float64, copy=False)
            np.minimum(low, exact.min(axis=0), out=low)
            np.maximum(high, exact.max(axis=0), out=high)
            rounding = np.abs(exact.astype(np.float32) - exact)
            np.maximum(moved, rounding.max(axis=0), out=moved)
    middle = high / 2 + low / 2
    half = high / 2 - low / 2
    values = math.prod(features.shape[:-1])
    varies = half > values * np.finfo(np.float64).eps * np.abs(middle)
    _check_reached(features, np.flatnonzero(~np.isfinite(moved)))
    representable = np.where(varies, moved <= LOST * half, np.isfinite(moved))
    if representable.all():
        return None
    half[~varies] = 1.0
    return np.where(representable, [[0.0], [1.0]], [middle, half])


def _check_reached(features: Any, columns: Indices) -> None:
    """Raises DataError for a number that float32 does not reach among others that it holds."""
    most = np.finfo(np.float32).max
    for column in columns.tolist():
        exact = np.empty((len(features), math.prod(features.shape[1:-1])))
        for rows, block in _blocks(features):
            exact[rows] = block[:, column].reshape(-1, exact.shape[1])
        sizes = np.abs(exact)
        reached = sizes[(sizes > 0) & (sizes <= most)]
        if len(reached) and reached.max() < LOST * sizes.max():
            row, place = np.argwhere(sizes == sizes.max())[0].tolist()
            raise DataError(
                f"features: {_shown((row, column))}: {exact[row, place]} is out of reach of"
                f" float32 ({most:.3g}), and the other numbers of the column would become equal"
                " beside it. Correct it, or take the logarithm of the column."
            )


def _as_numbers(features: Features, subject: str) -> Array:
    if hasattr(features, "toarray"):  # a sparse matrix
        features = features.toarray()
    frame = as_frame(features)
    array = np.asarray(unmasked(features if frame is None else frame))
    if array.dtype == object and array.ndim > 1:
        import pandas as pd

        missing = pd.isna(array)
        for position, value in np.ndenumerate(array):
            if not missing[position] and not isinstance(value, (numbers.Real, np.bool_)):
                hint = ". Pass a column of texts by itself" * isinstance(value, str)
                raise DataError(
                    f"{subject}: {_shown(position)}: expected numbers, received {value!r}{hint}"
                )
        array = np.where(missing, np.nan, array).astype(np.float64)
    return array


def _shown(position: tuple[int, ...]) -> str:
    row, *inner = position
    column = inner[0] if len(inner) == 1 else tuple(inner)
    return f"row {row}, column {column}"


# --------------------------------------------------------------------------- annotations


def as_annotations(annotations: Any, num_classes: int | None = None) -> Annotations:
    """Returns `Annotations` from annotations in any form.

    Args:
        annotations: `Annotations`; a frame (or what has `to_pandas`) with a row per label, in
            columns `task`, `worker`, `label` or their aliases; a frame with a row per instance and
            a column per annotator, of class codes with -1 or of labels with NaN for missing ones;
            or a dense `[N, R]` matrix of class codes with -1 (or masked) for missing ones.
        num_classes: C of a matrix of codes; by default one more than the largest, of a frame
            without -1 as many as occur.

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
    items = roles["task"]
    if roles["worker"] or roles["label"] or (items and frame[items[0]].duplicated().any()):
        missing = ""
        arguments = []
        for role, columns in roles.items():
            if not columns:
                missing = missing or role
            column = columns[0] if len(columns) == 1 else role.upper()
            arguments.append(f"{role}={column!r}")
        raise DataError(
            f"annotations: no column is a {missing} among {listed(frame.columns, 8, repr)}. Name"
            " the columns instead of the words in capitals, and pass the result:\n"
            "  from neucrowd_tf import Annotations\n"
            f"  annotations = Annotations.from_frame(annotations, {', '.join(arguments)})"
        )
    frame, names = split_names(frame, "annotations")
    frame = frame.apply(without_blanks)
    if all(getattr(dtype, "kind", "O") in "iuf" for dtype in frame.dtypes):
        cells = frame.to_numpy(np.float64, na_value=np.nan)
        if not np.isnan(cells).any():
            crowd = Annotations.from_dense(
                cells, num_classes=num_classes, instance_names=names, annotator_names=frame.columns
            )
            if num_classes is None and not (cells == -1).any():  # labels, not codes
                return crowd.align(class_names=np.unique(crowd.labels))
            return crowd
        if (cells == -1).any():
            raise DataError(
                "annotations: missing labels are both -1 and NaN. Use frame.replace(-1, np.nan), or"
                " Annotations.from_wide_frame(frame) if -1 is a class."
            )
    if frame.isna().to_numpy().any():
        if names is not None:
            frame = frame.set_axis(names, axis=0)
        return Annotations.from_wide_frame(frame)
    columns = [f"{name!r} of {dtype}" for name, dtype in frame.dtypes.items()]
    raise DataError(
        f"annotations: expected {SHAPES}, with -1 or NaN for missing labels; received columns"
        f" {listed(columns, 8)}. If each column is an annotator and no label is missing, pass"
        " Annotations.from_wide_frame(frame)."
    )


def align_annotations(
    crowd: Annotations, rows: Names, size: int, annotations: object
) -> Annotations:
    """Returns annotations with an instance for each row of the features, in their order.

    Args:
        crowd: the annotations.
        rows: the names of the rows; None without names.
        size: number of rows.
        annotations: what the annotations were made of.

    Raises:
        DataError: annotations that cannot be matched with certainty.
    """
    tasks = crowd.instance_names.tolist()
    if rows is None:
        frame = as_frame(annotations)
        is_long = frame is not None and all(roles_of(frame.columns).values())
        numbers = list(range(size))
        is_moved = crowd.named and tasks != numbers
        if is_long or (is_moved and (frame is not None or set(tasks) == set(numbers))):
            reading = "task k is row k" if is_long else "row i is instance i"
            warn(
                "the rows of the features have no names, those of the annotations have:"
                f" {reading}. Pass a frame whose index names the tasks (in a Pipeline:"
                ' set_output(transform="pandas")), or Annotations in the order of the rows',
                UserWarning,
                stacklevel=5,
            )
        if is_long:
            return _by_row_number(crowd, size)
        return crowd
    if tasks == rows.tolist():
        return crowd
    if not crowd.named:
        if _is_reordered(crowd.instance_names, rows):
            raise _ambiguous("annotations")
        return crowd  # a matrix: row i is instance i
    names = set()
    for name in rows.tolist():
        if name in names:
            raise DataError(f"features: the index has {spelt(name)} twice. Keep one row per task.")
        names.add(name)
    return crowd.align(rows)


def _by_row_number(crowd: Annotations, size: int) -> Annotations:
    for name in crowd.instance_names.tolist():
        if not (isinstance(name, int) and 0 <= name < size):
            raise DataError(
                "features: the rows have no names, and the task"
                f" {spelt(name)} is not a row number from 0 to {size - 1}. Use"
                " features.set_index(...), or Annotations.from_frame(frame,"
                " instance_names=tasks in the rows' order)."
            )
    return crowd.align(np.arange(size))
