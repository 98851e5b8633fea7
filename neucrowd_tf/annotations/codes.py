"""Ids, their codes, and the checks of both."""

from __future__ import annotations

import contextlib
import difflib
import sys
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neucrowd_tf.declare.types import Array, Codes32, Frame, Indices, Integers, NamedValues
from neucrowd_tf.errors import DataError, RowError, warn
from neucrowd_tf.names import (
    as_name_array,
    listed,
    normalised,
    places_of,
    positions,
    roles_of,
    spelt,
    text_order,
    without,
)

MISSING = -1
MOST_VOTES = 1_000_000
MOST_CODE = np.iinfo(np.int32).max
Duplicates = Literal["error", "first", "last", "all"]
Names: TypeAlias = Sequence[Hashable] | Array


def coded_triples(*columns: ArrayLike) -> list[Codes32]:
    """Returns instances, annotators and labels as int32 codes of one length.

    Raises:
        DataError: values that are no codes, or of different lengths.
    """
    arrays = list(map(np.asarray, columns))
    titles = ("instances", "annotators", "labels")
    for array, title in zip(arrays, titles, strict=True):
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iub"):
            raise DataError(
                f"{title}: expected a one-dimensional array of integer codes, received"
                f" {array.dtype} of shape {array.shape}. Use Annotations.from_arrays for names."
            )
    sizes = list(map(len, arrays))
    if len(set(sizes)) != 1:
        raise DataError(
            f"expected instances, annotators and labels of one length, received {sizes}"
        )
    for array, title in zip(arrays, titles, strict=True):
        if array.size and int(array.max()) > MOST_CODE:
            row = int(array.argmax())
            raise RowError(row, f"{title}: code {array[row]} is too large. Number them from 0.")
    return [array.astype(np.int32, copy=False) for array in arrays]


def size_of(codes: Codes32, size: int | None, names: Names | None, title: str) -> int:
    """Returns the number of things that have codes: `size`, or that of the names or codes.

    Raises:
        RowError: a code beyond it.
    """
    if size is None:
        size = int(codes.max(initial=-1)) + 1 if names is None else len(names)
    if codes.size and (codes.min() < 0 or codes.max() >= size):
        row = int(np.flatnonzero((codes < 0) | (codes >= size))[0])
        problem = f"expected a code from 0 to {size - 1}, received {codes[row]}"
        raise RowError(row, f"{title}: {problem}")
    return size


def numbered(index: object) -> bool:
    """Whether a pandas index numbers the rows, as one that nobody set does."""
    return getattr(index, "start", None) == 0 and getattr(index, "step", None) == 1


def axis_names(table: object, axis: str) -> Names | None:
    """Returns the names of a frame's rows ("index") or "columns"; None without names."""
    names = getattr(as_frame(table), axis, None)
    if names is None or numbered(names):
        return None
    return names


def names_for(names: Names | None, size: int, title: str) -> Array:
    """Returns `size` names as an array; integers 0..size-1 when none are given.

    Raises:
        DataError: another number of names, or one twice; instances may be there twice (a sample).
    """
    if names is None:
        return np.arange(size)
    array = as_name_array(names)
    if len(array) != size:
        raise DataError(f"{title}: expected {size} names, received {len(array)}")
    if title != "instance_names":
        matched(array[:0], array, title.removesuffix("_names"))
    return array


