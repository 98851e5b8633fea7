"""What the entropy decides: which generated annotations the discriminator learns from, and which
instances teach the generator or the classifier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST = 1e-6


def entropy(probabilities: Any) -> Any:
    """Returns the Shannon entropy of distributions in nats, `[..., C] -> [...]`; 0 log 0 counts as
    0.
    """
    return -tf.reduce_sum(tf.math.xlogy(probabilities, probabilities), axis=-1)


def selection_counts(observed: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Returns `[R]`: how many generated annotations of each annotator are taken.

    As many as there are authentic ones, but no more than the annotator has unlabelled instances:
    who labelled nearly everything has all the rest taken.

    Args:
        observed: `[N, R]` True where there is an authentic annotation.

    References:
        CrowdInG, section 3.3.1.
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
        CrowdInG, section 3.3.1 (P(y) proportional to 1 / H(G)), section 4.5.1 (CrowdInGR).
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


def split_by_entropy(entropies: Any, threshold: float) -> tuple[Any, Any]:
    """Returns the instances that update the generator, and the rest, which update the classifier.

    Where the classifier is sure it is more often right, so these instances show the generator what
    annotators make of a class; the updated generator then teaches the classifier on the instances
    of which it is not sure.

    Args:
        entropies: `[N]` of the classifier's predictions.
        threshold: t, the share of the instances, those with the lowest entropy, that go to the
            generator.

    Returns:
        two vectors of instance codes, `round(t N)` and the others, each by increasing entropy; of
        two instances or more, each gets one at least.

    References:
        CrowdInG, section 3.3.3.
    """
    order = tf.argsort(entropies, stable=True)
    # Deviation: t is a share rather than a value of the entropy, so that it means the same whatever
    # the number of classes.
    size = tf.cast(tf.round(threshold * tf.cast(tf.size(order), tf.float32)), tf.int32)
    size = tf.clip_by_value(size, 1, tf.maximum(tf.size(order) - 1, 1))
    return order[:size], order[size:]
