"""Names and numbers as short, printable text."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from neucrowd_tf.errors import printable

LONGEST_NAME = 48
LONGEST_TITLE = 300
LARGEST_DOWNLOAD = 600_000


def _text(value: Any) -> str:
    return str(value.item() if isinstance(value, np.generic) else value)


def shown(value: Any, longest: int = LONGEST_NAME) -> str:
    """Returns a name for a table or a picture: printable, a long one shortened in the middle."""
    # A very long name is cut first, because each character is checked.
    text = _text(value)
    size = len(text)
    if size > 4 * longest:
        text = text[: 2 * longest] + text[-2 * longest :]
    text = printable(text) or "(empty)"
    if size <= longest and len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return f"{text[:head]}…{text[-(longest - 1 - head) :]}"


def tooltip(value: Any) -> str:
    """Returns the longer text of a name that `shown` cuts, or an empty text."""
    text = _text(value)
    if len(text) <= LONGEST_NAME:
        return ""
    return (
        f"{printable(text[:LONGEST_TITLE])}{'…' if len(text) > LONGEST_TITLE else ''}"
        f" ({len(text):,} characters)"
    )


def number(value: Any, digits: int = 3) -> str:
    """Returns a number as text, or a dash for None and NaN.

    Whole numbers have separated thousands, others `digits` decimal places (see the templates).
    """
    if value is None or (isinstance(value, (float, np.floating)) and not np.isfinite(value)):
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{int(value):,}"
    text = f"{float(value):,.{1 if abs(value) >= 100 else digits}f}"
    return text.removeprefix("-") if not float(text.replace(",", "")) else text.replace("-", "−")


def percent(value: Any) -> str:
    """Returns a share as a percentage, or a dash for None and NaN."""
    if value is None or not np.isfinite(value):
        return "–"
    return f"{100 * float(value):.1f}%".replace("-", "−")


def csv_link(text: str) -> str | None:
    """Returns a data address that a browser saves as a CSV, or None if it is too large."""
    content = text.encode("utf-8", "replace")
    if len(content) > LARGEST_DOWNLOAD:
        return None
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(content).decode("ascii")
