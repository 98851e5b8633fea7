"""How generator and classifier learn: from logged labels, which the present generative module drew
and the discriminative one judged, or from the exact risk of all labels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from neucrowd_tf.crowding.counterfactual import (
    Multiplier,
    counterfactual_risk,
    exact_risk,
    ratio_report,
    ratio_sums,
    search_multiplier,
)
from neucrowd_tf.crowding.crowd import batches_of, fold, gathered, gradients, passes_over
from neucrowd_tf.crowding.discriminative import DiscriminativeModule
from neucrowd_tf.crowding.generative import GenerativeModule
from neucrowd_tf.nn.steps import take_step

KEPT = 1 << 24  # numbers, 64 MB


def what_is_kept(instances: int, widths: Mapping[str, int]) -> frozenset[str]:
    """Returns what there is room for to keep from a turn's first pass, of numbers by instance."""
    return frozenset(name for name, width in widths.items() if instances * width <= KEPT)


@dataclasses.dataclass(frozen=True)
class Settings:
    """How the turns are taken; see `CrowdInG` for what the fields mean.

    Attributes:
        kept: which of a batch's "features", "noise" and part of the "hidden" layer are kept from
            the first pass of a turn rather than made again; the same numbers either way.
    """

    threshold: float = 0.5
    passes: int = 5
    discriminator_passes: int | None = None
    generator_passes: int | None = None
    classifier_passes: int | None = None
    pair_batch_size: int = 512
    multiplier: Multiplier = "mean"
    selection: str = "entropy"
    two_step: bool = True
    averaging: float = 0.0
    risk: str = "counterfactual"
    likelihood: float = 0.0
    penalised: bool = False
    kept: frozenset[str] = frozenset(("features", "noise", "hidden"))

    def passes_of(self, *players: str) -> int:
        """Returns how many inner passes a player's turn has, or the most of several players'."""
        own = [getattr(self, f"{player}_passes") for player in players]
        return max(self.passes if count is None else count for count in own)


class Player(NamedTuple):
    """Who has a turn.

    Attributes:
        name: "generator" or "classifier".
        latent_of: z-hat of some instances, given their codes and features `[B, d]`; the
            classifier's gradients go through it.
        variables: the network's weights.
        optimizer: theirs.
        further: what is added to its risk in a step, given the batch's number.
    """

    name: str
    latent_of: Callable[[Any, Any], Any]
    variables: list[Any]
    optimizer: keras.optimizers.Optimizer
    further: Callable[[Any], Any]


# Of any number of instances, so that one graph serves the turns of generator and classifier.
_LOGGED = (
    tf.TensorSpec([None], tf.int32),
    tf.TensorSpec([None, None], tf.float32),
    tf.TensorSpec([2], tf.int32),
)


class Logged(NamedTuple):
    """Labels that the logging policy drew for all pairs of some instances.

    Attributes:
        rows: `[n]` instances; batches of them met the noise of (`seed`, the batch's number).
        labels: `[n, R]`.
        chances: `[n, R]` its probabilities of them.
        signals, deltas: `[n, R]` L_G and delta.
        classes: `[n, R]` what labels were drawn for (`[n, 0]` where z-hat is fed).
        seed: `[2]`.
    """

    rows: Any
    labels: Any
    chances: Any
    signals: Any
    deltas: Any
    classes: Any
    seed: Any


