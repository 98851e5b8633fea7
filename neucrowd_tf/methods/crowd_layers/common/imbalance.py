"""What annotations of each class weigh in the loss: by a user's weights, and against imbalance."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from neucrowd_tf.declare.declarations import Constraint, none, number
from neucrowd_tf.declare.types import Array, Floats32, Indices, Integers
from neucrowd_tf.errors import UsageError

CLASS_WEIGHT = none | Constraint(
    "class names with numbers from 0",
    lambda value: isinstance(value, Mapping) and all(map(number(least=0).holds, value.values())),
)
# Losses against imbalance, with the usual constants.
IMBALANCES = ("none", "resampling", "reweighting", "focal", "cb_focal")
GAMMA = 2.0  # of the focal losses
BETA = 0.9999  # of the class-balanced focal loss


def class_weights(counts: Array, imbalance: str) -> Floats32:
    """Returns the weight `[C]` of an annotation of each class.

    Args:
        counts: `[C]` annotations of each class.
        imbalance: "reweighting" and "resampling" give max N_c / N_c (section 4.1); "cb_focal" gives
            (1 - beta) / (1 - beta^N_c) with `BETA`, scaled so that the classes in use have mean
            weight 1; others give 1.

    Returns:
        float32; a class without annotations has weight 1, which no annotation carries.

    References:
        DASC, section 4.1; Cui et al. (2019), Class-balanced loss based on effective number of
        samples, eq. 3.
    """
    n = np.asarray(counts, dtype=np.float64)
    used = n > 0
    weights = np.ones(len(n))
    if imbalance in ("reweighting", "resampling"):
        weights[used] = n.max() / n[used]
    elif imbalance == "cb_focal":
        weights[used] = (1.0 - BETA) / (1.0 - BETA ** n[used])
        weights[used] /= weights[used].mean()
    return weights.astype(np.float32)


def resampled_multiplicities(labels: Integers, weights: Array, seed: int) -> Indices:
    """Returns how often each of `[A]` annotations occurs in the oversampled data.

    This is the whole part of its class's weight, and once more for as many others of the class,
    drawn without replacement, as bring the class to the largest one's size.

    Args:
        labels: `[A]` class codes.
        weights: `[C]` max N_c / N_c.
        seed: draws the annotations that are taken once more.
    """
    rng = np.random.default_rng([seed, 0x5A3])
    copies = np.ones(len(labels), dtype=np.int64)
    for code, weight in enumerate(np.asarray(weights, dtype=np.float64)):
        members = np.flatnonzero(labels == code)
        if len(members):
            copies[members], more = divmod(round(weight * len(members)), len(members))
            copies[rng.permutation(members)[:more]] += 1
    return copies


def class_weight_of(class_weight: Mapping[Hashable, float] | None, classes: Array) -> Floats32:
    """Returns the weight `[C]` of each class; those that are not named weigh 1.

    Names are compared as text, so that they can be the keys of JSON.

    Raises:
        UsageError: a name that no class has.
    """
    names = list(map(str, classes.tolist()))
    weights = np.ones(len(names), np.float32)
    for key, weight in (class_weight or {}).items():
        if str(key) not in names:
            raise UsageError(
                f"class_weight: no class is named {str(key)!r}. There are {', '.join(names)}."
            )
        weights[names.index(str(key))] = weight
    return weights
