"""Tests of labels and names (missing, several, rating, free text), and one spelling for each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.declare.flag_parsing import parse_value
from neucrowd_tf.declare.types import Array, Texts
from neucrowd_tf.io.checks import broken, error
from neucrowd_tf.io.column_values import MOST_ANSWERS, check_free_text
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.names import among, normalised, plain_integers, text_order, without

ALL = ("all",)  # of --classes: any number of classes
FEW = 10  # most different numbers that are read as classes without a line
JOINTS = (",", ";", "/", "+", "&", " ")  # signs that a line names if they join classes
_CUT = re.compile(r"[+-]?\d([.,]\d+)?[eE]\+?\d{2,3}")
# Lists as NumPy spells them, without commas, or with the missing labels of Python and pandas.
_LIST = re.compile(r"""\[(?:'[^']*'|"[^"]*"|nan|None|[\s,])*\]""")
_NAMES = re.compile(r"\[.+,.+\]")  # two entries of a list at least
_ENTRY = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_ABUT = re.compile(r"""(['"])\s+\1""")
# What may say that there is no label: a code, texts of Python and pandas, and signs for a blank
# cell. They are classes, but a line names them. Beside "+", a "-" is its opposite.
NOTHING = ("-1", "None", "<NA>", "NaT", "-", "--", "?", ".")
is_number = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", re.I | re.A).fullmatch
_COMMA = re.compile(r"[+-]?\d+,\d+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffd\ud800-\udfff]")
Place = Callable[[int], str]


def check_names(path: Path, kind: str, names: Texts, place: Place, options: TableOptions) -> None:
    """Raises DataError for names that differ only in case, spaces or Unicode form, or are broken.

    Args:
        path: the file.
        kind: "label" or "annotator".
        names: the different names.
        place: where name i is first.
        options: whether names are exact.
    """
    seen: dict[str, str] = {}
    for at, name in enumerate(() if options.exact_names else names):
        other = seen.setdefault(normalised(name), name)
        if other != name:
            raise error("similar_names", path, place(at), kind=kind + "s", first=other, second=name)
    check_characters(path, kind, names, place)


def check_characters(path: Path, kind: str, names: Texts, place: Place) -> None:
    """Raises DataError for a name with control characters or U+FFFD; see `check_names`."""
    text = "".join(names)
    if text.isprintable() and "\ufffd" not in text:
        return
    for at, name in enumerate(names):
        if (bad := _CONTROL.search(name)) is not None:
            mark = "a control character"
            if bad[0] == "\ufffd":
                mark = "the replacement character U+FFFD"
            raise error("bad_characters", path, place(at), kind=kind, name=name, characters=mark)


def check_ids(path: Path, kind: str, names: Texts, place: Place) -> None:
    """Raises DataError for an id that a spreadsheet rounded; see `check_names`."""
    check_characters(path, kind, names, place)
    if names and all(map(_NAMES.fullmatch, names)):
        raise broken(path, f"{kind} {names[0]!r} is a list, not a name", place(0))
    for at, name in enumerate(names):
        if "+" in name and _CUT.fullmatch(name) is not None:
            raise error("cut_id", path, place(at), kind=kind, name=name)


def check_several(
    path: Path, names: Sequence[str | tuple[str, ...]], place: Place
) -> Iterator[str]:
    """Yields a line if other signs join classes.

    Raises:
        DataError: cells of several labels: lists, newlines and `|`.
    """
    for at, name in enumerate(names):
        sign = _sign_of(name)
        if sign:
            value = name if isinstance(name, str) else list(name)
            raise error("multi_label", path, place(at), value=value, sign=sign)
    used = {*map(str, names)}
    for sign in JOINTS if numbers_of(used) is None else ():
        joined = [n for n in used if sign in n and used.issuperset(map(str.strip, n.split(sign)))]
        if joined:
            subject = "1 class is"
            if len(joined) > 1:
                subject = f"{len(joined)} classes are"
            yield f"{subject} made of other classes: --multi_label={sign!r}."
            break


def has_no_class(name: str | tuple[str, ...]) -> bool:
    """Whether a cell of several labels has none, so that each class is a no."""
    return not name or (isinstance(name, str) and name.strip() in ("", "[]"))


def check_ranking(path: Path, layout: str, cells: Sequence[Texts]) -> None:
    """Raises DataError if every cell of several labels is an order of all classes."""
    orders = set(map(tuple, cells))
    names = sorted(set().union(*orders))
    are_all = set(map(tuple, map(sorted, orders))) == {tuple(names)}
    if len(orders) < 2 or len(names) < 2 or not are_all:
        return
    reason = f"every answer is an order of all of {', '.join(names)} (a ranking)"
    advice = "Use the first choices alone: --first for a tool's export, else a column of their own"
    raise error("nothing_to_aggregate", path, tool=layout, reason=reason, advice=advice)


def nothing_said(names: Sequence[Any], counts: Array, missing: Texts) -> list[str]:
    """Returns a line about texts that may mean that there is no label, and are read as classes.

    Args:
        names: the different labels.
        counts: how many labels have each name.
        missing: those that are missing.
    """
    absent = without(among(NOTHING, names), missing)
    if "+" in names:
        absent = [name for name in absent if "-" not in name]
    if not absent:
        return []
    count = int(counts[list(map(names.index, absent))].sum())
    command = f"--missing={shlex.quote(','.join([*missing, *absent]))}"
    return [
        f"{count:,} labels are {', '.join(absent)}, read as a class ({command} leaves them out)."
    ]


def _sign_of(name: str | tuple[str, ...]) -> str:
    """Returns the value of --multi_label for a cell, "" if it has one label."""
    if isinstance(name, tuple) or (name[:1] == "[" and name.rstrip()[-1:] == "]"):
        return "list"
    if "\n" in name.strip():
        return "newline"
    return "'|'" * ("|" in name)


def split_cell(path: Path, name: str | tuple[str, ...], sign: str, place: str) -> list[str]:
    """Returns the labels of a cell.

    Args:
        path: the file.
        name: the cell.
        sign: the value of --multi_label.
        place: where the cell is.

    Raises:
        DataError: a nested or broken list, or an object.
    """
    if isinstance(name, tuple):
        return list(name)
    if has_no_class(name):
        return []
    if sign == "list":
        text = name.strip()
        values = parse_value(text)  # as JSON or Python spells a list
        if text[:1] == "[" and (not isinstance(values, list) or _ABUT.search(text)):
            values = [[]]
            if _LIST.fullmatch(text) is not None:
                values = list(map("".join, _ENTRY.findall(text)))
        if not isinstance(values, list):
            values = [values]
        if not {dict, list}.isdisjoint(map(type, values)):
            raise broken(path, f"{name[:60]!r} is not a list of classes", place)
        return list(map(str, values))
    pieces = name.split("\n" if sign == "newline" else sign)
    return list(filter(None, map(str.strip, pieces)))


def numbers_of(names: Iterable[Any]) -> list[float] | None:
    """Returns the names as numbers, or None if one, as text, is not a finite number."""
    try:
        values = list(map(float, map(str, names)))
    except ValueError:
        return None
    if np.isfinite(values).all():
        return values
    return None


def one_spelling(names: Texts, classes: Texts = ()) -> list[str]:
    """Returns the names, with one spelling of each number: 1.50 is 1.5 if both occur.

    It is that of a class, or the shortest. If all are numbers, they lose `.0`: tables with missing
    cells are often written with whole numbers as 1.0.
    """
    plain = list(names)
    if numbers_of(names) is not None:
        plain = [re.sub(r"\.0+$", "", name.strip()) for name in names]
    spellings: dict[Decimal, str] = {}
    for name in (*classes, *sorted(plain, key=len)):
        if is_number(name):
            spellings.setdefault(Decimal(name), name)
    return [spellings[Decimal(name)] if is_number(name) else name for name in plain]


def decimal_points(names: Sequence[Any]) -> list[Any]:
    """Returns the names with decimal points, if all of them are numbers with a decimal comma."""
    points = []
    for name in names:
        if not isinstance(name, str) or not _COMMA.fullmatch(name.strip()):
            return list(names)
        points.append(name.strip().replace(",", "."))
    return points


def check_classes(
    path: Path, column: str, names: Texts, counts: Any, options: TableOptions
) -> list[str]:
    """Returns lines about the classes that occur.

    Args:
        path: the file.
        column: the column of labels.
        names: the classes.
        counts: `[C]` how often each occurs.
        options: whether they are named, or any are accepted.

    Raises:
        DataError: ratings, or free text.
    """
    lines = []
    numbers = numbers_of(names)
    if numbers is not None and not options.classes:
        count = len(names)
        if count > MOST_ANSWERS:
            raise error("ratings", path, count=count, low=min(numbers), high=max(numbers))
        if count > FEW:
            lines.append(
                f"{count} different numbers are read as classes (--bins makes fewer of them)."
            )
    elif not options.classes:
        check_free_text(path, column, len(names), int(np.sum(counts)))
    return lines


def bin_names(path: Path, names: Texts, bins: Sequence[float]) -> tuple[list[str], list[str]]:
    """Returns the bin of each rating, and all bins in their order, as the texts of their ranges.

    Args:
        path: the file.
        names: the ratings.
        bins: how many bins of equal width, or their edges.

    Raises:
        DataError: a label that is not a number, or outside the edges.
    """
    numbers = numbers_of(names)
    if numbers is None:
        text = next(name for name in names if numbers_of([name]) is None)
        raise error("unknown_class", path, label=text, classes="numbers, as --bins needs")
    ends = min(numbers), max(numbers)
    edges = list(bins)
    if len(bins) == 1:
        edges = _equal_edges(*ends, int(bins[0]))
    for other in ends:
        if not edges[0] <= other <= edges[-1]:
            raise error("unknown_class", path, label=f"{other:g}", classes=f"the bins {list(bins)}")
    place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)
    texts = [repr(edge).removesuffix(".0") for edge in edges]
    ranges = list(map("{} to {}".format, texts, texts[1:]))
    return list(map(ranges.__getitem__, place.tolist())), ranges


