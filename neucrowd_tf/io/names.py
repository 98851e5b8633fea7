"""Names of classes, annotators and tasks: which often stand for none, and which are one in two
spellings.
"""

from __future__ import annotations

import contextlib
import html
import re
import unicodedata
import urllib.parse
import warnings
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.ids import as_name_array, spelt

# How tables say that there is no value, in lower case.
MARKERS = frozenset(
    (
        "",
        "na",
        "n/a",
        "#n/a",
        "n.a",
        "nan",
        "nat",
        "none",
        "null",
        "nil",
        "<na>",
        "-",
        "--",
        "?",
        ".",
        "..",
        "...",
        "*",
        "/",
        "\\n",  # MySQL's
        "undefined",
        "missing",
        "no answer",
        "not answered",
        "not available",
        "(blank)",
        "(null)",
        "[null]",
        "<null>",
        "#value!",
        "#ref!",
        "#div/0!",
        "#name?",
        "#num!",
        "#null!",
        "-nan",
        "+nan",
        "not applicable",
        "no label",
        "no value",
        "unlabeled",
        "unlabelled",
        "empty string",
        "not set",
        "unset",
        "not given",
        "not provided",
        "not specified",
        "unspecified",
        "not recorded",
        "not asked",
        "not labeled",
        "not labelled",
        "not annotated",
        "unannotated",
        "unanswered",
        "undefined value",
        "no annotation",
        "no data",
        "nodata",
        "no response",
        "nonresponse",
        "non response",
        "none given",
        "#n/a n/a",
        "#null",
        "nan(ind)",
        "-nan(ind)",
        "na character",
        "na integer",
        "na real",
        "null,null",
        "system.dbnull",
        "dbnull",
        "&nbsp;",
        "&nbsp",
        "$null$",  # SPSS
        "n/d",
        "s/o",
        "k.a",
        "keine angabe",
        "(leer)",  # a pivot table's blank
        "(vide)",
        "(vac\u00edo)",
        "(en blanco)",
        "(vuoto)",
        "object object",
        "\u2205",  # the empty set
    )
)
# What may be a class of its own too, as pictures are empty.
SOFT = frozenset(
    ("blank", "empty", "error", "failed", "ignore", "ignored", "invalid", "n.d", "nill", "nul",
     "pending", "refused", "skip", "skipped", "tbd", "timeout", "todo", "unknown", "unrated",
     "void", "xx", "xxx")
)  # fmt: skip
# Nothing but signs; what C prints for no number.
_NOTHING = re.compile(
    r"[-_.?/\\~^#!$%@|\u00b7]+|\\0|[-+]?1\.#(ind|qnan|snan|inf)"
    # What spreadsheets of any language show for an error: #WERT!, #\u00a1REF!, #NV, #N/D, #I/T.
    r"|#[\u00a1\u00bf]?[^\W\d_]+(/0)?[!?]|#nv|#nd|#[^\W\d_]{1,4}/[^\W\d_]"
)
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">", "'": "'", '"': '"', "`": "`"}
# Letters of other alphabets that look like Latin ones; capitals do more often than small ones.
_ALIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u03bf\u03b1\u03c1\u03bd\u03b9",
    "aeopcyxijsoapvi",
)
_ALIKE_CAPITALS = str.maketrans(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0408\u0405"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
    "ABEKMHOPCTYXIJSABEZHIKMNOPTYX",
)
# One sign for each dash and quote.
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("`\u00b4\u2018\u2019\u201a\u2039\u203a", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"'),
    }
)
# Between letters, or a letter and a digit; not between digits, as in a date.
_DASHES = re.compile(r"(?<=[^\W_])[-_+]+(?=[^\W\d_])|(?<=[^\W\d_])[-_+]+(?=[^\W_])")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}([ ,'_]\d{3})+")
_HEX = re.compile(r"0x[0-9a-f]{1,8}")
_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d{1,6})?")
MOST_DIGITS = 60
LONGEST = 10_000  # letters of a name that is looked through
# How spreadsheets (and %g) write a number of many digits, most of which are lost.
_SCIENTIFIC = re.compile(r"[-+]?\d([.,]\d+)?E\+\d{2,3}|[-+]?\d[.,]\d{4,}e\+\d{2,3}")
# Spaces within a word in one spelling and not in another.
_INSIDE = re.compile(r"(?<=[^\W\d_]) (?=[^\W\d_])")
# A program's text (u'yes', b'yes'); a bullet before a name, a rest of a separator behind it.
_LITERAL = re.compile(r"^[bur]'(.*)'$")
_ADORNED = re.compile(r"^(?:[-*]\s|\u2022)\s*|(?:[|/\u2020\u2021]|\\n)+$")
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})")
_TAG = re.compile(r"</?[a-z][^<>]*>")
_ACCENTS = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_SKIN = re.compile("[\U0001f3fb-\U0001f3ff]")
_COMMA = re.compile(r"[-+]?\d+,\d+")
# Without room of their own, beside Unicode's format characters: joiners, selectors, fillers.
_NO_ROOM = frozenset(map(chr, (0x034F, 0x115F, 0x1160, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10))))
_LOST = frozenset("\ufeff\ufffd")
_UNSEEN = frozenset("\u00ad\u200b\u2060")
MINUS_ONE = "-1"
Where = Callable[[int], str]