def unmasked(values: Any, missing: Any = None) -> Any:
    """Returns values with a missing one (by default NaN or None) for each that NumPy masks."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if missing is None:
        is_number = values.dtype.kind in "iubf"
        missing = np.nan if is_number else None
        values = values.astype(float if is_number else object)
    return values.filled(missing)


def classes_in_order(values: Any) -> list[Any] | None:
    """Returns the categories of an ordered Categorical that occur, None of other values."""
    if not getattr(getattr(values, "dtype", None), "ordered", False):
        return None
    used = set(values.tolist())
    return whole_numbers(list(filter(used.__contains__, values.dtype.categories.tolist())))


def check_spelling(names: Iterable[Any], title: str) -> None:
    """Raises DataError for names that differ only in case, spaces or Unicode form."""
    seen: dict[str, str] = {}
    for name in names:
        if isinstance(name, str) and seen.setdefault(normalised(name), name) != name:
            raise DataError(
                f"{title}s {seen[normalised(name)]!r} and {name!r} differ only in case, spaces or"
                f" Unicode form. Correct one of them, or name both in class_names"
            )


def warn_of_alike(names: Array, title: str) -> None:
    """Warns of ids that differ only in outer spaces or Unicode form: they are several."""
    texts = [name for name in names if isinstance(name, str)]
    if all(name.isascii() and name == name.strip() for name in texts):
        return  # they are what they look like
    bare = [unicodedata.normalize("NFC", name.strip()) for name in texts]
    if more := len(bare) - len(set(bare)):
        problem = f"{more} more names differ only in spaces or Unicode form. Correct them if needed"
        warn(f"column {title!r}: {problem}.", stacklevel=5)


def factorize(
    values: object, names: object, title: str, sort: bool = False
) -> tuple[Codes32, Array]:
    """Returns the codes of ids `[A]` int32, and the names of the codes.

    Args:
        values: `[A]` hashable ids.
        names: the allowed ids in their order, or None for those that occur.
        title: the column's name, for the error.
        sort: whether ids that occur are sorted (if they can be compared, texts as in files) or in
            order of appearance; sorted ones that are whole numbers are ints, as missing values turn
            ints into floats.

    Raises:
        DataError: a missing id, or one that `names` does not contain.
    """
    import pandas as pd

    if names is None and sort:
        names = classes_in_order(values)
    values = unmasked(values)
    if not isinstance(values, (np.ndarray, pd.Series, pd.Index)):
        values = as_name_array(values)
    codes, distinct = pd.factorize(values)
    if len(codes) and codes.min() < 0:
        row = int(np.flatnonzero(codes < 0)[0])
        raise RowError(row, f"column {title!r}: expected a value, received a missing one")
    distinct = as_name_array(distinct)
    if sort:
        distinct = as_name_array(whole_numbers(distinct.tolist()))
    if names is None:
        order = np.arange(len(distinct))
        if not sort:
            warn_of_alike(distinct, title)
        else:
            every = distinct.tolist()
            check_spelling(every, title)
            if set(map(type, every)) == {str}:
                order = places_of(text_order(every), positions(every))
            else:
                with contextlib.suppress(TypeError):  # ids of several types have no common order
                    order = np.argsort(distinct, kind="stable")
        return np.argsort(order).astype(np.int32)[codes], distinct[order]
    allowed = as_name_array(names)
    places = matched(distinct, allowed, title).astype(np.int32)
    if (places < 0).any():
        unknown = int(np.flatnonzero(places < 0)[0])
        row = int(np.flatnonzero(codes == unknown)[0])
        shown = listed(allowed.tolist(), 5, repr)
        raise RowError(
            row, f"column {title!r}: expected one of {shown}, received {spelt(distinct[unknown])}"
        )
    return places[codes], allowed


def matched(names: Array, wanted: Array, title: str) -> Indices:
    """Returns the position of each of `names` among `wanted`, -1 if it is not there.

    Raises:
        DataError: a name that is wanted twice.
    """
    places: dict[Any, int] = {}
    for index, name in enumerate(wanted.tolist()):
        if places.setdefault(name, index) != index:
            raise DataError(f"{title} names: expected each name once, received {spelt(name)} again")
    return places_of(names.tolist(), places)


def as_frame(value: object) -> Frame:
    """Returns a DataFrame, also of what has `to_pandas` (a Hugging Face dataset), or None."""
    if hasattr(value, "to_pandas"):
        value = value.to_pandas()
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return value
    return None


def without_blanks(column: Any) -> Any:
    """Returns a frame's column in which blank texts are missing, as blank cells of files are."""
    blanks = []
    for value in column.unique() if column.dtype.kind == "O" else ():
        if isinstance(value, str) and not value.strip():
            blanks.append(value)
    return column.mask(column.isin(blanks)) if blanks else column


def label_columns(columns: Iterable[object], names: NamedValues) -> list[Any]:
    """Returns a frame's columns of tasks, workers and labels.

    Args:
        columns: all of them.
        names: by role, the column's name, or None for the only column with an alias of the role.

    Raises:
        DataError: no such column, or several.
    """
    every = list(columns)
    aliases = roles_of(without(every, names.values()))
    chosen = []
    for role, name in names.items():
        hits = [name] * every.count(name)
        if name is None:
            hits = aliases[role]
        if len(hits) != 1:
            close = difflib.get_close_matches(str(name or role), map(str, every), 1)
            hint = f" ({close[0]!r} comes close)" if close and not hits else ""
            raise DataError(
                f"frame: expected a column {name or role!r}, received {len(hits)} among"
                f" {', '.join(map(repr, every[:8]))}{hint}. Name it: from_frame(frame, {role}=...)."
            )
        chosen.append(hits[0])
    return chosen


def whole_numbers(labels: list[Any]) -> list[Any]:
    """Returns labels as ints if all of them are whole numbers."""
    for label in labels:
        if not isinstance(label, Real) or isinstance(label, bool) or label % 1 != 0:
            return labels
    return [*map(int, labels)]


def duplicates(keys: Array, rule: Duplicates) -> NDArray[np.intp]:
    """Returns the positions of the rows whose key an earlier row has (for "last" a later one)."""
    ordered = np.sort(keys)  # several times as fast as its order, which few crowds need
    if not (ordered[1:] == ordered[:-1]).any():
        return np.zeros(0, dtype=np.intp)
    order = np.argsort(keys, kind="stable")
    same = keys[order][1:] == keys[order][:-1]
    return np.sort(order[:-1][same] if rule == "last" else order[1:][same])