def _equal_edges(low: float, high: float, count: int) -> list[float]:
    """Returns the edges of bins of equal width, rounded: with six digits, or more to be apart.

    The names of the bins have these edges exactly.
    """
    if low == high:
        return [low, high]
    inner = np.linspace(low, high, count + 1)[1:-1].tolist()
    digits = 6
    edges: set[float] = set()
    while len(edges) <= count and digits < 18:
        rounded = map(float, map(f"{{:.{digits}g}}".format, inner))
        edges = {low, high, *filter(low.__lt__, filter(high.__gt__, rounded))}
        digits += 1
    return sorted(edges)


def _range_of(name: str) -> list[float] | None:
    """Returns the edges of a bin by its name, None of another class."""
    low, to, high = name.partition(" to ")
    return numbers_of([low, high]) if to else None


def binned(text: str, classes: Texts) -> str:
    """Returns the class of `bin_names` that has a rating, or the text if none has it."""
    value = numbers_of([text])
    for name in classes if value else ():
        low, high = _range_of(name) or [np.inf, np.inf]
        if value and (low <= value[0] < high or (value[0] == high and name == classes[-1])):
            return name
    return text


def class_order(names: Texts) -> list[str]:
    """Returns class names sorted: as numbers or bins if all are, otherwise as text."""
    if all(map(_range_of, names)):
        return sorted(names, key=lambda name: _range_of(name) or [])
    return text_order(names)


def classes_of(path: Path, names: Texts, options: TableOptions, place: Place) -> list[str]:
    """Returns all classes in their order: those that the user lists, or those in use, sorted.

    Raises:
        DataError: a label that is not listed.
    """
    if not options.classes or options.classes == ALL:
        return class_order(names)
    for at, name in enumerate(names):
        if name not in options.classes:
            listed = ", ".join(options.classes)
            raise error("unknown_class", path, place(at), label=name, classes=listed)
    return list(options.classes)


def check_not_names(
    path: Path, classes: Texts, items: Texts, annotators: Texts, options: TableOptions
) -> None:
    """Raises DataError if all labels are names of annotators or of items, and not numbers.

    Classes that the user lists may have such names.
    """
    if len(classes) < 2 or plain_integers(classes) or options.classes not in ((), ALL):
        return
    for names, kind in ((annotators, "annotators"), (items, "items")):
        if len(classes) <= len(names) and set(classes) <= set(names):
            raise error("names_as_labels", path, kind=kind)