def is_marker(name: Any) -> bool:
    """Whether a name often stands for a missing one."""
    if not isinstance(name, str) or len(name) > LONGEST or _plain_id(name):
        return False
    text = whole = visible(name).casefold().translate(_SIGNS)
    while len(text) > 1 + text.startswith("<") and _PAIRS.get(text[0]) == text[-1]:
        text = text[1:-1].strip()
    text = text.rstrip(",;:").partition("::")[0]  # a database's cast
    return (
        bool(MARKERS & {whole, text, text.rstrip("."), text.replace("_", " ").strip()})
        or text.replace("-", " ") in MARKERS
        or text.replace(" ", "").replace("\\", "/").rstrip(".") in MARKERS
        or _NOTHING.fullmatch(text) is not None
    )


def _plain_id(name: str) -> bool:
    """Whether a name is of plain letters and digits, one digit or more, as most ids are."""
    return name.isascii() and name.isalnum() and not name.isalpha()


def visible(name: str) -> str:
    """Returns what of a name can be seen: without characters that take no room, and spaces
    around it.
    """
    if name.isascii():
        return " ".join(name.split())
    plain = "".join(
        c
        for c in unicodedata.normalize("NFKC", name)
        if unicodedata.category(c) != "Cf" and c not in _NO_ROOM
    )
    return " ".join(plain.split())


def plain(name: str) -> str:
    """Returns what of a name can be seen, without case, with one sign for each dash and quote."""
    return visible(name).casefold().translate(_SIGNS)


def meant(name: Any) -> Any:
    """Returns what a name most likely means: a number, a truth value as one, text without case."""
    if isinstance(name, (bool, int, np.bool_, np.integer)):
        return int(name)
    if isinstance(name, (float, np.floating)):
        return _number(repr(float(name)), float(name))
    if len(str(name)) > LONGEST:
        return str(name)
    text = plain(str(name) if str(name).isascii() else _repaired(str(name)))
    text = text.replace('\\"', "").replace('"', "")
    text = _ADORNED.sub("", _LITERAL.sub(r"\1", text)).strip("'") or text
    text = _unescaped(text).rstrip(".,;:!?*") or text
    if not text.isascii():
        text = _ACCENTS.sub("", unicodedata.normalize("NFD", _SKIN.sub("", text)))
        text = unicodedata.normalize("NFC", text).translate(_ALIKE)
    if text in ("true", "false"):
        return int(text == "true")
    if _HEX.fullmatch(text):
        return int(text, 16)
    if not text[-1:].isdigit():  # neither "nan" nor "infinity" is a number here
        return _joined(text)
    if _THOUSANDS.fullmatch(text):
        text = re.sub(r"[ ,'_]", "", text)
    elif _COMMA.fullmatch(text):
        text = text.replace(",", ".")
    return _number(text, _joined(text))


def _number(text: str, other: Any) -> Any:
    """Returns the exact number that a text spells, `other` where it spells none. Decimals are equal
    to whole numbers, and have their hash.
    """
    if len(text) <= MOST_DIGITS and _DECIMAL.fullmatch(text):
        with contextlib.suppress(InvalidOperation):  # an exponent beyond all bounds
            return Decimal(text)
    return other


def _same_task(name: Any) -> Any:
    """Returns what two spellings of a task have in common: without case, with one sign for each
    dash and quote, whole numbers as these (1, 1.0, 01, 1e0). Versions as 1.1 and 1.10 are two.
    """
    if not isinstance(name, str):
        return name
    text = name.lower() if _plain_id(name) else plain(name)
    if not text[:1].isalpha():
        number = _number(text, None)
        if number is not None and number == number.to_integral_value():
            return number
    return text


def _joined(text: str) -> str:
    """Returns a name's words, without what separates those of letters."""
    return _INSIDE.sub("", " ".join(_DASHES.sub(" ", text).split()))


def _unescaped(text: str) -> str:
    """Returns a small text without what pages, addresses and programs write for a sign."""
    if "&" in text:
        text = html.unescape(text)
    if "%" in text:
        text = urllib.parse.unquote(text)
    if "\\u" in text:
        text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    if "<" in text:
        text = _TAG.sub("", text) or text
    return plain(text)


