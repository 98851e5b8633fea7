"""What of a name can be seen, and what two spellings of one have in common."""

from __future__ import annotations

import contextlib
import html
import re
import unicodedata
import urllib.parse
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

LONGEST = 10_000  # letters of a name that is looked through
MOST_DIGITS = 60
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
_COMMA_ZERO = re.compile(r"(?<=\d),0{1,2}$")
_BRACKETED = re.compile(r"^(?:\(([^()]+)\)|\[([^][]+)\]|\{([^{}]+)\}|<([^<>]+)>)$")
_COMMA = re.compile(r"[-+]?\d+,\d+")
# Without room of their own, beside Unicode's format characters: joiners, selectors, fillers.
_NO_ROOM = frozenset(
    map(chr, (0x034F, 0x115F, 0x1160, 0x2800, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10)))
)


def visible(name: str) -> str:
    """Returns what of a name can be seen: without characters that take no room, and spaces
    around it.
    """
    if name.isascii():
        return " ".join(name.split())
    name = unicodedata.normalize("NFKC", name)
    return " ".join(name.translate(dict.fromkeys(map(ord, _unseen(name)))).split())


def has_unseen(name: str) -> bool:
    """Whether a name holds characters that take no room."""
    return not name.isascii() and bool(_unseen(name))


def _unseen(name: str) -> list[str]:
    """Returns which characters of a name take no room, each once."""
    return [c for c in set(name) if unicodedata.category(c) == "Cf" or c in _NO_ROOM]


def plain(name: str) -> str:
    """Returns what of a name can be seen, without case, with one sign for each dash and quote."""
    return visible(name).casefold().translate(_SIGNS)


def is_plain_id(name: str) -> bool:
    """Whether a name is of plain letters and digits, one digit or more, as most ids are."""
    return name.isascii() and name.isalnum() and not name.isalpha()


def same_header(a: str, b: str) -> bool:
    """Whether two texts are one column's name but for case and spaces."""
    return a == b or visible(a).casefold() == visible(b).casefold()


def is_scientific(name: Any) -> bool:
    """Whether a name is a number as spreadsheets write one of many digits: 1.23457E+11."""
    return isinstance(name, str) and "+" in name and bool(_SCIENTIFIC.fullmatch(name.strip()))


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
    text = _BRACKETED.sub(r"\1\2\3\4", text).strip()
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


def same_task(name: Any) -> Any:
    """Returns what two spellings of a task have in common: without case, with one sign for each
    dash and quote, and for letters that look the same, without quotes around a word, whole numbers
    as these (1, 1.0, 01, 1e0, 1,0). Versions as 1.1 and 1.10 are two.
    """
    if not isinstance(name, str):
        return name
    if is_plain_id(name):
        text = name.lower()
    else:
        text = plain(name if name.isascii() else name.translate(_ALIKE_CAPITALS)).translate(_ALIKE)
        text = text if " " in text else text.strip("'\"") or text
    if not text[:1].isalpha():
        number = _number(_COMMA_ZERO.sub("", text), None)
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


def looks(name: Any) -> Any:
    """Returns what a name of other alphabets' capitals looks like in Latin ones; any other name as
    it is, but for case.
    """
    if not isinstance(name, str):
        return (name,)
    text = visible(name)
    latin = text.translate(_ALIKE_CAPITALS)
    return latin.casefold() if latin.isascii() else text
