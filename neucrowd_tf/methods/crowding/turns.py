"""The turns of CrowdInG's game: the discriminative module (eq. 4) and the generative one (5, 6).

A turn draws its annotations, then makes several passes over batches of them (`passes_over`):
`discriminative_passes` and `generative_passes`, in which `update` takes a step on one batch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf
from sklearn.metrics import roc_auc_score

from neucrowd_tf.declare.types import Codes32, Fields, Floats32, Mask, NamedValues, Tensor
from neucrowd_tf.errors import one_at_a_time
from neucrowd_tf.methods.crowd_layers.common.losses import at_labels
from neucrowd_tf.methods.crowding.networks import (
    Auxiliary,
    Discriminator,
    Drawn,
    Generator,
    fold,
    pair_noise,
)
from neucrowd_tf.methods.crowding.objectives import (
    authenticity_loss,
    counterfactual_risk,
    discriminator_losses,
    generator_delta,
    importance_ratios,
    latent_log_likelihood,
    output_penalty,
    quantiles,
    ratio_sums,
    select_annotations,
    self_normalised_estimate,
)
from neucrowd_tf.methods.crowding.records import Crowd, Logged, Pairs, Purpose
from neucrowd_tf.nn.optimizers import FusedAdam
from neucrowd_tf.nn.steps import gradients, take_step
from neucrowd_tf.training.learner import Learner
from neucrowd_tf.training.state import model_variables, restored

BLOCK = 1024  # instances that the classifier predicts at once
# What a player's turn lowers: delta (eq. 5) or L_G (eq. 6), fields of `Logged`.
LOSSES = {"generator": "delta", "classifier": "authenticity"}
# The players that learn in a turn of the generative module, and what its draws are for: the order
# of the instances, and the labels with their noise.
PURPOSES = {
    ("generator",): (Purpose.SURE, Purpose.GENERATOR),
    ("classifier",): (Purpose.UNSURE, Purpose.CLASSIFIER),
    ("generator", "classifier"): (Purpose.SURE, Purpose.GENERATOR),
}
# Shapes are open, so that one graph serves all turns, batches and fits.
codes = tf.TensorSpec([None], tf.int32)
seeds = tf.TensorSpec([2], tf.int32)
scalar = tf.TensorSpec([], tf.float32)
count = tf.TensorSpec([], tf.int32)
matrix = tf.TensorSpec([None, None])
label_matrix = tf.TensorSpec([None, None], tf.int32)
cube = tf.TensorSpec([None, None, None])
inputs_spec = (matrix, matrix)
pairs_spec = Pairs(codes, codes, codes, tf.TensorSpec([None], tf.bool), matrix)
drawn_spec = Drawn(label_matrix, matrix, matrix)
logged_spec = Logged(codes, matrix, label_matrix, matrix, matrix, matrix)


def compiled(*signature: object) -> Callable[[Callable[..., Tensor]], Tensor]:
    """Returns a decorator that compiles a method for arguments of these specs."""
    return tf.function(input_signature=signature, autograph=False)  # type: ignore[no-any-return]


def shuffled(positions: Tensor, size: Tensor, seed: Tensor) -> Tensor:
    """Returns the images of positions under a permutation of 0..size-1 that the seed decides."""
    return tf.random.experimental.index_shuffle(positions, tf.cast(seed, tf.int32), size - 1)


@compiled(count, seeds, count)
def shuffles(size: Tensor, seed: Tensor, passes: Tensor) -> Tensor:
    """Returns a permutation of 0..size-1 for each pass, `[passes, size]`.

    They are made before a turn's steps, as only the processor has a kernel for them.
    """
    return tf.map_fn(
        lambda number: shuffled(tf.range(size), size, fold(seed, number)), tf.range(passes)
    )


def positions_of(index: Tensor, batch: int, size: Tensor) -> Tensor:
    """Returns the positions of a batch among 0..size-1; the last batch may be smaller."""
    return tf.range(index * batch, tf.minimum((index + 1) * batch, size))


def rows_of(table: Tensor, positions: Tensor) -> Tensor:
    """Returns these rows of each tensor in a structure."""
    return tf.nest.map_structure(lambda column: tf.gather(column, positions), table)


def batches_in(size: Tensor, batch: int) -> Tensor:
    """Returns the number of batches in `size` rows."""
    return -tf.math.floordiv(-size, batch)


def passes_over(
    passes: Tensor, batches: Tensor, step: Callable[[Tensor, Tensor], Tensor], zero: Tensor = 0.0
) -> Tensor:
    """Makes passes over batches and returns the sum over the last pass.

    Args:
        passes: number of passes.
        batches: number of batches in each.
        step: `step(turn, index)` trains on a batch of a pass and returns its part of the sum.
        zero: an empty sum.
    """

    def body(number: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        index = number % batches
        added = step(number // batches, index)
        return number + 1, tf.where(index == 0, zero, total) + added

    times = passes * batches
    _, total = tf.while_loop(
        lambda number, _: number < times, body, (0, zero), parallel_iterations=1
    )
    return total


def gathered(batches: Tensor, spec: object, compute: Callable[[Tensor], Tensor]) -> Tensor:
    """Computes tensors batch by batch and returns them whole.

    Args:
        batches: number of batches.
        spec: a structure of tensor specs.
        compute: `compute(index)` returns rows of each of these tensors.
    """
    arrays = []
    for item in tf.nest.flatten(spec):
        array = tf.TensorArray(item.dtype, batches, infer_shape=False, element_shape=item.shape)
        arrays.append(array)

    def step(index: Tensor, arrays: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        rows = tf.nest.flatten(compute(index))
        return index + 1, [array.write(index, x) for array, x in zip(arrays, rows, strict=True)]

    _, arrays = tf.while_loop(
        lambda index, _: index < batches, step, (0, arrays), parallel_iterations=1
    )
    return tf.nest.pack_sequence_as(spec, [array.concat() for array in arrays])


def authenticity_auc(authentic: Mask, scores: Floats32) -> float:
    """Returns the ROC AUC of D's scores `[P]` for authenticity, 0.5 if all are authentic."""
    if authentic.all():
        return 0.5
    with one_at_a_time():
        return float(roc_auc_score(authentic, scores))


