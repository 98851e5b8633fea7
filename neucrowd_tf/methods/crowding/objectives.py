"""Equations 3 to 6 of CrowdInG, its selection and its split by entropy, as pure functions."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.types import Codes32, Mask, Tensor
from neucrowd_tf.methods.crowd_layers.common.losses import at_labels

# Quantiles of the losses that a search for mu tries.
CANDIDATES = (0.1, 0.3, 0.5, 0.7, 0.9)
_LEAST_ENTROPY = 1e-6


def entropy(probabilities: Tensor) -> Tensor:
    """Returns the Shannon entropy of distributions in nats, `[..., C] -> [...]`.

    The term 0 log 0 counts as 0.
    """
    return -tf.reduce_sum(tf.math.xlogy(probabilities, probabilities), axis=-1)


# ----------------------------------------------------------------- discriminator (eq. 4)


def printed_discriminator_losses(logits: Tensor, labels: Tensor, authentic: Tensor) -> Tensor:
    """Returns eq. 4 as published: -log D(y) if authentic and -log(1 - D(y)) if generated, `[P]`.

    Args:
        logits: `[P, C]` of D.
        labels: `[P]` class codes.
        authentic: `[P]` bool, False for generated annotations.

    References:
        CrowdInG, eq. 4 (V).
    """
    chosen = at_labels(logits, labels)
    return tf.where(authentic, tf.nn.softplus(-chosen), tf.nn.softplus(chosen))


def discriminator_losses(logits: Tensor, labels: Tensor, authentic: Tensor) -> Tensor:
    """Returns the discriminator's loss of each annotation, `[P]`.

    An authentic annotation costs the cross-entropy of all C entries of D with its one-hot label, a
    generated one -log(1 - D(y)).

    Args:
        logits: `[P, C]` of D.
        labels: `[P]` class codes.
        authentic: `[P]` bool, False for generated annotations.

    References:
        CrowdInG, eq. 4 (V, which D maximises) and section 3.2.2 (D is a multi-label classifier).
    """
    # Deviation: CrowdInG eq. 4. Paper: Log D(y) of authentic and log(1 - D(y)) of generated
    # annotations. Here: Authentic: cross-entropy of all C entries against the one-hot label;
    # generated: log(1 - D) of the generated entry. Why: With one entry on both sides D lowers the
    # labels that the generator gives more often than annotators, which are mostly right here (0.84
    # of the generated ones); the classifier gains less. Effect: claim crowding_printed_loss.
    entry_losses = tf.nn.softplus(logits) - tf.one_hot(labels, tf.shape(logits)[1]) * logits
    generated = tf.nn.softplus(at_labels(logits, labels))
    return tf.where(authentic, tf.reduce_sum(entry_losses, axis=1), generated)


def output_penalty(logits: Tensor) -> Tensor:
    """Returns the mean of D^2 over all entries, which keeps D's outputs sparse.

    References:
        CrowdInG, section 3.2.2 (L2 norm of the outputs).
    """
    return tf.reduce_mean(tf.square(tf.sigmoid(logits)))


# ----------------------------------------------------------------- information (eq. 3)


def latent_log_likelihood(latent: Tensor, log_q: Tensor) -> Tensor:
    """Returns the expectation of log Q(z | y) over z-hat, `[..., C] -> [...]`.

    Args:
        latent: `[..., C]` probabilities, z-hat.
        log_q: `[..., C]` log probabilities by the auxiliary network.

    References:
        CrowdInG, eq. 3 (its first term, of one annotation).
    """
    # The expectation over z is a sum of C terms, so it is taken exactly rather than by drawing z.
    return tf.reduce_sum(latent * log_q, axis=-1)


# ----------------------------------------------------------------- generator, classifier (5, 6)


def authenticity_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Returns L_G = log(1 - D(y)) of drawn labels, `[..., C]` and `[...]` to `[...]`.

    References:
        CrowdInG, section 3.3.2 (L_G).
    """
    return -tf.nn.softplus(at_labels(logits, labels))


def generator_delta(authenticity: Tensor, likelihood: Tensor, information: float) -> Tensor:
    """Returns delta = L_G - lambda E[log Q(z | y)] of drawn labels, `[...]`.

    Minimising it raises log Q. H(z), the other term of L_I, is a constant here.

    Args:
        authenticity: `[...]` L_G, from `authenticity_loss`.
        likelihood: `[...]` from `latent_log_likelihood`.
        information: lambda.

    References:
        CrowdInG, section 3.3.2 (delta, above eq. 5).
    """
    return authenticity - information * likelihood


