"""Ids, the codes that stand for them, and checks of both, for
:mod:`neucrowd_tf.annotations.core`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError, RowError
from neucrowd_tf.io.names.ids import as_name_array, spelt

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

MISSING = -1
MOST_VOTES = 1_000_000
Duplicates = Literal["error", "first", "last", "all"]


def code_array(values: ArrayLike, what: str) -> NDArray[np.int32]:
    """Returns `values` as one-dimensional int32 codes, refusing what is not a whole number."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(
            f"{what}: expected a one-dimensional array of codes, received shape {array.shape}"
        )
    if array.dtype.kind not in "iu":
        if array.size and array.dtype.kind != "b":
            raise DataError(
                f"{what}: expected integer codes, received dtype {array.dtype}; use"
                " Annotations.from_arrays for names"
            )
        array = array.astype(np.int32)
    return array.astype(np.int32, copy=False)


def check_range(codes: NDArray[np.int32], upper: int, what: str) -> None:
    if codes.size and (codes.min() < 0 or codes.max() >= upper):
        row = int(np.flatnonzero((codes < 0) | (codes >= upper))[0])
        raise RowError(row, f"{what}: expected a code from 0 to {upper - 1}, received {codes[row]}")


def coded_triples(*columns: ArrayLike) -> list[NDArray[np.int32]]:
    """Returns instances, annotators and labels as codes of one length."""
    names = ("instances", "annotators", "labels")
    triple = [code_array(codes, what) for codes, what in zip(columns, names, strict=True)]
    if len({len(codes) for codes in triple}) != 1:
        raise DataError(
            "expected instances, annotators and labels of one length, received"
            f" {[len(codes) for codes in triple]}"
        )
    return triple


def size_of(
    codes: NDArray[np.int32],
    size: int | None,
    names: Sequence[Hashable] | NDArray[Any] | None,
    what: str,
) -> int:
    """Returns how many things codes stand for: the size or the names that were given, or what the
    codes need; refuses codes beyond that.
    """
    if size is None:
        size = int(codes.max(initial=-1)) + 1 if names is None else len(names)
    check_range(codes, size, what)
    return size


def names_for(
    names: Sequence[Hashable] | NDArray[Any] | None, size: int, what: str
) -> NDArray[Any]:
    """Returns `size` names as an array; integers 0..size-1 when none are given."""
    if names is None:
        return np.arange(size)
    array = as_name_array(names)
    if len(array) != size:
        raise DataError(f"{what}: expected {size} names, received {len(array)}")
    return array


