"""Labels that are no classes: fractions, negative numbers, lists."""

from __future__ import annotations

import re
import shlex
import unicodedata
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels.checks.slips import check_slips
from neucrowd_tf.io.labels.table import MINUS_ONE, LabelTable
from neucrowd_tf.io.names.checks import times
from neucrowd_tf.io.names.ids import as_list, plain_integers
from neucrowd_tf.io.names.missing import is_negative, missing_flag, nothing_is_missing
from neucrowd_tf.io.names.spelling import plain
from neucrowd_tf.io.tables.format import TableFormat

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

# With a digit other than 0 after the point, or an exponent below 0.
_FRACTION = re.compile(r"[-+]?\d*[.,]\d*[1-9]\d*([eE][-+]?\d+)?|[-+]?\d+(\.\d*)?[eE]-\d+")
_SHARE = re.compile(r"[-+]?\d+([.,]\d+)?\s*%")
_NO_NUMBER = re.compile(r"[-+]?(inf|infinity|\d+(\.\d*)?e\+?\d{3,})")
_SEVERAL = re.compile(r"""\[\s*(['"].*)?\]|\{.*:.*\}""", re.DOTALL)
# Several probabilities in a label, or one with more around it; votes for a class.
_HOLDS_SHARES = re.compile(r"(?<![\d.,])(0?[.,]\d*[1-9]\d*|[01][.,]0+)(?![\d.,])")
_VOTES = re.compile(r"\d+ ?(of|out of|/|:|votes?|votes? of) ?\d*")
_POINTS = str.maketrans("\u066b\u00b7\u2e33\uff0e", "....")
_NO_ANSWER = re.compile(r"77+|88+|99+|9+[78]")


def is_fraction(name: str) -> bool:
    """Whether a label is a number that is not whole, or a share in percent, as probabilities and
    scores are.
    """
    name = _latin(name.strip())
    return bool(_FRACTION.fullmatch(name) or _SHARE.fullmatch(name))


def _latin(text: str) -> str:
    """Returns a text with the digits and points of numbers as Python writes them, without quotes
    around it.
    """
    if len(text) > 1 and text[0] == text[-1] in "'\"`":
        text = text[1:-1].strip()
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text).translate(_POINTS)
    return "".join(str(unicodedata.digit(c)) if c.isdigit() else c for c in text)


def check_classes(
    names: list[Any],
    counts: NDArray[np.int64],
    first: NDArray[np.int64],
    table: LabelTable,
    layout: TableFormat,
    column: str | None,
) -> None:
    """Raises DataError for labels that are no classes: negative numbers, fractions, no finite
    numbers, lists. Numbers that often stand for none are told of.
    """
    texts = [str(name) for name in names]
    bare = [plain(text) for text in texts]
    if not nothing_is_missing(layout.missing):
        _check_no_codes(texts, bare, counts, first, table, layout, column)
    for at, text in enumerate(bare):
        endless = _NO_NUMBER.fullmatch(text) or text == "nan"
        if endless or _SEVERAL.fullmatch(text):
            what = "which is no finite number" if endless else "a list or an object"
            raise DataError(
                f"{table.place(int(first[at]), column)}: expected a class, received {texts[at]!r},"
                f" {what}; --classes=... names all classes"
            )
    truths = [at for at, name in enumerate(names) if isinstance(name, bool)]
    if truths and any(isinstance(name, str) for name in names):
        at = truths[0]
        warnings.warn(
            f"{table.place(int(first[at]), column)}: the truth value {texts[at]}{times(counts[at])}"
            " is taken for a class beside words",
            stacklevel=5,
        )
    _tell_shares(bare, texts, lambda at: table.place(int(first[at]), column))
    check_slips(texts, counts, first, lambda row: table.place(row, column), layout.missing)
    for at, text in enumerate(texts):
        if is_fraction(text):
            raise DataError(
                f"{table.place(int(first[at]), column)}: expected a class, received {names[at]!r},"
                " a fraction as probabilities and scores are; if these are classes,"
                f" --classes={shlex.quote(as_list([text]))},... names all of them"
            )


def _tell_shares(bare: list[str], texts: list[str], where: Callable[[int], str]) -> None:
    """Warns where each label holds a share of one (`0.9/0.1`, `p=.3`), or is a number of votes."""
    if len(bare) < 2 or any(map(is_fraction, texts)):
        return
    latin = [_latin(text) for text in bare]
    shares = all(map(_HOLDS_SHARES.search, latin))
    if shares or all(map(_VOTES.fullmatch, latin)):
        what = "a share as probabilities are" if shares else "a number of votes"
        warnings.warn(
            f"{where(0)}: expected classes, received {texts[0]!r} and {len(texts) - 1:,} more, each"
            f" with {what}; they are taken for classes",
            stacklevel=6,
        )


def _check_no_codes(
    texts: list[str],
    bare: list[str],
    counts: NDArray[np.int64],
    first: NDArray[np.int64],
    table: LabelTable,
    layout: TableFormat,
    column: str | None,
) -> None:
    """Raises DataError for negative numbers, unless they are the other class' opposite, which is
    told of, as are codes of questionnaires for no answer.
    """
    negative = [at for at, text in enumerate(bare) if is_negative(text)]
    negative.sort(key=lambda at: bare[at] != MINUS_ONE)
    numbers = plain_integers(texts)
    codes = [at for at, text in enumerate(texts) if numbers and _is_code(text, texts)]
    if negative:
        at = negative[0]
        received = texts[at]
        way_out = f"{missing_flag(layout.missing, received)} leaves them out, "
        way_out += (
            "--classes=... names all classes"
            if any(layout.missing or ())
            else f"--missing= takes {received} for a class"
        )
        if {bare[at].removeprefix("-")} != set(bare) - {bare[at]}:
            raise DataError(
                f"{table.place(int(first[at]), column)}: expected a label, received {received}"
                f"{times(counts[at])}, which often stands for none; {way_out}"
            )
        warnings.warn(
            f"{table.source}: labels are {received}{times(counts[at])}, taken for a class beside"
            f" {received.removeprefix('-')}; {way_out}",
            stacklevel=6,
        )
    elif codes:
        text = texts[codes[0]]
        warnings.warn(
            f"{table.source}: {counts[codes[0]]} labels are {text}, which often stands for none,"
            f" taken for a class; {missing_flag(layout.missing, text)} leaves them out",
            stacklevel=6,
        )


def _is_code(text: str, texts: list[str]) -> bool:
    """Whether a number is one that questionnaires use for no answer (99, 888 ...), far above the
    others.
    """
    if not _NO_ANSWER.fullmatch(text):
        return False
    others = [int(other) for other in texts if other != text]
    return len(others) > 1 and 3 * max(others) < int(text)