def authentic_loss(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """Returns the mean of -log G(y) over authentic annotations, `[P, C]` and `[P]` to a scalar.

    References:
        CrowdInG, section 3.3.3 (the generator is pre-trained).
    """
    return -tf.reduce_mean(at_labels(log_probabilities, labels))


def importance_ratios(current: Tensor, logged: Tensor, *, cap: float, floor: float) -> Tensor:
    """Returns G(y) / G_0(y), at most `cap`, with logged probabilities of at least `floor`.

    Args:
        current: `[...]` probability of the drawn label under the present generative module.
        logged: `[...]` its probability when it was drawn.
        cap: largest ratio; a ratio above it has no gradient.
        floor: least logged probability.

    References:
        CrowdInG, eqs. 5 and 6 (G / G_0).
    """
    # Deviation: CrowdInG eqs. 5 and 6. Paper: G / G_0 as it is. Here: Capped at 10, G_0 at least
    # 1e-3. Why: A label drawn against the odds would outweigh all others. Effect: claim
    # crowding_no_cap.
    return tf.minimum(current / tf.maximum(logged, floor), cap)


def counterfactual_risk(losses: Tensor, ratios: Tensor, multiplier: Tensor) -> Tensor:
    """Returns the mean of (loss - mu) G / G_0, a scalar.

    Args:
        losses: delta (eq. 5) or L_G (eq. 6) of each drawn label; no gradient passes through them.
        ratios: of the same shape, from `importance_ratios`.
        multiplier: mu. With mu = 0 and negative losses every drawn label becomes more probable,
            whatever it is (Joachims et al., 2018).

    References:
        CrowdInG, eqs. 5 and 6.
    """
    return tf.reduce_mean((tf.stop_gradient(losses) - multiplier) * ratios)


def ratio_sums(losses: Tensor, ratios: Tensor) -> Tensor:
    """Returns the sums of losses x ratios and of ratios, `[2]`."""
    return tf.stack([tf.reduce_sum(losses * ratios), tf.reduce_sum(ratios)])


def self_normalised_estimate(sums: Tensor) -> Tensor:
    """Returns sum(loss w) / sum(w), the loss expected under the present module.

    Args:
        sums: `[2]` from `ratio_sums`.

    References:
        Joachims, Swaminathan, de Rijke (2018), Deep learning with logged bandit feedback, section
        3.2.
    """
    return tf.math.divide_no_nan(sums[0], sums[1])


def quantiles(losses: Tensor) -> Tensor:
    """Returns the losses at the quantiles `CANDIDATES`, the values of mu that a search tries."""
    ordered = tf.sort(tf.reshape(losses, [-1]))
    places = tf.constant(CANDIDATES) * tf.cast(tf.size(ordered) - 1, tf.float32)
    return tf.gather(ordered, tf.cast(places, tf.int32))


# ----------------------------------------------------------------- entropy (3.3.1, 3.3.3)


def selection_counts(observed: Mask) -> Codes32:
    """Returns how many generated annotations of each annotator are selected, `[R]`.

    As many as the annotator gave authentic ones, but no more than the annotator has unlabelled
    instances.

    Args:
        observed: `[N, R]` True if there is an authentic annotation.

    References:
        CrowdInG, section 3.3.1.
    """
    authentic = observed.sum(axis=0)
    return np.minimum(authentic, len(observed) - authentic).astype(np.int32)


def select_annotations(
    entropies: Tensor, observed: Tensor, counts: Tensor, seed: Tensor, *, by_entropy: bool = True
) -> tuple[Tensor, Tensor]:
    """Draws unobserved pairs without replacement, with probability proportional to 1/entropy.

    Adding Gumbel noise to the logarithm of the weights and taking the largest is such a draw (Kool
    et al., 2019).

    Args:
        entropies: `[N, R]` of the generator's distribution for each pair.
        observed: `[N, R]` bool.
        counts: `[R]` pairs to draw of each annotator, from `selection_counts`.
        seed: `[2]`, decides the draw.
        by_entropy: False draws all unobserved pairs with the same probability (CrowdInGR).

    Returns:
        Instance and annotator codes `[sum of counts]`, sorted by annotator.

    References:
        CrowdInG, section 3.3.1 (P(y) proportional to 1 / H(G)), section 4.5.1 (CrowdInGR).
    """
    uniform = tf.random.stateless_uniform(
        tf.shape(observed), seed=seed, minval=np.finfo(np.float32).tiny
    )
    keys = -tf.math.log(-tf.math.log(uniform))
    if by_entropy:
        keys -= tf.math.log(tf.maximum(entropies, _LEAST_ENTROPY))
    keys = tf.where(observed, -np.inf, keys)
    # Of equal keys the first instance comes first.
    _, ranked = tf.math.top_k(tf.transpose(keys), k=tf.reduce_max(counts))
    taken = tf.sequence_mask(counts, tf.shape(ranked)[1])
    annotators = tf.cast(tf.where(taken)[:, 0], tf.int32)
    return tf.boolean_mask(ranked, taken), annotators


def split_by_entropy(entropies: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    """Returns the instances that update the generator, and those that update the classifier.

    If the classifier is sure it is more often right, so these instances show the generator how
    annotators label a class. The updated generator then teaches the classifier on the others.

    Args:
        entropies: `[N]` of the classifier's predictions.
        threshold: t, the share of the instances, those with the lowest entropy, that go to the
            generator.

    Returns:
        Two vectors of instance codes, `round(t N)` and the others, each by increasing entropy. Of
        two instances or more, each vector has at least one.

    References:
        CrowdInG, section 3.3.3.
    """
    order = tf.argsort(entropies, stable=True)
    # Deviation: CrowdInG section 3.3.3. Paper: A threshold t, read as one on the entropy. Here: T
    # is the share of instances, those with the lowest entropy, that update the generator; generator
    # and classifier get one instance at least. Why: The same meaning for any number of classes.
    # Effect: claim crowding_nats.
    size = tf.cast(tf.round(threshold * tf.cast(tf.size(order), tf.float32)), tf.int32)
    size = tf.clip_by_value(size, 1, tf.maximum(tf.size(order) - 1, 1))
    return order[:size], order[size:]