def factorize(
    values: Any, known: NDArray[Any] | None, what: str, sort: bool
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Turns ids into codes.

    Args:
        values: `[A]` hashable ids.
        known: the allowed ids in their order, or None to take those that occur.
        what: the column's name, for the error.
        sort: whether ids that occur are sorted (where they can be compared) or kept in order of
            appearance.

    Returns:
        codes `[A]` int32 and the names they index.

    Raises:
        DataError: a missing id, or one that `known` does not hold.
    """
    array = (
        values if isinstance(values, (np.ndarray, pd.Series, pd.Index)) else as_name_array(values)
    )
    if isinstance(array.dtype, pd.CategoricalDtype):
        # A categorical's small codes stand for its values, so that each distinct value is looked at
        # once.
        categories = pd.Series(array).cat
        codes, found = pd.factorize(categories.codes.to_numpy())
        absent = found < 0
        codes = np.where(absent[codes], MISSING, codes) if absent.any() else codes
        uniques: Any = as_name_array(categories.categories)[found]
    else:
        codes, uniques = pd.factorize(array)
    if len(codes) and codes.min() < 0:
        raise RowError(
            int(np.flatnonzero(codes < 0)[0]),
            f"column {what!r}: expected a value, received a missing one",
        )
    names = as_name_array(uniques)
    if known is None:
        if sort:
            try:
                order = np.argsort(names, kind="stable")
            except TypeError:  # ids of several types have no common order
                return codes.astype(np.int32), names
            rank = np.empty(len(order), dtype=np.int32)
            rank[order] = np.arange(len(order), dtype=np.int32)
            return rank[codes], names[order]
        return codes.astype(np.int32), names
    mapped = matched(names, known, what).astype(np.int32)
    if (mapped < 0).any():
        unknown = int(np.flatnonzero(mapped < 0)[0])
        row = int(np.flatnonzero(codes == unknown)[0])
        shown = ", ".join(repr(name) for name in known[:5].tolist()) + (
            ", ..." if len(known) > 5 else ""
        )
        raise RowError(
            row, f"column {what!r}: expected one of {shown}, received {spelt(names[unknown])}"
        )
    return mapped[codes], known


def matched(names: NDArray[Any], wanted: NDArray[Any], what: str) -> NDArray[np.int64]:
    """Returns where each of `names` stands among `wanted`, -1 where it does not.

    Raises:
        DataError: a name that is wanted twice.
    """
    position = {name: place for place, name in enumerate(wanted.tolist())}
    if len(position) != len(wanted):
        twice = wanted[pd.Series(wanted).duplicated().to_numpy()][0]
        raise DataError(f"{what} names: expected each name once, received {spelt(twice)} again")
    return np.array([position.get(name, MISSING) for name in names.tolist()], dtype=np.int64)


def rows_to_keep(
    instances: NDArray[np.int32],
    annotators: NDArray[np.int32],
    instance_names: NDArray[Any],
    annotator_names: NDArray[Any],
    rule: Duplicates,
) -> NDArray[Any] | None:
    """Returns which of `[A]` annotations stay where one annotator labelled one instance twice (a
    bool mask), or None for all of them.

    Raises:
        DataError: there is such a pair, and the rule is "error".
    """
    if rule not in ("error", "first", "last", "all"):
        raise DataError(
            f"duplicates: expected 'error', 'first', 'last' or 'all', received {rule!r}"
        )
    if rule == "all":
        return None
    cells = len(instance_names) * max(len(annotator_names), 1)
    keys: NDArray[Any] = instances.astype(np.uint32 if cells < 2**32 else np.int64)
    np.multiply(keys, keys.dtype.type(len(annotator_names)), out=keys)
    np.add(keys, annotators.astype(keys.dtype), out=keys)
    if rule == "error":
        ordered = np.sort(keys)
        if not (ordered[1:] == ordered[:-1]).any():
            return None
    twice = pd.Series(keys).duplicated(keep="last" if rule == "last" else "first").to_numpy()
    if not twice.any():
        return None
    if rule == "error":
        row = int(np.flatnonzero(twice)[0])
        task, worker = instance_names[instances[row]], annotator_names[annotators[row]]
        raise RowError(
            row,
            f"columns 'task' and 'worker': expected each pair once, received task {spelt(task)} and"
            f" worker {spelt(worker)} again (duplicates='first' or 'last' keeps one; for a"
            " table `neucrowd convert --from=table --duplicates=first`)",
        )
    return ~twice


def dense_codes(matrix: ArrayLike) -> NDArray[np.int64]:
    """Returns an `[N, R]` matrix of labels with -1 for missing ones as int64.

    Raises:
        DataError: not two-dimensional, not whole numbers, or a label below -1.
    """
    array = np.asarray(matrix)
    if array.ndim != 2:
        raise DataError(
            f"dense annotations: expected shape [instances, annotators], received {array.shape}"
        )
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            row, column = np.argwhere(~np.isfinite(array))[0]
            raise RowError(
                row,
                f"annotator {column}: expected a label or -1, received {array[row, column]}; use"
                " from_wide_frame for NaN",
            )
        if (array != np.round(array)).any():
            row, column = np.argwhere(array != np.round(array))[0]
            raise RowError(
                row, f"annotator {column}: expected a whole number, received {array[row, column]}"
            )
    elif array.dtype.kind not in "iub":
        raise DataError(
            "dense annotations: expected whole numbers with -1 for missing, received dtype"
            f" {array.dtype}"
        )
    codes: NDArray[np.int64] = array.astype(np.int64, copy=False)
    if codes.size and codes.min() < MISSING:
        row, column = np.argwhere(codes < MISSING)[0]
        raise RowError(
            row,
            f"annotator {column}: expected a label from 0 or -1 for missing, received"
            f" {codes[row, column]}",
        )
    return codes


def vote_matrix(counts: ArrayLike) -> NDArray[Any]:
    """Returns `[N, C]` vote counts as an array.

    Raises:
        DataError: not two-dimensional, negative, or fractional.
    """
    votes = np.asarray(counts)
    if votes.ndim != 2 or votes.dtype.kind not in "iuf":
        raise DataError(
            f"votes: expected whole numbers of shape [instances, classes], received {votes.dtype}"
            f" of shape {votes.shape}"
        )
    bad = (
        np.argwhere(~np.isfinite(votes) | (votes < 0) | (votes != np.round(votes)))
        if votes.dtype.kind == "f"
        else np.argwhere(votes < 0)
    )
    if len(bad):
        row, column = bad[0]
        raise RowError(
            row, f"class {column}: expected a count from 0, received {votes[row, column]}"
        )
    total = votes.sum(axis=1, dtype=np.float64)
    if total.max(initial=0) > MOST_VOTES:
        row = int(total.argmax())
        raise RowError(
            row, f"expected at most {MOST_VOTES:,} votes of an instance, received {total[row]:.9g}"
        )
    return votes
