"""The expected value of one more label.

It is the expected rise in the probability that the consensus is right, and the information about
the item's class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr


def expected_gain(probas: NDArray[np.float64], errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the expected gain in the consensus' accuracy if an annotator labels a task.

    The consensus is right with probability max_c P(c). The annotator will give label l with
    probability sum_c P(c) E(c, l), after which the consensus is right with probability
    max_c P(c) E(c, l) / sum_c P(c) E(c, l). So the gain is sum_l max_c P(c) E(c, l) - max_c P(c),
    which is 0 where no label could change the consensus.

    Args:
        probas: `[..., C]` of the task's class now.
        errors: `[..., C true class, C observed class]` of the annotator; the leading axes broadcast
            with those of `probas`.
    """
    after = (probas[..., :, None] * errors).max(axis=-2).sum(axis=-1)
    return np.maximum(after - probas.max(axis=-1), 0.0)


def expected_information(
    probas: NDArray[np.float64], errors: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Returns the mutual information, in nats, of an item's class and an annotator's label.

    It is H(sum_c P(c) E(c, .)) - sum_c P(c) H(E(c, .)).

    It is above 0 where the gain is 0 because one label cannot change the consensus, but two could.

    Args:
        probas: see `expected_gain`.
        errors: see `expected_gain`.
    """
    label = (probas[..., :, None] * errors).sum(axis=-2)
    noise = (probas * entr(errors).sum(axis=-1)).sum(axis=-1)
    return np.maximum(entr(label).sum(axis=-1) - noise, 0.0)
