"""Counterfactual risk minimisation: learning from annotations drawn by last epoch's generative
module (eqs. 5 and 6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import tensorflow as tf

Multiplier = float | Literal["mean", "search"]

# Quantiles of the losses that are tried as mu when it is searched for.
CANDIDATES = (0.1, 0.3, 0.5, 0.7, 0.9)


def importance_ratios(current: Any, logged: Any, *, cap: float = 10.0, floor: float = 1e-3) -> Any:
    """Returns G(y) / G_0(y), at most `cap`, with logged probabilities of at least `floor`.

    Deviation: the paper caps nothing; an annotation that was drawn against the odds would else
    outweigh all others.

    Args:
        current: `[...]` probability that the present generative module gives to the drawn label.
        logged: `[...]` the probability when it was drawn.

    References:
        CrowdInG, eqs. 5 and 6 (G / G_0).
    """
    return tf.minimum(current / tf.maximum(logged, floor), cap)


def counterfactual_risk(losses: Any, ratios: Any, multiplier: Any) -> Any:
    """Returns the mean of (delta - mu) G / G_0, a scalar.

    Args:
        losses: delta of eq. 5, or L_G of eq. 6, for each drawn label; no gradient passes through
            them.
        ratios: of the same shape, from `importance_ratios`.
        multiplier: mu. With mu = 0 and negative losses every drawn label becomes more probable,
            whatever it is; mu keeps the module from merely following its own draws (Joachims et
            al., 2018).

    References:
        CrowdInG, eqs. 5 and 6.
    """
    return tf.reduce_mean((tf.stop_gradient(losses) - multiplier) * ratios)


def exact_risk(answers: Any, losses: Any) -> Any:
    """Returns the mean over pairs of sum_y G(y) delta(y), a scalar: what `counterfactual_risk`
    estimates, without draws, a logging policy or mu.

    Args:
        answers: `[B, R, C]` G(y | x, e, z-hat); or `[B, R, C, C]`, P(z) G(y | x, e, z).
        losses: delta of the same shape; no gradient passes through them.

    References:
        CrowdInG, eqs. 5 and 6 (what the draws stand for).
    """
    axes = list(range(2, len(answers.shape)))
    return tf.reduce_mean(tf.reduce_sum(answers * tf.stop_gradient(losses), axis=axes))


def ratio_sums(losses: Any, ratios: Any) -> Any:
    """Returns the sums of losses x ratios, ratios, squared ratios and ones, `[4]`."""
    return tf.stack(
        [
            tf.reduce_sum(losses * ratios),
            tf.reduce_sum(ratios),
            tf.reduce_sum(tf.square(ratios)),
            tf.cast(tf.size(ratios), tf.float32),
        ]
    )


def self_normalised_estimate(sums: Any) -> Any:
    """Returns sum(delta w) / sum(w), the loss expected under the present module, from `ratio_sums`.

    References:
        Joachims, Swaminathan, de Rijke (2018), Deep learning with logged bandit feedback, section
        3.2.
    """
    return tf.math.divide_no_nan(sums[0], sums[1])


def effective_share(sums: Any) -> Any:
    """Returns the effective sample size over the sample size, (sum w)^2 / (n sum w^2), from
    `ratio_sums`.

    It is 1 where all importance ratios are equal, 1/n where one outweighs the rest.
    """
    return tf.math.divide_no_nan(tf.square(sums[1]), sums[3] * sums[2])


def ratio_report(network: str, multiplier: Any, sums: Any) -> dict[str, Any]:
    """Returns what is logged of a network's turn."""
    return {
        f"{network}_estimate": self_normalised_estimate(sums),
        f"{network}_effective_share": effective_share(sums),
        f"{network}_multiplier": multiplier,
    }


def quantiles(losses: Any) -> Any:
    """Returns the losses at the quantiles `CANDIDATES`."""
    ordered = tf.sort(tf.reshape(losses, [-1]))
    places = tf.constant(CANDIDATES) * tf.cast(tf.size(ordered) - 1, tf.float32)
    return tf.gather(ordered, tf.cast(places, tf.int32))


def of_each(losses: Any, of: Callable[[Any], Any]) -> Any:
    """Returns `of(losses)`; of a list, its values stacked along a last axis."""
    several = isinstance(losses, list)
    return tf.stack([of(each) for each in losses], axis=-1) if several else of(losses)


def search_multiplier(
    multiplier: Multiplier, run: Callable[[Any], Any], losses: Any, changed: list[Any]
) -> tuple[Any, Any]:
    """Takes a turn with the given mu, with the mean of the losses, or with the best of several
    values.

    Args:
        multiplier: mu; "mean"; or "search", which takes the turn once with each of `CANDIDATES`,
            quantiles of the losses, and keeps the result with the lowest self-normalised estimate.
        run: `run(mu)` takes the turn and returns `ratio_sums`.
        losses: delta or L_G of all logged labels; a list of both where two networks take the turn
            together, each with a mu of its own (a search takes them at one quantile).
        changed: the variables that a turn changes.

    Returns:
        the mu that was used (one for each network where there are several), and its sums.

    References:
        CrowdInG, section 3.3.2 (mu is searched for); Joachims, Swaminathan, de Rijke (2018),
        section 3.3.
    """
    if multiplier == "mean":
        # Deviation: the mean loss in place of a search, which takes as many times as long as it
        # tries values.
        mean = of_each(losses, tf.reduce_mean)
        return mean, run(mean)
    if multiplier != "search":
        given = of_each(losses, lambda _: tf.constant(float(multiplier)))
        return given, run(given)
    candidates = of_each(losses, quantiles)
    start = [tf.identity(variable) for variable in changed]

    def put(values: list[Any]) -> None:
        for variable, value in zip(changed, values, strict=True):
            variable.assign(value)

    def body(
        index: Any, best_mu: Any, best_estimate: Any, best_sums: Any, *best: Any
    ) -> tuple[Any, ...]:
        put(start)
        mu = candidates[index]
        sums = run(mu)
        estimate = self_normalised_estimate(sums)
        better = estimate < best_estimate
        kept = [
            tf.where(better, tf.convert_to_tensor(variable), value)
            for variable, value in zip(changed, best, strict=True)
        ]
        return (
            index + 1,
            tf.where(better, mu, best_mu),
            tf.minimum(estimate, best_estimate),
            tf.where(better, sums, best_sums),
            *kept,
        )

    first = (tf.constant(0), candidates[0], tf.constant(np.inf, tf.float32), tf.zeros([4]), *start)
    _, best_mu, _, best_sums, *best = tf.while_loop(
        lambda index, *_: index < len(CANDIDATES), body, first, parallel_iterations=1
    )
    put(best)
    return best_mu, best_sums
