"""When labels were given."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.io.column_names import MISSING, time_columns
from neucrowd_tf.io.table import Table

FIRST = 1e8  # seconds from 1970 to 1973: smaller numbers are durations or count rows
UNITS = (1e17, 1e14, 1e11)  # least numbers of nanoseconds, microseconds and milliseconds


def time_column(table: Table, columns: Sequence[str]) -> str | None:
    """Returns the first of the columns, by the rank of its name, whose cells are all times.

    Args:
        table: with a row per label.
        columns: those without another role.

    """
    for column in time_columns(tuple(columns)):
        seconds = seconds_of(table.codes(column)[0])
        if seconds is not None and np.isfinite(seconds).any():
            return column
    return None


def seconds_of(texts: Sequence[str]) -> NDArray[np.float64] | None:
    """Returns texts as seconds since 1970, NaN if missing; None if a text is no time.

    Times are written as ISO 8601 has them (UTC unless they say otherwise), or are seconds since
    1970, thousandths of seconds and so on. Other forms have an order of day and month that a file
    does not say.
    """
    values = []
    for text in map(str.strip, texts):
        if text.lower() in MISSING:
            values.append(math.nan)
            continue
        value = _seconds(text)
        if value is None:
            return None
        values.append(value)
    return np.array(values)


def _seconds(text: str) -> float | None:
    """Returns a text as seconds since 1970, or None."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if FIRST <= value < math.inf:
        factor = sum(value >= unit for unit in UNITS)
        return value / 1000.0**factor
    try:
        time = datetime.datetime.fromisoformat(text.removesuffix(" UTC"))
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return time.timestamp()
