"""Names of items, annotators and classes: their arrays and codes, and the aliases of columns."""

from __future__ import annotations

import itertools
import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Column names that always mean a role, compared in lower case and without other signs than letters
# and digits. `_ID` marks those that may be followed by id or ids. Frames in memory use them too.
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
# Names that may mean an item.
_SECOND = (
    "id index row key text textid sentence sentenceid tweet tweetid comment commentid post postid"
    " image imageid url urlid document documentid file fileid filename"
)
SECOND_ITEM = frozenset(_SECOND.split())
# A whole number as Python spells it, below 10^18.
_WHOLE = re.compile(r"0|[1-9][0-9]{0,17}|-[1-9][0-9]{0,16}")
ALIASES: dict[str, frozenset[str]] = {
    role: frozenset(
        [f"{word}{end}" for word in _ID.get(role, "").split() for end in ("", "id", "ids", "no")]
        + _EXACT[role].split()
    )
    for role in ROLES
}


def folded(column: Any) -> str:
    """Returns a column's name as aliases are compared: casefolded, letters and digits only."""
    return re.sub(r"[\W_]+", "", str(column).casefold())


def roles_of(columns: Iterable[Any]) -> dict[str, list[Any]]:
    """Returns for each of task, worker and label the columns whose name is one of its aliases."""
    hits: dict[str, list[Any]] = {role: [] for role in ROLES}
    for column in columns:
        name = folded(column)
        for role in ROLES:
            if name in ALIASES[role]:
                hits[role].append(column)
    return hits


def as_name_array(values: Any) -> NDArray[Any]:
    """Returns hashable ids as a one-dimensional array that keeps their types.

    Whole numbers become int64, truth values bool, anything else an object array.
    """
    dtype = getattr(values, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "O") in "iub" and np.ndim(values) == 1:
        return np.asarray(values)
    items = values.tolist() if hasattr(values, "tolist") else list(values)
    kinds = set(map(type, items))
    if kinds == {int}:
        return np.asarray(items)
    if kinds == {bool}:
        return np.asarray(items, dtype=bool)
    return np.fromiter(items, dtype=object, count=len(items))  # one cell per id, tuples too


def normal(name: str) -> str:
    """Returns what two spellings of a name have in common: NFKC, no outer spaces, casefolded."""
    return unicodedata.normalize("NFKC", name).strip().casefold()


def spelt(name: Any) -> str:
    """Returns how an error message shows an id: a NumPy number as the plain number."""
    return repr(name.item() if isinstance(name, np.generic) else name)


def plain_integers(values: Sequence[str]) -> bool:
    """Whether every text is how Python spells a whole number, so that nothing is lost."""
    return all(map(_WHOLE.fullmatch, values))


def typed_names(texts: Sequence[str]) -> NDArray[Any]:
    """Returns names as whole numbers if every text is how one is spelt, otherwise as text."""
    if plain_integers(texts):
        return np.array([int(text) for text in texts], dtype=np.int64)
    return as_name_array(list(texts))


def natural_key(text: str) -> list[Any]:
    """Returns the key that sorts texts with the numbers in them as numbers: b2 before b10."""
    parts = re.split(r"(\d+)", text)
    return [int(piece) if place % 2 else piece for place, piece in enumerate(parts)]


def encode(texts: Iterable[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Returns the distinct texts in order of appearance, and the code of each text among them."""
    index: defaultdict[str, int] = defaultdict(itertools.count().__next__)
    codes = np.fromiter(map(index.__getitem__, texts), dtype=np.int64)
    return list(index), codes


def coded(column: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Returns a column's distinct names, and for each row which it has (-1: none).

    The names `1`, `True` and `"1"` are different.
    """
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(getattr(column, "dtype", None), pandas.CategoricalDtype):
        series = pandas.Series(column)
        return series.cat.categories.tolist(), series.cat.codes.to_numpy().astype(np.int64)
    if isinstance(column, np.ndarray) and column.dtype.kind in "iub":
        values, codes = np.unique(column, return_inverse=True)
        return values.tolist(), codes
    items = column.tolist() if hasattr(column, "tolist") else list(column)
    if len(set(map(type, items))) == 1:
        return encode(items)
    kinds, codes = encode((type(item), item) for item in items)  # type: ignore[misc]
    return [typed[1] for typed in kinds], codes


def occurrences(codes: NDArray[Any], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns how often each of `size` codes occurs, and where first (-1: nowhere)."""
    present = codes >= 0
    counts = np.bincount(codes[present], minlength=size)
    first = np.full(size, -1)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return counts, first


def distinct(column: Any) -> tuple[list[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Returns a column's distinct names, how often each occurs and where first."""
    names, codes = coded(column)
    return names, *occurrences(codes, len(names))
