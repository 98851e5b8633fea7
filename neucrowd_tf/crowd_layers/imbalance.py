"""What annotations of each class weigh in the loss, against imbalanced classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from neucrowd_tf.arguments import argument, estimator, number

if TYPE_CHECKING:
    from numpy.typing import NDArray


@estimator
class NoImbalance:
    """Plain cross-entropy: every annotation counts the same."""

    name: ClassVar[str] = "none"
    gamma: ClassVar[float] = 0.0
    beta: ClassVar[float] = 0.0


@estimator
class Reweighting(NoImbalance):
    """Annotations of a class weigh max N_c / N_c."""

    name: ClassVar[str] = "reweighting"


@estimator
class Resampling(NoImbalance):
    """Annotations of rarer classes are repeated until classes are equal."""

    name: ClassVar[str] = "resampling"


@estimator
class Focal:
    """The focal loss."""

    name: ClassVar[str] = "focal"
    beta: ClassVar[float] = 0.0

    gamma: float = argument(2.0, number(least=0), "of the focal losses.")


@estimator
class ClassBalancedFocal:
    """The focal loss, whose classes weigh by their effective number of annotations."""

    name: ClassVar[str] = "cb_focal"

    gamma: float = argument(2.0, number(least=0), "of the focal losses.")
    beta: float = argument(0.9999, number(least=0, below=1), "of the class-balanced focal loss.")


IMBALANCE: dict[str, type] = {
    kind.name: kind for kind in (NoImbalance, Resampling, Reweighting, Focal, ClassBalancedFocal)
}


def class_weights(
    counts: NDArray[Any], imbalance: str, beta: float = 0.9999
) -> NDArray[np.float32]:
    """Returns the weight `[C]` of an annotation of each class.

    Args:
        counts: `[C]` annotations of each class.
        imbalance: "reweighting" and "resampling" give max N_c / N_c (section 4.1); "cb_focal" gives
            (1 - beta) / (1 - beta^N_c), scaled so that the classes in use have mean weight 1;
            others give 1.
        beta: of the effective number of samples.

    Returns:
        float32; a class that nobody used has weight 1, as no annotation carries it.

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
        weights[used] = (1.0 - beta) / (1.0 - beta ** n[used])
        weights[used] /= weights[used].mean()
    return weights.astype(np.float32)


def resampled_multiplicities(
    labels: NDArray[np.integer[Any]], weights: NDArray[Any], seed: int
) -> NDArray[np.uint8]:
    """Returns how often each of `[A]` annotations occurs in the oversampled data.

    This is the whole part of its class's weight, and once more for as many others of the class,
    drawn without replacement, as bring the class to the largest one's size.

    Args:
        labels: `[A]` class codes.
        weights: `[C]` max N_c / N_c.
        seed: draws the annotations that are taken once more.
    """
    rng = np.random.default_rng([seed, 0x5A3])
    copies = np.ones(len(labels), dtype=np.uint8)
    for code, weight in enumerate(np.asarray(weights, dtype=np.float64)):
        members = np.flatnonzero(labels == code)
        if not len(members):
            continue
        total = round(weight * len(members))
        # uint8 holds up to 255 copies; a class so rare is oversampled no further.
        copies[members] = min(total // len(members), 254)
        copies[rng.permutation(members)[: total % len(members)]] += 1
    return copies