def _repaired(name: str) -> str:
    """Returns a name whose UTF-8 was read as another encoding, and written so, as it was."""
    try:
        return name.encode("cp1252").decode("utf-8")
    except UnicodeError:
        return name


def _looks(name: Any) -> Any:
    """Returns what a name of other alphabets' capitals looks like in Latin ones; any other name as
    it is, but for case.
    """
    if not isinstance(name, str):
        return (name,)
    text = visible(name)
    latin = text.translate(_ALIKE_CAPITALS)
    return latin.casefold() if latin.isascii() else text


def same_header(a: str, b: str) -> bool:
    """Whether two texts are one column's name but for case and spaces."""
    return a == b or visible(a).casefold() == visible(b).casefold()


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


def check_names(
    names: Sequence[Any],
    counts: np.ndarray,
    first: np.ndarray,
    role: str,
    where: Where,
    *,
    known: Iterable[str] = (),
    exact: bool = False,
    markers: bool = True,
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
        markers: whether names that often stand for none are looked for.
    """
    listed = set(known)
    for place, name in enumerate(names if markers else ()):
        if is_marker(name) and name not in listed:
            raise DataError(
                f"{where(int(first[place]))}: expected a {role}, received {name!r}"
                f"{times(counts[place])}, which often stands for none; --missing={name.strip()}"
                " leaves these out" + ", --missing= takes it for a name" * bool(name.strip())
            )
    if exact or all(type(name) is int for name in names):
        return
    if role != "label":
        _check_digits(names, counts, first, role, where)
    _check_signs(names, first, role, where)
    ways: tuple[Callable[[Any], Any], ...] = (meant, _looks)
    if role == "task":
        ways = (_same_task,)
    elif all(not isinstance(name, str) or name.isascii() for name in names):
        ways = (meant,)
    for alike in ways:
        _check_twins(names, counts, first, role, where, listed, alike)


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
            raise DataError(
                f"{where(int(first[place]))}: expected {role}s that differ in more than case,"
                f" spaces, dashes, quotes or how a number is spelt, received {_shown(name)}"
                f"{times(counts[place])}"
                f" beside {_shown(names[other])}{times(counts[other])}; --exact_names takes them"
                " for different ones"
            )


def is_scientific(name: Any) -> bool:
    """Whether a name is a number as spreadsheets write one of many digits: 1.23457E+11."""
    return isinstance(name, str) and "+" in name and bool(_SCIENTIFIC.fullmatch(name.strip()))


def _check_digits(
    names: Sequence[Any], counts: np.ndarray, first: np.ndarray, role: str, where: Where
) -> None:
    """Raises DataError for an id whose digits a spreadsheet cut off: several ids may be one."""
    for place, name in enumerate(names):
        if is_scientific(name):
            raise DataError(
                f"{where(int(first[place]))}: expected a {role}, received {name!r}"
                f"{times(counts[place])}, a number whose other digits a spreadsheet cut off;"
                " --exact_names takes it for a name"
            )


def _check_signs(names: Sequence[Any], first: np.ndarray, role: str, where: Where) -> None:
    """Raises DataError for a name with a line break or another control character: quotes that are
    not closed make one of several rows. A task's, which may be a text, is told of.
    """
    texts = [(place, name) for place, name in enumerate(names) if isinstance(name, str)]
    odd = next((item for item in texts if _odd(item[1])), None)
    if odd is not None:
        what = (
            "a spreadsheet's formula"
            if odd[1][:2] == '="'
            else "a byte order mark (several files in one?)"
            if "\ufeff" in odd[1]
            else "a sign that was lost when it was read in another encoding"
        )
        raise DataError(
            f"{where(int(first[odd[0]]))}: expected a {role}, received {_cut(ascii(odd[1]))}, with"
            f" {what}; --exact_names takes it for a name"
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
                raise DataError(
                    f"{where(int(first[place]))}: expected a {role}, {said} (a quote that is not"
                    " closed?); --exact_names takes it for a name"
                )
            warnings.warn(f"{where(int(first[place]))}: a task id is {said}", stacklevel=6)
            return


def _odd(name: str) -> bool:
    """Whether a name is a spreadsheet's formula, or has a sign of an encoding that went wrong."""
    return name.startswith('="') or (not name.isascii() and not _LOST.isdisjoint(name))


def times(count: int) -> str:
    """Returns how an error says how often a name occurs; nothing where that is not known."""
    return f" ({count} times)" if count else ""


def _cut(text: str) -> str:
    return text if len(text) < 60 else f"{text[:57]}..."


def _shown(name: Any) -> str:
    return spelt(name) if not isinstance(name, str) else ascii(name)
