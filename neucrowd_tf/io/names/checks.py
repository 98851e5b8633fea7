"""Checks of distinct names: none that often stands for none, that holds signs of a slip, or that
is another in two spellings.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.names.ids import spelt
from neucrowd_tf.io.names.missing import (
    SOFT,
    is_marker,
    is_negative,
    missing_flag,
    nothing_is_missing,
)
from neucrowd_tf.io.names.spelling import (
    has_unseen,
    is_plain_id,
    is_scientific,
    looks,
    meant,
    plain,
    same_task,
    visible,
)

_UNSEEN = frozenset("\u00ad\u200b\u2060")
ONE_EACH = "--exact_names takes them for different ones"
AS_TEXT = "write both as text, or both as they are without quotes"
Where = Callable[[int], str]


def check_names(
    names: Sequence[Any],
    counts: np.ndarray,
    first: np.ndarray,
    role: str,
    where: Where,
    *,
    known: Iterable[str] = (),
    exact: bool = False,
    missing: Sequence[str] | None = None,
) -> None:
    """Raises DataError for names that often stand for none, and for two that are one.

    Args:
        names: `[K]` distinct names.
        counts, first: `[K]` how often each occurs (0 where that is not known), and the first
            place.
        role: task, worker or label.
        where: says the place: the file, the line and the column.
        known: names that the user listed, which are meant.
        exact: whether names that differ in any way are different ones.
        missing: the texts that the user says stand for none, which are left out before; others
            that often do are refused, unless none does (`nothing_is_missing`).
    """
    listed = set(known)
    for place, name in enumerate(() if nothing_is_missing(missing) else names):
        if is_marker(name) and name not in listed:
            _refuse_marker(name, counts[place], role, where(int(first[place])), missing, exact)
    if role != "label" and not exact and not nothing_is_missing(missing):
        _tell_nobody(names, counts, first, role, where)
    if exact or all(type(name) is int for name in names):
        return
    if role != "label":
        _check_digits(names, counts, first, role, where)
    _check_signs(names, first, role, where)
    ways: tuple[Callable[[Any], Any], ...] = (meant, looks)
    if role == "task":
        ways = (same_task,)
    elif all(not isinstance(name, str) or name.isascii() for name in names):
        ways = (meant,)
    for alike in ways:
        _check_twins(names, counts, first, role, where, listed, alike)


def _refuse_marker(
    name: str, count: int, role: str, where: str, missing: Sequence[str] | None, exact: bool
) -> None:
    """Raises DataError for a name that often stands for none; where the user names others that do,
    and that names are exact, a task or an annotator of that name is told of.
    """
    said = f"{where}: expected {_a(role)}, received {name!r}{times(count)}, which often stands for"
    out = f"{missing_flag(missing, name)} leaves these out"
    if not any(missing or ()):
        other = ", --missing= takes it for a name" * bool(name.strip())
    elif role == "label":
        other = ", --classes=... names all classes"
    elif exact:
        warnings.warn(f"{said} none, and is taken for a name (--exact_names); {out}", stacklevel=7)
        return
    else:
        other = ", --exact_names takes it for a name"
    if role == "task" and not name.strip():  # labels of no task are nobody's to leave out
        raise DataError(f"{said} none; take it out of the file")
    if name.strip() in (missing or ()):
        raise DataError(f"{said} none, as --missing says; take it out of the file{other}")
    if has_unseen(name):  # no flag can be copied from a message that cannot show the name
        seen = visible(name) or "nothing"
        raise DataError(f"{said} none: {seen} and characters that cannot be seen; take them out")
    raise DataError(f"{said} none; {out}{other}")


def _check_twins(
    names: Sequence[Any],
    counts: np.ndarray,
    first: np.ndarray,
    role: str,
    where: Where,
    listed: set[str],
    alike: Callable[[Any], Any],
) -> None:
    """Raises DataError for two names that `alike` gives the same of."""
    found: dict[Any, int] = {}
    for place, name in enumerate(names):
        if role == "task" and not isinstance(name, str):
            continue
        other = found.setdefault(alike(name), place)
        if other != place and not {str(name), str(names[other])} <= listed:
            # Classes that differ in the spaces around them are the same to what reads the results.
            same = role == "label" and str(name).strip() == str(names[other]).strip()
            spaces = isinstance(name, str) and isinstance(names[other], str)
            way_out = ("take the spaces out" if spaces else AS_TEXT) if same else ONE_EACH
            if role == "label" and not same and "-0" in (str(name), str(names[other])):
                way_out = f"--missing= {ONE_EACH}"  # one alone takes -0 for no label
            raise DataError(
                f"{where(int(first[place]))}: expected {role}s that differ in more than case,"
                f" spaces, dashes, quotes or how a number is spelt, received {_shown(name)}"
                f"{times(counts[place])}"
                f" beside {_shown(names[other])}{times(counts[other])}; {way_out}"
            )


def _tell_nobody(
    names: Sequence[Any], counts: np.ndarray, first: np.ndarray, role: str, where: Where
) -> None:
    """Warns of a task or an annotator that may stand for none."""
    soft, negative = nobodies(names)
    for place in [*soft, *(negative if len(negative) == 1 < len(names) else ())]:
        said = nobody(role, str(names[place]), times(counts[place]))
        warnings.warn(f"{where(int(first[place]))}: {said}", stacklevel=5)


def nobodies(names: Sequence[Any]) -> tuple[list[int], list[int]]:
    """Returns which names are a word such as `unknown`, and which are negative numbers, of which
    one alone may stand for none.
    """
    odd = [  # most names end in a digit
        (place, str(name))
        for place, name in enumerate(names)
        if (name < 0 if type(name) is int else not is_plain_id(str(name)))
    ]
    negative = [place for place, name in odd if is_negative(name)]
    return [place for place, name in odd if plain(name).rstrip(".") in SOFT], negative


def nobody(role: str, name: str, times: str = "") -> str:
    """Returns what to say of a task or an annotator that may stand for none."""
    return (
        f"the {role} {name!r}{times}, which may stand for none, is taken for one; take its rows out"
        " if it does"
    )


def _check_digits(
    names: Sequence[Any], counts: np.ndarray, first: np.ndarray, role: str, where: Where
) -> None:
    """Raises DataError for an id whose digits a spreadsheet cut off: several ids may be one."""
    for place, name in enumerate(names):
        if is_scientific(name):
            raise DataError(
                f"{where(int(first[place]))}: expected {_a(role)}, received {name!r}"
                f"{times(counts[place])}, a number whose other digits a spreadsheet cut off;"
                " --exact_names takes it for a name"
            )


def _check_signs(names: Sequence[Any], first: np.ndarray, role: str, where: Where) -> None:
    """Raises DataError for a name with a line break or another control character: quotes that are
    not closed make one of several rows. A task's, which may be a text, is told of.
    """
    texts = [(place, name) for place, name in enumerate(names) if isinstance(name, str)]
    for place, name in texts:
        if what := _odd(name):
            raise DataError(
                f"{where(int(first[place]))}: expected {_a(role)}, received {_cut(ascii(name))},"
                f" with {what}; --exact_names takes it for a name"
            )
    unseen = [
        item
        for item in texts
        if item[1] != item[1].strip() or (not item[1].isascii() and not _UNSEEN.isdisjoint(item[1]))
    ]
    if unseen:
        warnings.warn(
            f"{where(int(first[unseen[0][0]]))}: {len(unseen)} {role}s hold characters that cannot"
            " be seen, or spaces around them, and are taken with these (the first:"
            f" {_cut(ascii(unseen[0][1]))})",
            stacklevel=6,
        )
    signs = ("Cc", "Zl", "Zp")
    for place, name in texts:
        if not name.isprintable() and any(unicodedata.category(c) in signs for c in name):
            said = f"received {_cut(ascii(name))}, with a line break or another control character"
            if role != "task":
                around = role == "label" and name.strip() in names
                way_out = "take it out" if around else "--exact_names takes it for a name"
                raise DataError(
                    f"{where(int(first[place]))}: expected {_a(role)}, {said} (a quote that is not"
                    f" closed?); {way_out}"
                )
            warnings.warn(f"{where(int(first[place]))}: a task id is {said}", stacklevel=6)
            return


def _odd(name: str) -> str:
    """Returns what a spreadsheet or an encoding that went wrong left in a name, "" for nothing."""
    if name.startswith('="'):
        return "a spreadsheet's formula"
    if name.isascii():
        return ""
    if "\ufeff" in name:
        return "a byte order mark (several files in one?)"
    return "a sign that was lost when it was read in another encoding" * ("\ufffd" in name)


def times(count: int) -> str:
    """Returns how an error says how often a name occurs; nothing where that is not known."""
    return f" ({count} times)" if count else ""


def _a(role: str) -> str:
    return f"{'an' if role[0] == 'a' else 'a'} {role}"


def _cut(text: str) -> str:
    return text if len(text) < 60 else f"{text[:57]}..."


def _shown(name: Any) -> str:
    return spelt(name) if not isinstance(name, str) else ascii(name)
