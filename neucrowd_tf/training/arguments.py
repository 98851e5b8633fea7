"""Checks of hyper-parameters: one line that begins with the argument's name, says what was expected
and what was received.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from neucrowd_tf.errors import UsageError


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, (int, float, np.integer, np.floating))
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


def check_whole(name: str, value: Any, least: int = 1, *, optional: bool = False) -> None:
    """Raises UsageError unless `value` is a whole number from `least` (or None, where that is
    allowed).
    """
    if not (_is_whole(value) and value >= least) and not (optional and value is None):
        raise UsageError(
            f"{name}: expected {'None or ' if optional else ''}a whole number from {least},"
            f" received {value!r}"
        )


def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> None:
    """Raises UsageError unless `value` is a finite number from `least`, above `above` and below
    `below`.
    """
    fits = (
        _is_number(value)
        and (least is None or value >= least)
        and (above is None or value > above)
        and (below is None or value < below)
    )
    if not fits:
        bounds = [
            f"{word} {bound:g}"
            for word, bound in (("from", least), ("above", above), ("below", below))
            if bound is not None
        ]
        raise UsageError(f"{name}: expected a number {' and '.join(bounds)}, received {value!r}")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raises UsageError unless `value` is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        *first, last = map(repr, choices)
        raise UsageError(f"{name}: expected {', '.join(first)} or {last}, received {value!r}")


def check_widths(name: str, value: Any) -> None:
    """Raises UsageError unless `value` holds one whole number from 1 or more of them."""
    if not (
        _is_list(value) and len(value) and all(_is_whole(width) and width >= 1 for width in value)
    ):
        raise UsageError(f"{name}: expected a list of whole numbers from 1, received {value!r}")


def check_strengths(name: str, value: Any) -> None:
    """Raises UsageError unless `value` holds one number above 0 or more of them."""
    if not (
        _is_list(value)
        and len(value)
        and all(_is_number(strength) and strength > 0 for strength in value)
    ):
        raise UsageError(f"{name}: expected a list of numbers above 0, received {value!r}")


def check_training(estimator: Any) -> None:
    """Raises UsageError for one of the arguments that every estimator with a training loop has."""
    check_whole("patience", estimator.patience, optional=True)
    check_whole("seed", estimator.seed, 0)
    check_number("learning_rate", estimator.learning_rate, above=0)
    check_number("dropout", estimator.dropout, least=0, below=1)
    check_number("l2", estimator.l2, least=0)
    check_number("validation_fraction", estimator.validation_fraction, above=0, below=1)


def _is_list(value: Any) -> bool:
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes))