class Turns(Learner):
    """The turns of the networks; `Game` has the networks and the order of turns.

    References:
        CrowdInG, eqs. 4 to 6 and section 3.3.
    """

    pair_batch: ClassVar[int] = 512  # annotations in a batch of the discriminative module
    output_penalty: ClassVar[float] = 1.0  # weight of D's mean squared output
    # Bounds of G / G_0 and G_0, see `importance_ratios`.
    ratio_cap: ClassVar[float] = 10.0
    ratio_floor: ClassVar[float] = 1e-3

    # What `Game` sets.
    hparams: Any
    stage: str
    precompute: bool
    feature_shape: tuple[int, ...]
    crowd: Crowd
    counts: Codes32
    generator: Generator
    discriminator: Discriminator
    auxiliary: Auxiliary
    classifier: keras.Model
    generator_optimizer: FusedAdam
    classifier_optimizer: FusedAdam

    def __init__(self) -> None:
        super().__init__()
        self.passes = {
            players: compiled(inputs_spec, logged_spec, seeds, dict.fromkeys(players, scalar))(
                self.generative_passes
            )
            for players in PURPOSES
        }

    @property
    def discriminative_variables(self) -> list[Tensor]:
        """The weights of discriminator and auxiliary network."""
        return [*self.discriminator.trainable_variables, *self.auxiliary.trainable_variables]

    def classify(self, features: Tensor) -> Tensor:
        """Returns z-hat of `[B, d]` features, `[B, C]`; the classifier is in inference mode.

        References:
            CrowdInG, section 3.2.1 (P(z | x)).
        """
        shaped = tf.reshape(features, [-1, *self.feature_shape])
        return tf.cast(self.classifier(shaped, training=False), tf.float32)

    def classify_all(self) -> Tensor:
        """Returns z-hat of all instances, `[N, C]`."""
        return self._classified(self.crowd.features)

    @compiled(matrix)
    def _classified(self, features: Tensor) -> Tensor:
        def compute(index: Tensor) -> Tensor:
            return self.classify(features[index * BLOCK : (index + 1) * BLOCK])

        return gathered(batches_in(tf.shape(features)[0], BLOCK), matrix, compute)

    # ------------------------------------------------------------- discriminative module (eq. 4)

    def discriminator_turn(self, epoch: Tensor, latent: Tensor, passes: int) -> Fields:
        """Trains discriminator and auxiliary network on authentic and selected annotations.

        References:
            CrowdInG, eq. 4 (maximised by D, minimised by Q) and section 3.3.1.
        """
        pairs, mean_entropy = self.select_pairs(epoch, latent)
        seed = self.crowd.draw(epoch, Purpose.PAIRS)
        orders = shuffles(tf.size(pairs.instances), seed, tf.constant(passes))
        loss = self.discriminative_passes(self.crowd.inputs, pairs, orders)
        logs = {"discriminator_loss": loss, "generator_entropy": mean_entropy}
        if self.stage == "game":  # the history has no other stages
            scores = np.asarray(self.scores(self.crowd.inputs, pairs))
            auc = authenticity_auc(np.asarray(pairs.authentic), scores)
            logs["discriminator_training_auc"] = auc
        return logs

    def select_pairs(self, epoch: Tensor, latent: Tensor) -> tuple[Pairs, Tensor]:
        """Returns all authentic and the selected generated annotations, and the mean entropy.

        The mean is over the generator's distributions of all pairs.

        Args:
            epoch: its number.
            latent: `[N, C]` z-hat.

        References:
            CrowdInG, section 3.3.1.
        """
        crowd = self.crowd
        seed = crowd.draw(epoch, Purpose.SURVEY)
        labels, _, entropies = self.draw(crowd.inputs, tf.range(len(latent)), latent, seed)
        instances, annotators = select_annotations(
            entropies,
            crowd.observed,
            self.counts,
            crowd.draw(epoch, Purpose.SELECT),
            by_entropy=self.hparams.selection == "entropy",
        )
        columns = crowd.with_generated(instances, annotators, labels)
        return Pairs(*columns, tf.gather(latent, columns[0])), tf.reduce_mean(entropies)

    @compiled(inputs_spec, pairs_spec, label_matrix)
    def discriminative_passes(
        self, inputs: tuple[Tensor, Tensor], pairs: Pairs, orders: Tensor
    ) -> Tensor:
        """Updates discriminator and auxiliary network batch by batch by eq. 4.

        It returns the mean of the discriminator's losses over the last pass.

        References:
            CrowdInG, eq. 4 (V - lambda L_I).
        """
        size = tf.size(pairs.instances)
        variables = self.discriminative_variables

        def update(turn: Tensor, index: Tensor) -> Tensor:
            positions = positions_of(index, self.pair_batch, size)
            batch = rows_of(pairs, tf.gather(orders[turn], positions))
            with tf.GradientTape() as tape:
                encoded = self.discriminator.encode_rows(*inputs, batch.instances)
                logits = self.discriminator.some_pairs(*encoded, batch.annotators)
                losses = self.annotation_losses(logits, batch.labels, batch.authentic)
                log_q = self.latent_answers(encoded, batch)
                unlikely = -latent_log_likelihood(batch.latent, log_q)
                loss = tf.reduce_mean(losses)
                loss += self.output_penalty * self.penalty(logits, batch.authentic)
                loss += self.hparams.information * self.auxiliary_loss(unlikely, batch.authentic)
                loss += self.weight_penalty()
            take_step(self.optimizer, gradients(tape, loss, variables), variables)
            return tf.reduce_sum(losses)

        batches = batches_in(size, self.pair_batch)
        return passes_over(tf.shape(orders)[0], batches, update) / tf.cast(size, tf.float32)

    @compiled(inputs_spec, pairs_spec)
    def scores(self, inputs: Tensor, pairs: Pairs) -> Tensor:
        """Returns the logit of D at the label of each annotation, `[P]`."""
        size = tf.size(pairs.instances)

        def compute(index: Tensor) -> Tensor:
            positions = positions_of(index, self.pair_batch, size)
            batch = rows_of(pairs, positions)
            encoded = self.discriminator.encode(tf.gather(inputs[0], batch.instances), inputs[1])
            logits = self.discriminator.some_pairs(*encoded, batch.annotators)
            return at_labels(logits, batch.labels)

        return gathered(batches_in(size, self.pair_batch), tf.TensorSpec([None]), compute)

    def annotation_losses(self, logits: Tensor, labels: Tensor, authentic: Tensor) -> Tensor:
        """Returns the discriminator's loss of each annotation; see `discriminator_losses`."""
        return discriminator_losses(logits, labels, authentic)

    def penalty(self, logits: Tensor, authentic: Tensor) -> Tensor:
        """Returns what keeps the discriminator's outputs sparse; see `output_penalty`."""
        return output_penalty(logits)

    def latent_answers(self, encoded: tuple[Tensor, Tensor, Tensor], batch: Pairs) -> Tensor:
        """Returns log Q(z | x, e, y) of each annotation, `[P, C]`; see `Auxiliary.some_pairs`.

        `encoded` is v `[P, k]`, u `[R, k]` and the class matrices `[C, k, k]`.
        """
        return self.auxiliary.some_pairs(*encoded, batch.annotators, batch.labels)

    def auxiliary_loss(self, unlikely: Tensor, authentic: Tensor) -> Tensor:
        """Returns the auxiliary network's loss, the mean over generated annotations.

        It is -L_I without H(z), which is a constant while the classifier is fixed.

        Args:
            unlikely: `[P]` of each annotation, -log Q expected over z-hat.
            authentic: `[P]` bool, False for generated annotations.

        References:
            CrowdInG, eq. 3.
        """
        # Deviation: CrowdInG eq. 4. Paper: D maximises V - lambda L_I, Q minimises it. Here: Both
        # lower their own loss in one step, also through the encoders and matrices that they share.
        # Why: Q has to "reuse" these layers; by the sign of eq. 4 they would raise Q's loss.
        # Effect: not measured.
        generated = tf.cast(~authentic, tf.float32)
        total = tf.reduce_sum(unlikely * generated)
        return tf.math.divide_no_nan(total, tf.reduce_sum(generated))

    def weight_penalty(self) -> Tensor:
        """Returns a term to add to the loss of discriminator and auxiliary network."""
        return 0.0

    # ------------------------------------------------------------- generative module (eqs. 5, 6)

    def generative_turn(
        self,
        players: tuple[str, ...],
        epoch: Tensor,
        instances: Tensor,
        latent: Tensor,
        logged: tuple[Logged, Tensor] | None = None,
    ) -> Fields:
        """Updates the generator by eq. 5, the classifier by eq. 6, or in one step both.

        The classifier learns through the updated generator, which stays as it is.

        Args:
            players: which networks learn, a key of `PURPOSES`.
            epoch: its number.
            instances: of which the classifier is sure for the generator's turn, of which it is not
                for the classifier's.
            latent: `[N, C]` z-hat.
            logged: their annotations from `log_annotations`; by default they are drawn here.

        References:
            CrowdInG, eqs. 5 and 6, section 3.3.3, figure 2b (one step).
        """
        # Deviation: CrowdInG eq. 6. Paper: G_0 is last epoch's module. Here: Labels are drawn again
        # after the generator's turn. Why: The ratios would mix the generator's move with the
        # classifier's. Effect: claim crowding_same_draws.
        if logged is None:
            logged = self.log_annotations(epoch, instances, latent, PURPOSES[players])
        drawn, seed = logged
        losses = {player: getattr(drawn, LOSSES[player]) for player in players}
        passes = functools.partial(self.passes[players], self.crowd.inputs, drawn, seed)
        mu = self.multipliers(losses, passes)
        passes(mu)
        logs = {f"{player}_loss": tf.reduce_mean(losses[player]) for player in players}
        return logs | {f"{player}_multiplier": mu[player] for player in players}

    def generative_passes(
        self, inputs: Tensor, logged: Logged, seed: Tensor, mu: NamedValues
    ) -> Tensor:
        """Updates the players batch by batch; returns the loss expected afterwards.

        Args:
            inputs: features of all instances `[N, d]` and of the annotators `[R, e]`.
            logged: the turn's annotations.
            seed: `[2]` of their noise, which a batch has in each pass, so that ratios begin at 1.
            mu: the multiplier of each player that learns.

        References:
            CrowdInG, eqs. 5 and 6.
        """
        features, identities = inputs
        batches = self._batches(logged.instances)

        def constant_part(index: Tensor) -> Tensor:
            """Returns what is the same in each pass: noise, or the whole part without z-hat."""
            batch = self._batch(logged, index)
            shape = [*tf.unstack(tf.shape(batch.labels)), self.generator.noise_size]
            noise = pair_noise(fold(seed, index), shape)
            if "generator" in mu:
                return noise
            return self.generator.hidden(tf.gather(features, batch.instances), identities, noise)

        of_batch = constant_part
        if self.precompute:
            of_batch = functools.partial(self._batch, gathered(batches, cube, constant_part))

        def update(_: Tensor, index: Tensor) -> Tensor:
            return self._generative_step(inputs, self._batch(logged, index), of_batch(index), mu)

        sums = passes_over(self.hparams.passes, batches, update, tf.zeros([2]))
        return self_normalised_estimate(sums)

    def _generative_step(
        self, inputs: Tensor, batch: Logged, constant_part: Tensor, mu: NamedValues
    ) -> Tensor:
        """Updates the players on one batch; returns the sums of `ratio_sums` before the update.

        Args:
            inputs: features of all instances `[N, d]` and of the annotators `[R, e]`.
            batch: annotations of B instances.
            constant_part: noise `[B, R, k]` if the generator learns, else `[B, R, h]` from
                `Generator.hidden`.
            mu: the multiplier of each player that learns.
        """
        x = tf.gather(inputs[0], batch.instances)
        hidden = constant_part
        latent = batch.latent
        risks = {}
        with tf.GradientTape(persistent=True) as tape:
            if "generator" in mu:
                hidden = self.generator.hidden(x, inputs[1], constant_part)
            if "classifier" in mu:
                latent = self.classify(x)
            ratios = self.ratios(batch, hidden, latent)
            for player, multiplier in mu.items():
                losses = getattr(batch, LOSSES[player])
                risks[player] = counterfactual_risk(losses, ratios, multiplier)
        for player, risk in risks.items():
            variables = getattr(self, player).trainable_variables
            optimizer = getattr(self, f"{player}_optimizer")
            take_step(optimizer, gradients(tape, risk, variables), variables)
        return ratio_sums(getattr(batch, LOSSES[next(iter(mu))]), ratios)

    def log_annotations(
        self, epoch: Tensor, instances: Tensor, latent: Tensor, purposes: tuple[Purpose, Purpose]
    ) -> tuple[Logged, Tensor]:
        """Returns annotations of instances by all annotators, drawn by the present module.

        The present generative module is the logging policy G_0 of the turn.

        Args:
            epoch: its number.
            instances: `[n]` codes.
            latent: `[N, C]` z-hat.
            purposes: of the random numbers for the order of the instances, and for the labels.

        Returns:
            The annotations, and the seed `[2]` of their noise.

        References:
            CrowdInG, section 3.3.2 (G_0).
        """
        order_purpose, seed_purpose = purposes
        order = self.crowd.draw(epoch, order_purpose)
        seed = self.crowd.draw(epoch, seed_purpose)
        size = len(instances)
        instances = tf.gather(instances, shuffled(tf.range(size), size, order))
        return self._log(self.crowd.inputs, instances, tf.gather(latent, instances), seed), seed

    @compiled(inputs_spec, codes, matrix, seeds)
    def _log(self, inputs: Tensor, instances: Tensor, latent: Tensor, seed: Tensor) -> Logged:
        """Draws annotations of instances by all annotators, with their losses."""

        def compute(index: Tensor) -> Logged:
            chosen, z = self._batch((instances, latent), index)
            x = tf.gather(inputs[0], chosen), inputs[1]
            labels, probabilities, _ = self.generator.draw(x[0], z, x[1], fold(seed, index))
            return Logged(chosen, z, labels, probabilities, *self.reward(x, z, labels))

        return gathered(self._batches(instances), logged_spec, compute)  # type: ignore[no-any-return]

    @compiled(inputs_spec, codes, matrix, seeds)
    def draw(self, inputs: Tensor, instances: Tensor, latent: Tensor, seed: Tensor) -> Drawn:
        """Draws annotations of instances `[n]` by all annotators; z-hat is `[n, C]`."""

        def compute(index: Tensor) -> Drawn:
            chosen, z = self._batch((instances, latent), index)
            x = tf.gather(inputs[0], chosen)
            return self.generator.draw(x, z, inputs[1], fold(seed, index))

        return gathered(self._batches(instances), drawn_spec, compute)  # type: ignore[no-any-return]

    def reward(self, inputs: Tensor, latent: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Returns L_G and delta = L_G - lambda log Q(z-hat | y) of drawn labels, both `[B, R]`.

        Args:
            inputs: features of the instances `[B, d]` and of the annotators `[R, e]`.
            latent: `[B, C]` z-hat.
            labels: `[B, R]`.

        References:
            CrowdInG, section 3.3.2 (L_G and delta, above eq. 5).
        """
        encoded = self.discriminator.encode(*inputs)
        information = self.hparams.information
        authenticity = authenticity_loss(self.discriminator.all_pairs(*encoded), labels)
        if not information:
            return authenticity, authenticity
        log_q = self.auxiliary.all_pairs(*encoded, labels)
        likelihood = latent_log_likelihood(latent[:, None, :], log_q)
        return authenticity, generator_delta(authenticity, likelihood, information)

    def ratios(self, batch: Logged, hidden: Tensor, latent: Tensor) -> Tensor:
        """Returns G(y) / G_0(y) of logged labels, with G as it is now, `[B, R]`.

        Args:
            batch: the labels.
            hidden: `[B, R, h]` from `Generator.hidden`.
            latent: `[B, C]` z-hat; gradients go through it.

        References:
            CrowdInG, eqs. 5 and 6 (G / G_0).
        """
        current = self.generator.probabilities(hidden, latent, batch.labels)
        bounds = {"cap": self.ratio_cap, "floor": self.ratio_floor}
        return importance_ratios(current, batch.probabilities, **bounds)

    def multipliers(self, losses: NamedValues, passes: Callable[[NamedValues], Tensor]) -> Fields:
        """Returns mu of a turn, one for each player that learns in it.

        Args:
            losses: delta or L_G of all logged labels, for each player.
            passes: `passes(mu)` takes the turn and returns the loss expected after it.

        References:
            CrowdInG, section 3.3.2 (mu is searched for); Joachims, Swaminathan, de Rijke (2018),
            section 3.3.
        """
        multiplier = self.hparams.multiplier
        if multiplier == "mean":
            # Deviation: CrowdInG eqs. 5 and 6. Paper: Mu searched. Here: The mean of the losses.
            # Why: Mu = 0 raises the probability of every drawn label; a search takes five times as
            # long. Effect: not measured.
            return {player: tf.reduce_mean(values) for player, values in losses.items()}
        if multiplier != "search":
            return dict.fromkeys(losses, tf.constant(float(multiplier)))
        tried = {player: tf.unstack(quantiles(values)) for player, values in losses.items()}
        candidates = []
        estimates = []
        for values in zip(*tried.values(), strict=True):
            mu = dict(zip(losses, values, strict=True))
            with restored(model_variables(self)):
                estimates.append(float(passes(mu)))
            candidates.append(mu)
        return candidates[int(np.argmin(np.nan_to_num(estimates, nan=np.inf)))]

    def _batches(self, instances: Tensor) -> Tensor:
        return batches_in(tf.size(instances), self.hparams.batch_size)

    def _batch(self, values: Tensor, index: Tensor) -> Tensor:
        size = self.hparams.batch_size
        return tf.nest.map_structure(lambda x: x[index * size : (index + 1) * size], values)
