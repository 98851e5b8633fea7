"""When labels were given."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Sequence

import numpy as np

from neucrowd_tf.declare.types import Floats, Texts
from neucrowd_tf.io.column_names import MISSING, time_columns
from neucrowd_tf.io.column_values import is_constant, is_fact
from neucrowd_tf.io.table import Table
from neucrowd_tf.names import without

FIRST = 1e8  # seconds from 1970 to 1973: smaller numbers are durations or count rows
UNITS = (1e17, 1e14, 1e11)  # least numbers of nanoseconds, microseconds and milliseconds
NEARLY_ALL = 0.95  # least share of a column's texts that are times
AMBIGUOUS = "may begin with the day or the month"
START = 20  # texts by which a form is chosen
COMPACT = re.compile(r"(19|20)\d{12}")  # no thousandths of seconds: these would be of 2573 or so
LIKE_TIME = re.compile(r"[\w ,+]{0,12}\d[-/.:]\d[-\w ,:/.+]{0,30}")
DATES = (
    "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%y/%m/%d", "%b %d, %Y", "%d %b %Y",
)  # fmt: skip
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
ISO = ""  # the form of ISO 8601, and of numbers
FORMS = (
    *map("".join, itertools.product(DATES, CLOCKS)),
    "%a %b %d %H:%M:%S %z %Y",  # of Mechanical Turk
    "%a %b %d %H:%M:%S %Y",
    "%a, %d %b %Y %H:%M:%S %z",
    "%Y%m%d%H%M%S",
)
# Hours from UTC.
ZONES = {"UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6,
         "PST": -8, "PDT": -7, "CET": 1, "CEST": 2}  # fmt: skip
_ZONE = re.compile(rf"\b({'|'.join(ZONES)})\b")


def time_column(table: Table, columns: Texts, roles: Sequence[Texts]) -> tuple[str | None, bool]:
    """Returns the column of times: the first, by the rank of its name, whose cells are times.

    A column that never differs within an item has the item's date. One with another name has times
    if its cells are written as times, not as numbers, and differ within annotators too. If no
    column can be read, it is the first that is named as times, or whose order of day and month is
    not known.

    Args:
        table: with a row per label.
        columns: those without another role.
        roles: the columns of items, and those of annotators.

    Returns:
        the column, and whether it can be read.
    """
    named = time_columns(tuple(columns))
    others = []
    for column in without(columns, named):
        texts = table.distinct(column)
        is_time = len(texts) > 1 and all(map(LIKE_TIME.fullmatch, texts[:START]))
        if is_time and not is_fact(table, roles[1], column):
            others.append(column)
    unread = None
    for column in (*named, *others):
        if is_constant(table, roles[0], column):
            continue
        seconds, problem = read_times(table.codes(column)[0])
        if seconds is not None and np.isfinite(seconds).any():
            return column, True
        if seconds is None and unread is None and (column in named or AMBIGUOUS in problem):
            unread = column
    return unread, False


def read_times(texts: Texts) -> tuple[Floats | None, str]:
    """Returns texts as seconds since 1970, and why they cannot be read ("" if they can).

    Times are written in one form: as ISO 8601 has them (UTC unless they say otherwise), as seconds
    since 1970, thousandths of seconds and so on, or as one of `FORMS`. A few texts may be no times:
    they are NaN, as missing ones. If the texts do not tell which number is the day and which one
    the month, they are not read.
    """
    _, seconds, problem = _reading(texts)
    return seconds, problem


def time_form(texts: Texts) -> tuple[str | None, str]:
    """Returns the form of times, and why it is not known; `ISO` stands for numbers too."""
    form, _, problem = _reading(texts)
    return form, problem


def _reading(texts: Texts) -> tuple[str | None, Floats | None, str]:
    """Returns the form of times, the seconds, and why they are not read; see `read_times`."""
    bare = list(map(str.strip, texts))
    filled = _filled(bare)
    if not filled:
        return ISO, np.full(len(bare), math.nan), ""
    least = NEARLY_ALL * len(filled)
    if {*map(_seconds, filled[:START])} - {None}:
        seconds = seconds_in(ISO, bare)
        if np.isfinite(seconds).sum() >= least:
            return ISO, seconds, ""
    start = _filled(_zoned(filled))[:START]
    forms = []
    in_forms = []
    for form in FORMS:
        if any(_fits(text, form) for text in start):
            forms.append(form)
            in_forms.append(seconds_in(form, bare))
    readings = np.array(in_forms).reshape(-1, len(bare))
    counts = np.isfinite(readings).sum(axis=1)
    if counts.max(initial=0) < least:
        return None, None, f"{filled[0]!r} is not read as a time; write 2026-01-31 09:00"
    best, *others = readings[counts == counts.max()]
    if all(np.array_equal(best, other, equal_nan=True) for other in others):
        return forms[int(counts.argmax())], best, ""
    return None, None, f"{filled[0]!r} {AMBIGUOUS}; write 2026-01-31"


def seconds_in(form: str, texts: Texts) -> Floats:
    """Returns texts of a form as seconds since 1970, NaN for others; see `time_form`."""
    bare = list(map(str.strip, texts))
    if form == ISO:
        return np.array(list(map(_seconds, bare)), dtype=np.float64)
    return _in_form(_zoned(bare), form)


def _zoned(texts: Texts) -> list[str]:
    return [_ZONE.sub(lambda zone: f"{ZONES[zone[1]] * 100:+05d}", text) for text in texts]


def _filled(texts: Texts) -> list[str]:
    return [text for text in texts if text.lower() not in MISSING]


def _fits(text: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(text, form)
    except ValueError:
        return False
    return True


def _in_form(texts: Texts, form: str) -> Floats:
    """Returns texts of a form as seconds since 1970, NaN for others."""
    import pandas as pd

    times = pd.to_datetime(pd.Series(texts, dtype=object), format=form, errors="coerce", utc=True)
    since = times - pd.Timestamp(0, tz="UTC")
    return np.asarray(since.dt.total_seconds(), dtype=np.float64)


def _seconds(text: str) -> float | None:
    """Returns a text as seconds since 1970, or None."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if FIRST <= value < math.inf and COMPACT.fullmatch(text) is None:
        factor = sum(map(value.__ge__, UNITS))
        return value / 1000.0**factor
    try:
        time = datetime.datetime.fromisoformat(text.removesuffix(" UTC"))
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return time.timestamp()
