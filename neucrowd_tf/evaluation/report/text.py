"""Names and numbers as short, printable text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from neucrowd_tf.errors import printable


def shown(value: object, longest: int = 48) -> str:
    """Returns a name for a table: printable, a long one shortened in the middle."""
    text = str(value)
    if len(text) > longest:
        head = (longest - 1) * 2 // 3
        text = f"{text[:head]}…{text[head + 1 - longest :]}"
    return printable(text) or "(empty)"


def number(value: Any, digits: int = 3) -> str:
    """Returns a number as text, or a dash for None and NaN.

    Whole numbers have separated thousands, others `digits` decimal places (see the template).
    """
    if value is None or np.isnan(value):
        return "–"
    if isinstance(value, (bool, np.bool_)):
        if value:
            return "yes"
        return "no"
    if isinstance(value, (int, np.integer)):
        return f"{int(value):,}"
    return f"{value:z,.{1 if abs(value) >= 100 else digits}f}".replace("-", "−")


def polyline(xs: Iterable[float], ys: Iterable[float]) -> str:
    """Returns the points of a line of a drawing in SVG."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))


def percent(value: float) -> str:
    """Returns a share as a percentage, or a dash for NaN."""
    if np.isnan(value):
        return "–"
    return f"{100 * value:.1f}%"