class Learning:
    """The steps of generator and classifier in their turns.

    Args:
        generative, discriminative: the modules.
        settings: how the turns are taken.

    References:
        CrowdInG, section 3.3.2.
    """

    def __init__(
        self, generative: GenerativeModule, discriminative: DiscriminativeModule, settings: Settings
    ) -> None:
        self.generative, self.discriminative = generative, discriminative
        self.settings = settings

    @tf.function(autograph=False, input_signature=_LOGGED)
    def logged(self, rows: Any, latent: Any, seed: Any) -> Logged:
        """Lets the present generative module, the logging policy, label all pairs of some
        instances.

        Args:
            rows: `[n]` instances.
            latent: `[N, C]` z-hat of all instances.
            seed: `[2]`.

        References:
            CrowdInG, section 3.3.2 (G_0).
        """

        def compute(index: Any) -> tuple[Any, ...]:
            chosen = rows[self._batch(index)]
            z = tf.gather(latent, chosen)
            drawn = self.generative.draw(chosen, z, fold(seed, index))
            judged = self.discriminative.signals(
                chosen, drawn.fed, drawn.labels, self._log_answers(chosen, z)
            )
            return drawn.labels, drawn.chances, *judged, drawn.classes

        kinds = (tf.int32, tf.float32, tf.float32, tf.float32, tf.int32)
        labels, chances, signals, deltas, classes = gathered(self._batches(rows), kinds, compute)
        return Logged(rows, labels, chances, signals, deltas, classes, seed)

    def by_draws(self, turns: Sequence[tuple[Player, Any]], logged: Logged) -> dict[str, Any]:
        """Makes the inner passes of a turn over logged labels.

        Args:
            turns: who learns, and the loss `[n, R]` that each label earned: the generator's is
                delta, the classifier's L_G. Both take the turn together on the same draws in the
                one-step variant.
            logged: the labels.

        Returns:
            what is logged of the turn.

        References:
            CrowdInG, eqs. 5 and 6, figure 2b.
        """
        players, losses = (list(each) for each in zip(*turns, strict=True))
        rows, features_of = logged.rows, self._features(logged.rows)
        still = all(player.name != "generator" for player in players)
        # What stays the same in every pass of the generator's hidden layer.
        kept_of = (self._hidden if still else self._noise)(rows, logged.seed)

        def step(index: Any, multipliers: Any) -> Any:
            part, features = self._batch(index), features_of(index)
            kept = kept_of(index)
            with tf.GradientTape(persistent=len(players) > 1) as tape:
                hidden = kept if still else self.generative.hidden(features, kept)
                # The classifier comes last; gradients go through its z-hat where it learns.
                latent = players[-1].latent_of(rows[part], features)
                drawn = logged.labels[part], logged.chances[part], logged.classes[part]
                ratios = self.generative.ratios(hidden, latent, *drawn)
                risks = [
                    counterfactual_risk(own[part], ratios, multipliers[place])
                    + player.further(index)
                    for place, (player, own) in enumerate(turns)
                ]
            found = [
                gradients(tape, risk, player.variables)
                for risk, player in zip(risks, players, strict=True)
            ]
            for player, own in zip(players, found, strict=True):
                take_step(player.optimizer, own, player.variables)
            return ratio_sums(losses[0][part], ratios)

        mu, sums = self._passes(players, step, losses, rows)
        means = {f"{player.name}_loss": tf.reduce_mean(own) for player, own in turns}
        return means | ratio_report(players[0].name, mu[0], sums)

    def exactly(self, player: Player, rows: Any, latent: Any, seed: Any) -> dict[str, Any]:
        """Makes the inner passes of one network's turn by the exact risk.

        Args:
            player: who learns.
            rows, seed: see `logged`.
            latent: `[N, C]` z-hat of delta, which no gradient passes through.
        """
        size, variables = tf.size(rows), player.variables
        features_of, noise_of = self._features(rows), self._noise(rows, seed)

        def step(_: Any, index: Any) -> Any:
            chosen, features = rows[self._batch(index)], features_of(index)
            z = tf.gather(latent, chosen)
            signals, log_q = self.discriminative.all_signals(chosen, self._log_answers(chosen, z))
            if not (player.name == "generator" and self.discriminative.information):
                log_q = tf.zeros_like(log_q)
            noise = noise_of(index)
            with tf.GradientTape() as tape:
                answers, losses = self.expected(
                    chosen, player.latent_of(chosen, features), z, signals, log_q, noise
                )
                risk = exact_risk(answers, losses)
                loss = risk + player.further(index)
            take_step(player.optimizer, gradients(tape, loss, variables), variables)
            share = tf.cast(tf.size(chosen), tf.float32) / tf.cast(size, tf.float32)
            return tf.reshape(risk * share, [1])

        passes = self.settings.passes_of(player.name)
        return {f"{player.name}_loss": passes_over(passes, self._batches(rows), 1, step)[0]}

    def expected(
        self, rows: Any, latent: Any, before: Any, signals: Any, log_q: Any, noise: Any
    ) -> tuple[Any, Any]:
        """Returns what the generative module says of all labels of some instances, and delta of
        each, for `exact_risk`.

        Args:
            rows, noise: see `GenerativeModule.logits`.
            latent: `[B, C]` z-hat, through which gradients go.
            before: `[B, C]` z-hat as it was before the turn.
            signals, log_q: from `DiscriminativeModule.all_signals`.

        Returns:
            both `[B, R, C]`; where classes are fed, `[B, R, C (z), C (y)]`.

        References:
            CrowdInG, eq. 3 and section 3.3.2: sum_z z-hat_z sum_y G(y | z) (L_G(y) - lambda
            log Q(z | y)).
        """
        weight = self.discriminative.information
        if self.generative.by_class:
            answers = tf.nn.softmax(self.generative.logits_by_class(rows, noise))
            losses = signals[:, :, None, :] - weight * tf.transpose(log_q, [0, 1, 3, 2])
            return latent[:, None, :, None] * answers, losses
        answers = tf.nn.softmax(self.generative.logits(rows, latent, noise))
        return answers, signals - weight * tf.reduce_sum(before[:, None, None] * log_q, axis=-1)

    def _log_answers(self, rows: Any, latent: Any) -> Any:
        """Returns log G of every label, which D judges by where it is a density ratio."""
        if not self.discriminative.density_ratio:
            return None
        return self.generative.log_answers(rows, latent)

    def _features(self, rows: Any) -> Callable[[Any], Any]:
        """Returns what gives the features `[b, d]` of a batch by its number."""
        flat = self.generative.crowd.flat
        return self._kept("features", rows, lambda chosen, _: tf.gather(flat, chosen))

    def _noise(self, rows: Any, seed: Any) -> Callable[[Any], Any]:
        """Returns what gives the noise `[b, R, k]` of a batch by its number, the same in each
        pass.
        """
        return self._of_pairs(
            "noise",
            rows,
            self.generative.generator.noise_size,
            lambda chosen, index: self.generative.noise(chosen, fold(seed, index)),
        )

    def _hidden(self, rows: Any, seed: Any) -> Callable[[Any], Any]:
        """Returns what gives all that a batch's hidden layer `[b, R, h]` has but z-hat, where the
        generator stays as it is.
        """

        def compute(chosen: Any, index: Any) -> Any:
            features = tf.gather(self.generative.crowd.flat, chosen)
            noise = self.generative.noise(chosen, fold(seed, index))
            return self.generative.hidden(features, noise)

        size = self.generative.generator.scores.kernel.shape[0]
        return self._of_pairs("hidden", rows, size, compute)

    def _of_pairs(
        self, what: str, rows: Any, size: int, compute: Callable[[Any, Any], Any]
    ) -> Callable[[Any], Any]:
        """Returns `_kept` of what is `[b, R, size]`."""
        width = tf.shape(self.generative.crowd.annotators)[0] * size
        kept = self._kept(
            what, rows, lambda chosen, index: tf.reshape(compute(chosen, index), [-1, width])
        )
        return lambda index: tf.reshape(kept(index), [-1, width // size, size])

    def _kept(
        self, what: str, rows: Any, compute: Callable[[Any, Any], Any]
    ) -> Callable[[Any], Any]:
        """Returns what gives something of a batch by its number, the same in each pass.

        Args:
            what: its name in `Settings.kept`.
            rows: `[n]` the instances of a turn.
            compute: returns it `[b, w]` from a batch's instances and number.
        """

        def of_batch(index: Any) -> tuple[Any]:
            return (compute(rows[self._batch(index)], index),)

        if what not in self.settings.kept:
            return lambda index: of_batch(index)[0]
        (whole,) = gathered(self._batches(rows), (tf.float32,), of_batch)
        return lambda index: whole[self._batch(index)]

    def _batch(self, index: Any) -> slice:
        size = self.generative.batch_rows
        return slice(index * size, (index + 1) * size)

    def _batches(self, rows: Any) -> Any:
        return batches_of(tf.size(rows), self.generative.batch_rows)

    def _passes(
        self, players: list[Player], step: Any, losses: list[Any], rows: Any
    ) -> tuple[Any, Any]:
        """Makes the inner passes over the logged batches.

        Args:
            players: whose turn it is.
            step: `step(index, mu)` makes a step on a batch and returns `ratio_sums`.
            losses: `[n, R]` delta or L_G of each player.
            rows: `[n]`.

        Returns:
            mu of each player, and the sums over the last pass.
        """
        passes = self.settings.passes_of(*(player.name for player in players))

        def run(mu: Any) -> Any:
            return passes_over(passes, self._batches(rows), 4, lambda _, index: step(index, mu))

        changed = [
            variable
            for player in players
            for variable in (*player.variables, *player.optimizer.variables)
        ]
        return search_multiplier(self.settings.multiplier, run, losses, changed)
