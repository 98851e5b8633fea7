"""Labels that are most likely slips: several classes in one, a class with something added, dates;
and what may be one, and is told of.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.names.checks import times
from neucrowd_tf.io.names.ids import plain_integers
from neucrowd_tf.io.names.missing import SOFT, missing_flag
from neucrowd_tf.io.names.spelling import LONGEST, meant, plain

# So many labels, and so many of each class on average, make a class that occurs once a rare one.
MANY_LABELS = 50
MANY_EACH = 10
# What joins classes, each alone: a class's own name may hold another (science & tech;sports).
_WORDS = r"\s(?:and|or|und|oder|et|ou|y|e|o|vs\.?)\s"
_JOINTS = tuple(
    re.compile(rf"\s*(?:{sign})+\s*")
    for sign in (r"[|;,/&+>]|::", r"\|", ";", ",", "/", "&", r"\+", "-?>", ":", "\u3001", "\u00b7",
                 r"\^", "~", r"\\n", r'","', r"(?<=\s)-(?=\s)", _WORDS, r"\s")
)  # fmt: skip
_BETWEEN = re.compile(r"\s*[|;]\s*")  # what is in few names of classes
_MONTH = (
    r"(?:jan(?:uary|uar|v)?|feb(?:ruary|ruar|b)?|m(?:ar|rz|\u00e4r)(?:ch|z|s)?|a[pvb]r(?:il)?"
    r"|ma[yig]|jui?n[ei]?|jui?l[yi]?|aug(?:ust)?|ago|ao\u00fbt|sept?(?:ember)?|o[ckt]t(?:ober)?"
    r"|nov(?:ember)?|d[ei\u00e9][cz](?:ember)?|f[e\u00e9]vr?|ene|giu|lug|mrt|mei)\.?"
)
_AFTER_DAY = rf"(?:{_MONTH}|(?:gen|set|out)\.?)"  # words too, where no day stands before them
_YEAR = r"(?:\d{4}|'?\d{2})"
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([t ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}"
    r"|\d{1,2}:\d{2}(:\d{2})?( [ap]m)?"
    "|\\d{1,2}\u6708\\d{1,2}\u65e5|\\d{2}\\.\\d{2}\\."
    r"|\d{1,2}[-/]\d{1,2}[-/]\d{2}|\d{2}\.\d{2}\.\d{2}|(?:19|20)\d{2}-(?:0[1-9]|1[0-2])"
    # As spreadsheets show what they took for one: 2-Jan, Jan-02, 02. Jan, 2-Jan-24, Jan 2, 2024.
    rf"|\d{{1,2}}(?:st|nd|rd|th)?[-/. ]+{_AFTER_DAY}(?:[-/ ,]+{_YEAR})?"
    rf"|{_MONTH}[-/ ]+\d{{1,2}}(?:st|nd|rd|th)?(?:[-/ ,]+{_YEAR})?|{_MONTH}[-/ ]+\d{{4}}"
)
# A word, a number or a share beside a class, and the class.
_ADDED = (
    re.compile(r"(?:label|class|answer|choice|category|value)\s*[:=]\s*(.+)"),
    re.compile(r"\(?\d+\s*[:.)\]=-]\s*([^\W\d].*)"),
    re.compile(r"(.*\S)\s*[(\[]\s*(?:\d+(?:[.,]\d+)?\s*%?|\?)\s*[)\]]"),
    re.compile(r"(.*\S)\s(?:[01]?[.,]\d+|\d+\s*%)"),
    re.compile(r"(.*\w)\s*(?:[:=@|;,]|\s-\s)\s*\d+(?:[.,]\d+)?\s*%?"),
)
_NOTED = re.compile(r"(.*\S)\s*[(\[][^()\[\]]+[)\]]")
_LETTER = re.compile(r"[^\W\d_]")
_SAYS_YES_OR_NO = (frozenset(("true", "false", "t", "f")), frozenset(("yes", "no", "y", "n")))

Place = Callable[[int], str]


def check_slips(
    texts: Sequence[str],
    counts: np.ndarray,
    first: np.ndarray,
    where: Place,
    missing: Sequence[str] | None = None,
) -> None:
    """Raises DataError for a label that is no class of its own, and warns of what may be none.

    Args:
        texts: `[K]` distinct labels, as they are spelt.
        counts, first: `[K]` how often each occurs (0 where that is not known), and where first.
        where: says the place: the file, the line and the column.
        missing: the texts that the user says stand for none, as for `check_names`.
    """
    known = {meant(text): place for place, text in enumerate(texts)}
    for place, text in enumerate(texts):
        if len(text) <= LONGEST and (
            what := _slip(plain(text.replace("\n", "|")), place, known, texts)
        ):
            raise DataError(
                f"{where(int(first[place]))}: expected one class, received {text!r}"
                f"{times(counts[place])}, {what}; --classes=... names all classes"
            )
    for at, what in _doubts(texts, counts, missing):
        warnings.warn(
            f"{where(int(first[at]))}: the label {texts[at]!r}{times(counts[at])} is taken for"
            f" a class: {what}",
            stacklevel=6,
        )


def _slip(text: str, place: int, known: dict[Any, int], texts: Sequence[str]) -> str:
    """Returns what a label is rather than a class, "" for a class."""
    if _DATE.fullmatch(text):
        return "a date or a time"
    if (text[:1] == "(" and text[-1:] == ")") or (text[:1] == "{" and text[-1:] == "}"):
        text = text[1:-1]
    if _names_several(text, lambda part: known.get(meant(part), place) != place):
        return "which names several"
    for added in _ADDED:
        found = added.fullmatch(text)
        other = known.get(meant(found[1]), place) if found else place
        if other != place:
            return f"which is {texts[other]!r} and something else"
    if "?" in text[:-1]:
        lost = re.compile(re.escape(text).replace(r"\?", r"\W?[^\x00-\x7f]"))
        whole = next((o for o in texts if not o.isascii() and lost.fullmatch(plain(o))), None)
        if whole is not None:
            return f"which is {whole!r} with a sign lost"
    return ""


def _names_several(text: str, is_other: Callable[[str], bool]) -> bool:
    """Whether a label is other labels with a sign between them, or one of them and another part
    behind a sign that is in few names of classes.
    """
    for joint in _JOINTS:
        parts = [part.strip("'\" ") for part in joint.split(text)]
        if len(parts) > 1 and all(map(is_other, parts)):
            return True
    parts = [part.strip("'\" ") for part in _BETWEEN.split(text)]
    return len(parts) > 1 and all(map(_LETTER.search, parts)) and any(map(is_other, parts))


def _doubts(
    texts: Sequence[str], counts: np.ndarray, missing: Sequence[str] | None
) -> list[tuple[int, str]]:
    """Returns labels that may be slips, and why; of each kind the first."""
    found: list[tuple[int, str]] = []
    bare = [plain(text) for text in texts]
    soft = [at for at, text in enumerate(bare) if text.strip("<>()[]") in SOFT]
    if soft and len(soft) < len(bare):
        way = f"{missing_flag(missing, texts[soft[0]])} leaves such labels out"
        found.append((soft[0], f"it may stand for none; {way}"))
    numbers = [at for at, text in enumerate(texts) if plain_integers([text])]
    if numbers and len(numbers) < len(texts):
        rare = min(numbers, key=lambda at: counts[at])
        words = [at for at in range(len(texts)) if at not in set(numbers)]
        other = min(words, key=lambda at: counts[at])
        at, rest = (rare, other) if counts[rare] <= counts[other] else (other, rare)
        found.append((at, f"labels are numbers and words, as {texts[rest]!r}"))
    truths, answers = ([at for at, t in enumerate(bare) if t in kind] for kind in _SAYS_YES_OR_NO)
    short = [
        at
        for at, text in enumerate(bare)
        if len(text) == 1
        and text.isalpha()
        and [o.isalpha() for o in bare if o[:1] == text] == [True, True]
    ]
    if truths and answers:
        found.append((truths[0], f"it may be the same as {texts[answers[0]]!r} or its opposite"))
    elif short:
        longer = (o for o in texts if len(o) > 1 and plain(o)[:1] == bare[short[0]])
        found.extend((short[0], f"it may be short for {o!r}") for o in longer)
    noted = [at for at, text in enumerate(bare) if (n := _NOTED.fullmatch(text)) and n[1] in bare]
    if noted:
        found.append((noted[0], "it is another class with something in brackets"))
    total = int(counts.sum())
    once = np.flatnonzero(counts == 1)
    for at in once[:1] if len(once) == 1 else ():
        text = texts[at]
        whole = [o for o in texts if len(o) > len(text) > 1 and o.startswith(text)]
        if whole and not text[-1].isdigit() and whole[0][len(text)].isalpha():
            found.append((int(at), f"it begins {whole[0]!r} (a file that is cut off?)"))
    if len(once) and total >= MANY_LABELS and total >= MANY_EACH * len(texts):
        found.append((int(once[0]), "it occurs nowhere else (a slip, or a file that is cut off?)"))
    return list({at: (at, what) for at, what in reversed(found)}.values())[::-1]
