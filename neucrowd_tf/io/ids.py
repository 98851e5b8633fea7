"""Ids of tasks, annotators and classes: as arrays that keep their types, and as they are spelt."""

from __future__ import annotations

from collections.abc import Sequence
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
