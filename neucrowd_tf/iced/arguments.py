"""Checks of ICED's arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neucrowd_tf.errors import UsageError

if TYPE_CHECKING:
    from neucrowd_tf.iced.estimator import ICED

_CHOICES = {
    "interpolation": ("certainty", "literal", "uniform"),
    "candidates": ("classifier", "inferred"),
    "targets": ("hard", "soft"),
    "prior": ("uniform", "update"),
    "warm_up": ("groups", "all", "top", "none"),
}
_COUNTS = {
    "rounds": 0,
    "epochs_per_round": 1,
    "k": 1,
    "annotation_neighbours": 1,
    "em_iterations": 1,
    "batch_size": 1,
    "warm_up_epochs": 0,
    "autoencoder_epochs": 0,
    "decoder_epochs": 0,
}
_TINY = float(np.nextafter(0.0, 1.0))
# Name, the least and the largest value.
_NUMBERS = (
    ("eta", 0.0, 1.0),
    ("smoothing", 0.0, np.inf),
    ("epsilon", _TINY, np.inf),
    ("learning_rate", _TINY, np.inf),
    ("l2", 0.0, np.inf),
    ("dropout", 0.0, float(np.nextafter(1.0, 0.0))),
    ("tol", 0.0, 1.0),
)


def check_arguments(estimator: ICED) -> None:
    """Raises UsageError for an argument that cannot be used."""
    for name, choices in _CHOICES.items():
        if getattr(estimator, name) not in choices:
            raise UsageError(
                f"{name}: expected one of {', '.join(map(repr, choices))}, received"
                f" {getattr(estimator, name)!r}"
            )
    for name, least in _COUNTS.items():
        if not _is_count(getattr(estimator, name), least):
            raise UsageError(
                f"{name}: expected a whole number from {least}, received"
                f" {getattr(estimator, name)!r}"
            )
    widths = estimator.hidden_units
    if (
        not isinstance(widths, (list, tuple))
        or not len(widths)
        or not all(_is_count(width, 1) for width in widths)
    ):
        raise UsageError(
            f"hidden_units: expected whole numbers from 1, received {estimator.hidden_units!r}"
        )
    for name, low, high in _NUMBERS:
        value = getattr(estimator, name)
        if value is None and name == "tol":
            continue
        if not isinstance(value, (int, float, np.number)) or not low <= value <= high:
            start = "above" if low > 0 else "from"
            most = {1.0: " to 1", np.inf: ""}.get(high, " and below 1")
            raise UsageError(f"{name}: expected a number {start} 0{most}, received {value!r}")


def _is_count(value: object, least: int) -> bool:
    return (
        isinstance(value, (int, np.integer))
        and not isinstance(value, bool)
        and bool(value >= least)
    )