def rows_to_keep(
    instances: Integers,
    annotators: Integers,
    instance_names: Array,
    annotator_names: Array,
    rule: Duplicates,
) -> Array | None:
    """Returns which of `[A]` annotations stay (a bool mask), or None for all of them.

    Annotations of one instance by one annotator are duplicates.

    Raises:
        DataError: there are duplicates, and the rule is "error".
    """
    if rule not in ("error", "first", "last", "all"):
        raise DataError(
            f"duplicates: expected 'error', 'first', 'last' or 'all', received {rule!r}"
        )
    if rule == "all":
        return None
    cells = len(instance_names) * max(len(annotator_names), 1)
    keys: Array = instances.astype(np.uint32 if cells < 2**32 else np.int64)
    np.multiply(keys, keys.dtype.type(len(annotator_names)), out=keys)
    np.add(keys, annotators.astype(keys.dtype), out=keys)
    extra = duplicates(keys, rule)
    if not len(extra):
        return None
    if rule == "error":
        row = int(extra[0])
        task = instance_names[instances[row]]
        worker = annotator_names[annotators[row]]
        raise RowError(
            row,
            f"columns 'task' and 'worker': expected each pair once, received task {spelt(task)} and"
            f" worker {spelt(worker)} again (duplicates='first' or 'last' selects one)",
        )
    keep = np.ones(len(keys), dtype=bool)
    keep[extra] = False
    return keep


def dense_codes(matrix: ArrayLike) -> Indices:
    """Returns an `[N, R]` matrix of labels with -1 for missing ones as int64.

    Raises:
        DataError: not two-dimensional, not whole numbers, or a label below -1.
    """
    if isinstance(matrix, np.ma.MaskedArray) and matrix.dtype.kind in "bu":
        matrix = matrix.astype(np.float64)  # which can hold a missing one
    try:
        array = np.asarray(unmasked(matrix, MISSING))
    except ValueError:
        raise DataError(
            "dense annotations: expected as many labels in each row, with -1 for missing ones,"
            " received rows of different lengths"
        ) from None
    if array.ndim != 2 or array.dtype.kind not in "iubf":
        hint = ""
        if array.ndim == 1:
            hint = (
                ". Pass labels[:, None] for one label each; scikit-learn's cross_val_predict needs"
                ' method="predict"'
            )
        raise DataError(
            "dense annotations: expected whole numbers, with -1 for missing ones, of shape"
            f" [instances, annotators], received {array.dtype} of shape {array.shape}{hint}"
        )
    expected = "a label from 0 or -1 for a missing one (from_wide_frame reads NaN)"
    _check_cells(array, MISSING, "annotator", expected)
    if (array > MOST_CODE).any():
        raise DataError(
            f"dense annotations: {array.max()} is no code of a class. Use"
            " Annotations.from_wide_frame for names."
        )
    return np.asarray(array, dtype=np.int64)


def vote_matrix(counts: ArrayLike) -> Array:
    """Returns `[N, C]` vote counts as an array.

    Raises:
        DataError: not two-dimensional, negative, or fractional.
    """
    votes = np.asarray(unmasked(counts, 0))
    if votes.ndim != 2 or votes.dtype.kind not in "iuf":
        raise DataError(
            f"votes: expected whole numbers of shape [instances, classes], received {votes.dtype}"
            f" of shape {votes.shape}"
        )
    _check_cells(votes, 0, "class", "a count from 0")
    total = votes.sum(axis=1, dtype=np.float64)
    if total.max(initial=0) > MOST_VOTES:
        row = int(total.argmax())
        raise RowError(
            row, f"an instance has {total[row]:.9g} votes, at most {MOST_VOTES:,} are possible"
        )
    return votes


def _check_cells(matrix: Array, least: int, side: str, expected: str) -> None:
    """Raises RowError for the first cell that is no whole number from `least`."""
    bad = matrix < least
    if matrix.dtype.kind == "f":
        bad |= ~np.isfinite(matrix) | (matrix != np.round(matrix))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise RowError(row, f"{side} {column}: expected {expected}, received {matrix[row, column]}")


def encode_labels(
    labels: ArrayLike | Sequence[Hashable], class_names: Array, title: str = "labels"
) -> Indices:
    """Turns labels (class names) into class codes `[M]`.

    Raises:
        DataError: a label that is not among the classes; the message has its row.
    """
    array = unmasked(labels)
    if not isinstance(array, np.ndarray):
        array = as_name_array(array)
    if array.ndim != 1:
        raise DataError(
            f"{title}: expected a one-dimensional array of labels, received shape {array.shape}"
        )
    codes = matched(array, class_names, "class")
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        shown = ", ".join(map(repr, class_names[:8].tolist()))
        problem = f"expected one of the classes {shown}, received {array.tolist()[row]!r}"
        raise DataError(f"{title}: row {row}: {problem}")
    return codes
