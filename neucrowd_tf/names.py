"""Names of items, annotators and classes: their arrays and codes, and the aliases of columns."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import math
import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np

from neucrowd_tf.declare.types import Array, Indices

# Column names that always mean a role, compared after `folded`. Words in `_ID` may also end in id,
# ids or no. Frames in memory use them too.
_ID = {
    "task": "task item question instance unit orig subject hit example sample",
    "worker": "worker annotator performer rater coder labeler labeller judge participant turk"
    " amtworker",
}
_EXACT = {
    "task": "qid tasks items",
    "worker": "workers annotators labeledby annotatedby",
    "label": "label labels answer response annotation judgment judgement vote rating choice"
    " selectedanswer taskanswer",
}
ROLES = ("task", "worker", "label")
Name = TypeVar("Name")
# Names that may mean an item.
_SECOND = (
    "id index row key text textid sentence sentenceid tweet tweetid comment commentid post postid"
    " image imageid url urlid document documentid file fileid filename"
)
SECOND_ITEM = frozenset(_SECOND.split())
# A whole number as Python spells it, of at most 18 digits: all of them are within int64.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


def _aliases(role: str) -> frozenset[str]:
    names = _EXACT[role].split()
    for word in _ID.get(role, "").split():
        names += [word, f"{word}id", f"{word}ids", f"{word}no"]
    return frozenset(names)


ALIASES = {role: _aliases(role) for role in ROLES}


def among(names: Iterable[Name], others: Container[object]) -> list[Name]:
    """Returns the names that are also among others."""
    return [name for name in names if name in others]


def without(names: Iterable[Name], others: Container[object]) -> list[Name]:
    """Returns the names that are not among others."""
    return [name for name in names if name not in others]


def close_names(name: str, names: Iterable[str]) -> list[str]:
    """Returns the names that a misspelt one may mean: as a whole, or as one of their words."""
    every = sorted(names)
    close = difflib.get_close_matches(name, every)
    if close:
        return close
    return [other for other in every if difflib.get_close_matches(name, other.split("_"))][:3]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Returns a question with the names that a misspelt one may mean; "" if none is near."""
    close = close_names(name, names)
    if close:
        return f"Did you mean {' or '.join(close)}?"
    return ""


def folded(column: object) -> str:
    """Returns a column's name as aliases are compared: casefolded, letters and digits only."""
    return re.sub(r"[\W_]+", "", str(column).casefold())


def roles_of(columns: Iterable[object]) -> dict[str, list[Any]]:
    """Returns for each of task, worker and label the columns whose name is one of its aliases."""
    hits: dict[str, list[Any]] = {role: [] for role in ROLES}
    for column in columns:
        name = folded(column)
        for role in ROLES:
            if name in ALIASES[role]:
                hits[role].append(column)
    return hits


def as_name_array(values: Any) -> Array:
    """Returns hashable ids as a one-dimensional array that keeps their types.

    Whole numbers become int64 (an object array if one is beyond int64), truth values bool, anything
    else an object array, in which NumPy's numbers and texts are Python's.

    Args:
        values: in any container: a sequence, a Series, an array, a tensor.
    """
    if getattr(getattr(values, "dtype", None), "kind", "O") in "iub" and np.ndim(values) == 1:
        array = np.asarray(values)
        if array.dtype == bool:
            return array
        if array.dtype.kind in "iu" and np.can_cast(array.dtype, np.int64):
            return array.astype(np.int64, copy=False)
    items = _to_list(values)
    kinds = set(map(type, items))
    if any(issubclass(kind, np.generic) for kind in kinds):
        items = list(map(_plain, items))
        kinds = set(map(type, items))
    if kinds == {int} and min(items) >= -(2**63) and max(items) < 2**63:
        return np.asarray(items)
    if kinds == {bool}:
        return np.asarray(items, dtype=bool)
    return np.fromiter(items, dtype=object, count=len(items))  # one cell per id, tuples too


def _plain(name: object) -> object:
    """Returns NumPy's numbers and texts as Python's.

    Not dates and durations: `item` turns those in nanoseconds into integers.
    """
    if isinstance(name, np.generic) and name.dtype.kind not in "mM":
        return name.item()
    return name


def _to_list(values: Any) -> list[Any]:
    """Returns values as a list; numbers of arrays and tables are Python's own."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        return list(values)
    if hasattr(values, "tolist"):  # NumPy, pandas
        return list(values.tolist())
    if hasattr(values, "to_pylist"):  # Arrow
        return list(values.to_pylist())
    if not hasattr(values, "__array__") or not hasattr(values, "shape"):
        return list(values)
    # TensorFlow's texts are bytes.
    array = np.asarray(values).tolist()
    return [item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in array]


def normalised(name: str) -> str:
    """Returns what two spellings of a name have in common: NFKC, no outer spaces, casefolded."""
    return unicodedata.normalize("NFKC", name).strip().casefold()


def spelt(name: object) -> str:
    """Returns how an error message shows an id: NumPy's numbers and dates without their type."""
    plain = _plain(name)
    return str(name) if isinstance(plain, np.generic) else repr(plain)


def plain_integers(values: Sequence[str]) -> bool:
    """Whether every text is how Python spells a whole number of at most 18 digits.

    Then nothing is lost by taking them for numbers. True if there are no texts.
    """
    return all(map(_WHOLE.fullmatch, values))


def typed_names(texts: Sequence[str]) -> Array:
    """Returns names as int64 if they are `plain_integers` (also an empty list), else as text."""
    if plain_integers(texts):
        return np.array(list(map(int, texts)), dtype=np.int64)
    return as_name_array(list(texts))


def natural_key(text: str) -> list[Any]:
    """Returns the key that sorts texts with the numbers in them as numbers: b2 before b10."""
    key: list[Any] = re.split(r"(\d+)", text)
    key[1::2] = map(int, key[1::2])  # `split` puts what the group matches at odd places
    return key


def text_order(texts: Sequence[str]) -> list[str]:
    """Returns texts sorted: as numbers if all are finite ones, otherwise by `natural_key`."""
    with contextlib.suppress(ValueError):
        if all(map(math.isfinite, map(float, texts))):
            return sorted(texts, key=Decimal)
    return sorted(texts, key=lambda text: (natural_key(text), text))


def listed(names: Sequence[object], most: int, show: Callable[[Any], str] = str) -> str:
    """Returns the first of some names for a message, with "..." if there are more."""
    shown = list(map(show, names[:most]))
    if len(names) > most:
        shown.append("...")
    return ", ".join(shown)


def positions(names: Iterable[Name]) -> dict[Name, int]:
    """Returns the place of each name, the last one of a name that occurs twice."""
    return dict(zip(names, itertools.count(), strict=False))


def places_of(names: Iterable[Name], places: Mapping[Name, int]) -> Indices:
    """Returns the place of each name by a mapping, -1 of those without one."""
    return np.array([places.get(name, -1) for name in names], dtype=np.int64)
