"""Chance-corrected agreement coefficients with weights, and their bootstrap intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.annotations.agreement import COEFFICIENTS, Scale, agreement_coefficients
from neucrowd_tf.certainty.estimate import Estimate, resamples
from neucrowd_tf.declare.types import Array
from neucrowd_tf.errors import DataError


def titles(scale: Scale) -> dict[str, str]:
    """Returns the names of the coefficients on a scale, as a report prints them."""
    gwet = "Gwet's AC1" if scale == "nominal" else "Gwet's AC2"
    names = ("percent agreement", "Fleiss' kappa", "Krippendorff's alpha", gwet)
    return dict(zip(COEFFICIENTS, names, strict=True))


def agreement_intervals(
    votes: ArrayLike, scale: Scale = "nominal", values: ArrayLike | None = None, *, seed: int = 0
) -> dict[str, Estimate]:
    """Returns the coefficients with 80% intervals from resampled instances.

    If all labels agree, so do those of each resample, and the intervals have no width. In a sample
    of few instances this does not show that all annotators agree.

    Args:
        votes: `[N, C]` vote counts.
        scale, values: see `neucrowd_tf.annotations.agreement.agreement_weights`.
        seed: of the resamples.

    Raises:
        DataError: no instance has two labels.

    Example:
        >>> agreement_intervals([[3, 0], [0, 3], [2, 1]])["fleiss"].value > 0.5
        True
    """
    counts: Array = np.asarray(votes)
    counts = counts[counts.sum(axis=1) >= 1]  # items without labels are not resampled
    estimate = agreement_coefficients(counts, scale, values)
    if np.isnan(estimate["percent"]):
        raise DataError("agreement: no item has two labels. Collect two labels for some items.")
    rng = np.random.default_rng(seed)
    # Most crowds have few different rows of votes: the coefficients are computed from these.
    rows, times = np.unique(counts, axis=0, return_counts=True)
    samples = []
    for resampled in resamples(rng, times):
        samples.append(agreement_coefficients(rows, scale, values, times=resampled))
    intervals = {}
    for name, value in estimate.items():
        # A resample with labels of one class has NaN, which `Estimate.of` leaves out.
        intervals[name] = Estimate.of(value, [sample[name] for sample in samples])
    return intervals
