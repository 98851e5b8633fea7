"""Which generated annotations the discriminator is trained on (section 3.3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST = 1e-6


def selection_counts(observed: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Returns `[R]`: how many generated annotations of each annotator are taken.

    As many as there are authentic ones, but no more than the annotator has unlabelled instances:
    who labelled nearly everything has all the rest taken.

    Args:
        observed: `[N, R]` True where there is an authentic annotation.
    """
    authentic = observed.sum(axis=0)
    return np.minimum(authentic, len(observed) - authentic).astype(np.int32)


def select_annotations(
    entropies: Any, observed: Any, counts: Any, seed: Any, *, by_entropy: bool = True
) -> tuple[Any, Any]:
    """Draws unobserved pairs without replacement, for each annotator the wanted number, with
    probability proportional to 1/entropy.

    Perturbing the logarithm of the weights with Gumbel noise and taking the largest is such a draw
    (Kool et al., 2019).

    Args:
        entropies: `[N, R]` of the generator's distribution for each pair.
        observed: `[N, R]` bool.
        counts: `[R]` from `selection_counts`.
        seed: `[2]`, decides the draw.
        by_entropy: False draws all unobserved pairs with the same probability (CrowdInGR).

    Returns:
        instance and annotator codes `[sum of counts]`, sorted by annotator.

    References:
        CrowdInG, section 3.3.1.
    """
    uniform = tf.random.stateless_uniform(
        tf.shape(observed), seed=seed, minval=np.finfo(np.float32).tiny
    )
    keys = -tf.math.log(-tf.math.log(uniform))
    if by_entropy:
        keys -= tf.math.log(tf.maximum(entropies, _LEAST))
    keys = tf.where(observed, -np.inf, keys)
    ranked = tf.argsort(tf.transpose(keys), axis=1, direction="DESCENDING", stable=True)
    taken = tf.sequence_mask(counts, tf.shape(ranked)[1])
    annotators = tf.cast(tf.where(taken)[:, 0], tf.int32)
    return tf.boolean_mask(ranked, taken), annotators
