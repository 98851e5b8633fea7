"""Ids of tasks, annotators and classes: as arrays that keep their types, as they are spelt, and
which of them are distinct.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from numpy.typing import NDArray


def as_name_array(values: Any) -> NDArray[Any]:
    """Returns hashable ids as a one-dimensional array that keeps their types (ints as int64,
    anything mixed as object).
    """
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iub":
        return values
    if isinstance(values, (pd.Series, pd.Index)) and values.dtype.kind in "iub":
        return np.asarray(values)
    items = (
        values.tolist() if isinstance(values, (np.ndarray, pd.Series, pd.Index)) else list(values)
    )
    kinds = {type(item) for item in items}
    if kinds == {int}:
        return np.asarray(items)
    if kinds == {bool}:
        return np.asarray(items, dtype=bool)
    return np.fromiter(items, dtype=object, count=len(items))  # one cell an id, tuples too


def spelt(name: Any) -> str:
    """Returns how an error message shows an id: a NumPy number as the plain number."""
    return repr(name.item() if isinstance(name, np.generic) else name)


def listed(text: str) -> list[str]:
    """Returns the names that a flag lists, without spaces around them: separated by commas, in
    quotes where they hold one, as a CSV has them (`"Smith, A.",bot`).
    """
    try:
        (names,) = csv.reader([text], skipinitialspace=True, strict=True) if text else ([""],)
    except (csv.Error, ValueError):  # a quote within a name
        names = text.split(",")
    return [name.strip() for name in names]


def as_list(names: Iterable[str]) -> str:
    """Returns names as a flag takes them, see `listed`."""
    return ",".join(
        '"{}"'.format(name.replace('"', '""')) if "," in name or name[:1] == '"' else name
        for name in names
    )


def plain_integers(values: Sequence[str]) -> bool:
    """Whether every text is how Python spells a whole number, so that turning it into one loses
    nothing.
    """
    return all(
        value.removeprefix("-").isdigit()
        and value.isascii()
        and len(value) < 19
        and str(int(value)) == value
        for value in values
    )


def typed_names(texts: Sequence[str]) -> NDArray[Any]:
    """Returns names as whole numbers where every text is how one is spelt, else as text."""
    return (
        np.array([int(text) for text in texts])
        if plain_integers(texts)
        else as_name_array(list(texts))
    )


def distinct(column: Any) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """Returns a column's distinct names, how often each occurs and where first."""
    names, codes = coded(column)
    return names, *occurrences(codes, len(names))


def coded(column: Any) -> tuple[list[Any], np.ndarray]:
    """Returns a column's distinct names, and for each row which it has (-1: none). `1`, `True` and
    `"1"` are different names.
    """
    if isinstance(column, pd.Series) and isinstance(column.dtype, pd.CategoricalDtype):
        codes, names = column.cat.codes.to_numpy(), column.cat.categories.tolist()
    elif isinstance(column, np.ndarray) and column.dtype.kind in "iub":
        found, codes = np.unique(column, return_inverse=True)
        names = found.tolist()
    else:
        given = column.tolist() if hasattr(column, "tolist") else list(column)
        codes, kinds = pd.factorize(as_name_array([(type(item), item) for item in given]))
        names = [name for _, name in kinds]
    return names, codes


def occurrences(codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns how often each of `size` names occurs and where first."""
    there = codes >= 0
    counts = np.bincount(codes[there], minlength=size)
    first = np.full(size, -1)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return counts, first
