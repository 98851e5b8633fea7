"""CrowdInG's game: the turns of the discriminator, the generator and the classifier.

`Game.play_epoch` is section 3.3 of the paper: the discriminative module learns from authentic and
selected generated annotations (`discriminator_turn`), the generator by eq. 5 on the instances of
which the classifier is sure (`generator_turn`), the classifier by eq. 6 on the others
(`classifier_turn`). A turn draws its annotations, and then makes several passes over batches of
them (`passes_over`); `update` in `..._passes` is the update on one batch.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.crowd.losses import at_labels
from neucrowd_tf.crowding.networks import (
    Auxiliary,
    Discriminator,
    Drawn,
    Generator,
    fold,
    label_cooccurrence,
    label_correlation,
    pair_noise,
)
from neucrowd_tf.crowding.objectives import (
    authentic_loss,
    authenticity_loss,
    counterfactual_risk,
    discriminator_losses,
    entropy,
    generator_delta,
    importance_ratios,
    latent_log_likelihood,
    output_penalty,
    quantiles,
    ratio_sums,
    select_annotations,
    selection_counts,
    self_normalised_estimate,
    split_by_entropy,
)
from neucrowd_tf.nn.optimizers import FusedAdam
from neucrowd_tf.nn.steps import gradients, take_step
from neucrowd_tf.training.state import (
    read_variables,
    reinitialise,
    reset_optimizer,
    write_variables,
)

# Purposes of random numbers; `Crowd.draw` has 16 of them in each epoch.
_SURVEY, _SELECT, _PAIRS, _SURE, _GENERATOR, _UNSURE, _CLASSIFIER = range(7)
_ORDER, _NOISE = 8, 9
_BEFORE = 1 << 20  # epochs of pre-training draw from numbers that the game never reaches
_ROWS_AT_ONCE = 1024


@dataclasses.dataclass(frozen=True)
class Crowd:
    """The data of a fit.

    Attributes:
        features: `[N, d]` standardised.
        annotators: `[R, R]` one-hot vectors e_r.
        instances, codes, labels: `[A]` the authentic annotations.
        observed: `[N, R]` bool, True if there is an authentic annotation.
        seed: every draw is derived from it.
    """

    features: Any
    annotators: Any
    instances: Any
    codes: Any
    labels: Any
    observed: NDArray[np.bool_]
    seed: int

    @classmethod
    def of(cls, features: NDArray[np.float32], annotations: Annotations, seed: int) -> Crowd:
        """Returns the data as tensors; generated annotations are left out.

        Args:
            features: `[N, ...]`.
            annotations: of N instances.
            seed: every draw is derived from it.

        References:
            CrowdInG, section 3.2 (e_r).
        """
        authentic = annotations.observed()
        flat = tf.constant(features.reshape(len(features), -1), tf.float32)
        triple = authentic.instances, authentic.annotators, authentic.labels
        observed = np.zeros(authentic.shape, dtype=bool)
        observed[authentic.instances, authentic.annotators] = True
        instances, codes, labels = (tf.constant(column, tf.int32) for column in triple)
        inputs = flat, tf.eye(authentic.num_annotators)
        return cls(*inputs, instances, codes, labels, observed, seed % 2**31)

    @property
    def inputs(self) -> tuple[Any, Any]:
        """The features of instances and annotators, which compiled functions get."""
        return self.features, self.annotators

    def with_generated(self, rows: Any, codes: Any, drawn: Any) -> tuple[Any, Any, Any, Any]:
        """Returns all authentic annotations, and after them some generated ones.

        Args:
            rows, codes: instances and annotators of the generated ones.
            drawn: `[N, R]` labels of all pairs.

        Returns:
            Instances, annotators, class codes, and whether each annotation is authentic, `[P]`.
        """
        labels = tf.gather_nd(drawn, tf.stack([rows, codes], axis=1))
        authentic, generated = (self.instances, self.codes, self.labels), (rows, codes, labels)
        rows, codes, labels = (
            tf.concat(both, axis=0) for both in zip(authentic, generated, strict=True)
        )
        return rows, codes, labels, tf.range(tf.size(rows)) < len(self.labels)

    def draw(self, epoch: Any, purpose: int) -> Any:
        """Returns a seed `[2]` for one purpose in one epoch."""
        return tf.stack([tf.constant(self.seed), tf.cast(epoch, tf.int32) * 16 + purpose])


class Pairs(NamedTuple):
    """Annotations that the discriminative module learns from.

    Attributes:
        rows, codes, labels: `[P]` instances, annotators and class codes.
        authentic: `[P]` bool, False for generated annotations.
        latent: `[P, C]` z-hat of the generator's input.
    """

    rows: Any
    codes: Any
    labels: Any
    authentic: Any
    latent: Any


class Logged(NamedTuple):
    """Annotations of instances by all annotators, drawn by the logging policy.

    Attributes:
        rows: `[n]` instances.
        latent: `[n, C]` z-hat of the instances.
        labels: `[n, R]` class codes.
        probabilities: `[n, R]` G_0(y) of the labels.
        authenticity: `[n, R]` L_G of the labels.
        delta: `[n, R]` delta of the labels.
    """

    rows: Any
    latent: Any
    labels: Any
    probabilities: Any
    authenticity: Any
    delta: Any


# Shapes are open, so that one graph serves all turns, batches and fits.
_codes, _seed = tf.TensorSpec([None], tf.int32), tf.TensorSpec([2], tf.int32)
_scalar, _count = tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)
_matrix, _labels = tf.TensorSpec([None, None]), tf.TensorSpec([None, None], tf.int32)
_cube, _inputs = tf.TensorSpec([None, None, None]), (_matrix, _matrix)
_pairs = Pairs(_codes, _codes, _codes, tf.TensorSpec([None], tf.bool), _matrix)
_drawn = Drawn(_labels, _matrix, _matrix)
_logged = Logged(_codes, _matrix, _labels, _matrix, _matrix, _matrix)


def compiled(*signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Returns a decorator that compiles a method for arguments of these specs."""
    return tf.function(autograph=False, input_signature=signature)  # type: ignore[no-any-return]


def shuffled(positions: Any, size: Any, seed: Any) -> Any:
    """Returns the images of positions under a permutation of 0..size-1 that the seed decides."""
    return tf.random.experimental.index_shuffle(positions, tf.cast(seed, tf.int32), size - 1)


def positions_of(index: Any, batch: int, size: Any) -> Any:
    """Returns the positions of a batch among 0..size-1; the last batch may be smaller."""
    return tf.range(index * batch, tf.minimum((index + 1) * batch, size))


def batches_in(size: Any, batch: int) -> Any:
    """Returns the number of batches in `size` rows."""
    return -tf.math.floordiv(-size, batch)


def repeated(times: Any, step: Callable[[Any, Any], Any], start: Any) -> Any:
    """Returns the result of `times` steps.

    Args:
        times: number of steps.
        step: `step(number, before)` returns the next number and result.
        start: the first result.
    """
    # AutoGraph's conversion of a loop in Python takes longer than tracing it.
    return tf.while_loop(lambda number, _: number < times, step, (0, start), parallel_iterations=1)[
        1
    ]


def gathered(count: Any, spec: Any, compute: Callable[[Any], Any]) -> Any:
    """Computes tensors batch by batch and returns them whole.

    Args:
        count: number of batches.
        spec: a structure of tensor specs.
        compute: `compute(index)` returns rows of each of these tensors.
    """
    arrays = [
        tf.TensorArray(item.dtype, count, infer_shape=False, element_shape=item.shape)
        for item in tf.nest.flatten(spec)
    ]

    def step(index: Any, arrays: list[Any]) -> tuple[Any, list[Any]]:
        rows = tf.nest.flatten(compute(index))
        return index + 1, [array.write(index, x) for array, x in zip(arrays, rows, strict=True)]

    return tf.nest.pack_sequence_as(spec, [x.concat() for x in repeated(count, step, arrays)])


class Game(keras.Model):
    """CrowdInG's networks and their turns; a training step of this model is an epoch.

    Everything drawn in an epoch is a function of (seed, epoch). A subclass changes the networks
    (`generator_class`, `discriminator_class`, `auxiliary_class`), the discriminator's loss
    (`annotation_losses`, `penalty`, `judges_penalty`), the auxiliary network's
    (`auxiliary_loss`), the labels' graph (`label_graph`), the reward (`reward`), the split of the
    instances (`split`) or the schedule of turns (`play_epoch`, `early_draws`).

    Args:
        settings: a `CrowdInG`, whose arguments are read.
        base: the classifier; the game trains a copy.
        averaged: another copy, whose weights follow the classifier's as a running average.
        feature_shape: of an instance.
        annotator_size: e.
        remember: whether a turn computes what stays the same in all passes once and stores it.

    References:
        CrowdInG, eq. 4 and section 3.3.
    """

    generator_class: ClassVar[type[Generator]] = Generator
    discriminator_class: ClassVar[type[Discriminator]] = Discriminator
    auxiliary_class: ClassVar[type[Auxiliary]] = Auxiliary
    hidden_units: ClassVar[tuple[int, int]] = (64, 128)  # of g and h (section 4.1)
    pair_batch: ClassVar[int] = 512  # annotations in a batch of the discriminative module
    pretrain_batch: ClassVar[int] = 64  # annotations in a batch of the generator's pre-training
    pretrain_rate: ClassVar[float] = 1e-3  # of the generator before the game
    output_penalty: ClassVar[float] = 1.0  # weight of D's mean squared output
    # Bounds of G / G_0 and G_0, see `importance_ratios`.
    ratio_cap: ClassVar[float] = 10.0
    ratio_floor: ClassVar[float] = 1e-3

    def __init__(
        self,
        settings: Any,
        base: keras.Model,
        averaged: keras.Model,
        feature_shape: tuple[int, ...],
        annotator_size: int,
        remember: bool = True,
    ) -> None:
        super().__init__()
        self.settings, self.stage, self.remember = settings, "game", remember
        self.feature_shape, size = feature_shape, int(np.prod(feature_shape))
        classes, k = base.output_shape[-1], settings.embedding_size
        self.generator = self.make_generator(settings, size, annotator_size, classes)
        self.classifier = keras.models.clone_model(base)
        self.auxiliary = self.auxiliary_class(
            classes, hidden_units=self.hidden_units[1], label_size=k, embedding_size=k
        )
        self.discriminator = self.discriminator_class(
            *(size, annotator_size, classes),
            embedding_size=k,
            aggregate_labels=settings.label_correlation,
        )
        self.averaged = averaged
        self.built = True
        optimizers = [FusedAdam() for _ in range(3)]
        optimizer, self.generator_optimizer, self.classifier_optimizer = optimizers
        self.generator_optimizer.build(self.generator.trainable_variables)
        self.classifier_optimizer.build(self.classifier.trainable_variables)
        optimizer.build(self.judges)
        # Each turn is compiled by itself; TensorFlow would optimise a shared part once per turn.
        self.compile(optimizer=optimizer, run_eagerly=True, auto_scale_loss=False)

    @classmethod
    def make_generator(
        cls, settings: Any, feature_size: int, annotator_size: int, classes: int
    ) -> Generator:
        """Returns an untrained generator."""
        return cls.generator_class(
            *(feature_size, annotator_size, classes),
            embedding_size=settings.embedding_size,
            hidden_units=cls.hidden_units[0],
            noise_size=settings.noise_size,
            use_instances=settings.instance_features,
            use_annotators=settings.annotator_identities,
        )

    @property
    def judges(self) -> list[Any]:
        """The weights of discriminator and auxiliary network."""
        return [*self.discriminator.trainable_variables, *self.auxiliary.trainable_variables]

    # ----------------------------------------------------------------- a fit

    def restart(
        self,
        settings: Any,
        classifier: keras.Model,
        features: NDArray[np.float32],
        annotations: Annotations,
    ) -> None:
        """Takes a fit's data and the pre-trained classifier; the other networks get fresh weights.

        Args:
            settings: the `CrowdInG` that is fitted.
            classifier: DL-CL's, of the same layers as `base`.
            features: `[N, ...]` standardised.
            annotations: of N instances.
        """
        self.settings = settings
        reinitialise(self, settings.seed)
        for model in (self.classifier, self.averaged):
            write_variables(model.variables, read_variables(classifier.variables))
        if self.discriminator.aggregate_labels:
            self.discriminator.correlation.assign(self.label_graph(annotations))
        self.crowd = Crowd.of(features, annotations, settings.seed)
        self.counts = selection_counts(self.crowd.observed)

    def begin(self, stage: str) -> None:
        """Begins a stage, "generator", "discriminator" or "game", with fresh optimizers."""
        self.stage, settings = stage, self.settings
        generator = self.pretrain_rate if stage == "generator" else settings.generator_learning_rate
        for optimizer, rate in (
            (self.optimizer, settings.discriminator_learning_rate),
            (self.generator_optimizer, generator),
            (self.classifier_optimizer, settings.classifier_learning_rate),
        ):
            reset_optimizer(optimizer)
            optimizer.learning_rate.assign(rate)

    def label_graph(self, annotations: Annotations) -> NDArray[np.float32]:
        """Returns the matrix of the discriminator's graph convolution, `[C, C]`."""
        return label_correlation(label_cooccurrence(annotations))

    def call(self, features: Any, training: bool = False) -> Any:
        """Returns class probabilities `[B, C]` of standardised features."""
        return self.averaged(features, training=False)

    def train_step(self, data: Any) -> dict[str, Any]:
        """Makes an epoch of the present stage; the data is its number."""
        stages = {"generator": self.pretrain_generator, "discriminator": self.pretrain_judges}
        return stages.get(self.stage, self.play_epoch)(tf.constant(data, tf.int32))

    def play_epoch(self, epoch: Any) -> dict[str, Any]:
        """Plays an epoch: a turn of each network.

        References:
            CrowdInG, section 3.3.3 (two-step update).
        """
        latent = self.classify_all()  # until the classifier's turn ends
        logs = self.discriminator_turn(epoch, latent, self.settings.passes)
        if self.settings.two_step:
            sure, unsure = self.split(latent)
            drawn = self.early_draws(epoch, unsure, latent)
            logs |= self.generator_turn(epoch, sure, latent)
            logs |= self.classifier_turn(epoch, unsure, latent, drawn)
        else:
            logs |= self.joint_turn(epoch, latent)
        share, now = self.settings.averaging, self.classifier.trainable_variables
        for average, variable in zip(self.averaged.trainable_variables, now, strict=True):
            average.assign(share * average + (1.0 - share) * variable)
        latent = self.classify_all()
        logs["classifier_entropy"] = tf.reduce_mean(entropy(latent))
        logs["predicted_class_entropy"] = entropy(tf.reduce_mean(latent, axis=0))
        return {"loss": logs["generator_loss"] + logs["discriminator_loss"], **logs}

    def early_draws(self, epoch: Any, rows: Any, latent: Any) -> tuple[Logged, Any] | None:
        """Returns draws for the classifier's turn from before the generator's, None for later."""
        return None

    def split(self, latent: Any) -> tuple[Any, Any]:
        """Returns the instances of the generator's turn and those of the classifier's."""
        return split_by_entropy(entropy(latent), self.settings.threshold)

    def classify(self, features: Any) -> Any:
        """Returns z-hat of `[B, d]` features, `[B, C]`; the classifier is in inference mode.

        References:
            CrowdInG, section 3.2.1 (P(z | x)).
        """
        shaped = tf.reshape(features, [-1, *self.feature_shape])
        return tf.cast(self.classifier(shaped, training=False), tf.float32)

    def classify_all(self) -> Any:
        """Returns z-hat of all instances, `[N, C]`."""
        return self._classified(self.crowd.features)

    @compiled(_matrix)
    def _classified(self, features: Any) -> Any:
        def compute(index: Any) -> Any:
            return self.classify(features[index * _ROWS_AT_ONCE : (index + 1) * _ROWS_AT_ONCE])

        return gathered(batches_in(tf.shape(features)[0], _ROWS_AT_ONCE), _matrix, compute)

    # ----------------------------------------------------------------- before the game

    def pretrain_generator(self, epoch: Any) -> dict[str, Any]:
        """Trains the generator on all authentic annotations; the classifier stays as it is.

        References:
            CrowdInG, section 3.3.3.
        """
        crowd, epoch = self.crowd, epoch + _BEFORE
        authentic = (crowd.instances, crowd.codes, crowd.labels)
        seeds = (crowd.draw(epoch, _ORDER), crowd.draw(epoch, _NOISE))
        return {"loss": self._pretrained(crowd.inputs, authentic, self.classify_all(), seeds)}

    @compiled(_inputs, (_codes, _codes, _codes), _matrix, (_seed, _seed))
    def _pretrained(self, inputs: Any, authentic: Any, latent: Any, seeds: Any) -> Any:
        """Updates the generator batch by batch; returns the mean loss of the pass."""
        (features, annotators), variables = inputs, self.generator.trainable_variables
        size = tf.size(authentic[0])

        def step(index: Any, total: Any) -> tuple[Any, Any]:
            chosen = shuffled(positions_of(index, self.pretrain_batch, size), size, seeds[0])
            rows, codes, labels = (tf.gather(column, chosen) for column in authentic)
            shape = [tf.size(chosen), self.generator.noise_size]
            noise, x = pair_noise(fold(seeds[1], index), shape), tf.gather(features, rows)
            with tf.GradientTape() as tape:
                hidden = self.generator.hidden_of_pairs(x, annotators, noise, codes)
                log_g = self.generator.log_probabilities(hidden, tf.gather(latent, rows))
                loss = authentic_loss(log_g, labels)
            take_step(self.generator_optimizer, gradients(tape, loss, variables), variables)
            return index + 1, total + loss * tf.cast(tf.size(chosen) / size, tf.float32)

        return repeated(batches_in(size, self.pretrain_batch), step, 0.0)

    def pretrain_judges(self, epoch: Any) -> dict[str, Any]:
        """Trains discriminator and auxiliary network for a pass, against the generator as it is.

        References:
            CrowdInG, section 3.3.3.
        """
        logs = self.discriminator_turn(epoch + _BEFORE, self.classify_all(), passes=1)
        return {"loss": logs["discriminator_loss"], **logs}

    # ----------------------------------------------------------------- discriminative module

    def discriminator_turn(self, epoch: Any, latent: Any, passes: int) -> dict[str, Any]:
        """Trains discriminator and auxiliary network on authentic and selected annotations.

        References:
            CrowdInG, eq. 4 (maximised by D, minimised by Q) and section 3.3.1.
        """
        pairs, mean_entropy = self.select_pairs(epoch, latent)
        seed, passes = self.crowd.draw(epoch, _PAIRS), tf.constant(passes)
        loss = self.discriminator_passes(self.crowd.inputs, pairs, seed, passes)
        logs = {"discriminator_loss": loss, "generator_entropy": mean_entropy}
        if self.stage == "game":  # the history has no other stages
            scores = self._scores(self.crowd.inputs, pairs)
            auc = authenticity_auc(np.asarray(pairs.authentic), np.asarray(scores))
            logs["discriminator_auc"] = auc
        return logs

    @compiled(_inputs, _pairs)
    def _scores(self, inputs: Any, pairs: Pairs) -> Any:
        """Returns the logit of D at the label of each annotation, `[P]`."""
        size = tf.size(pairs.rows)

        def compute(index: Any) -> Any:
            place = positions_of(index, self.pair_batch, size)
            batch = Pairs(*(tf.gather(column, place) for column in pairs))
            x = tf.gather(inputs[0], batch.rows)
            v, u, m = self.discriminator.encode(x, inputs[1])
            scores = self.discriminator.some_pairs(v, u, m, batch.codes)
            return at_labels(scores, batch.labels)

        return gathered(batches_in(size, self.pair_batch), tf.TensorSpec([None]), compute)

    @compiled(_inputs, _pairs, _seed, _count)
    def discriminator_passes(self, inputs: Any, pairs: Pairs, seed: Any, passes: Any) -> Any:
        """Updates discriminator and auxiliary network batch by batch.

        It returns the mean of the discriminator's losses over the last pass.

        References:
            CrowdInG, eq. 4 (V - lambda L_I).
        """
        (features, annotators), variables = inputs, self.judges
        size = tf.size(pairs.rows)
        count = batches_in(size, self.pair_batch)

        def step(number: Any, total: Any) -> tuple[Any, Any]:
            turn, index = number // count, number % count
            positions = positions_of(index, self.pair_batch, size)
            chosen = shuffled(positions, size, fold(seed, turn))
            batch = Pairs(*(tf.gather(column, chosen) for column in pairs))
            generated = tf.cast(~batch.authentic, tf.float32)
            # An instance of several pairs is encoded once: its features are long.
            rows, places = tf.unique(batch.rows)
            with tf.GradientTape() as tape:
                v, u, m = self.discriminator.encode(tf.gather(features, rows), annotators)
                v = tf.gather(v, places)
                logits = self.discriminator.some_pairs(v, u, m, batch.codes)
                losses = self.annotation_losses(logits, batch.labels, batch.authentic)
                log_q = self.auxiliary.some_pairs(v, u, m, batch.codes, batch.labels)
                unlikely = -latent_log_likelihood(batch.latent, log_q)
                loss = tf.reduce_mean(losses)
                loss += self.output_penalty * self.penalty(logits, batch.authentic)
                loss += self.settings.information * self.auxiliary_loss(unlikely, generated)
                loss += self.judges_penalty()
            take_step(self.optimizer, gradients(tape, loss, variables), variables)
            return number + 1, tf.where(index == 0, 0.0, total) + tf.reduce_sum(losses)

        return repeated(passes * count, step, 0.0) / tf.cast(size, tf.float32)

    def select_pairs(self, epoch: Any, latent: Any) -> tuple[Pairs, Any]:
        """Returns all authentic and the selected generated annotations, and the mean entropy.

        Args:
            epoch: its number.
            latent: `[N, C]` z-hat.

        References:
            CrowdInG, section 3.3.1.
        """
        crowd, seed = self.crowd, self.crowd.draw(epoch, _SURVEY)
        labels, _, entropies = self.draw(crowd.inputs, tf.range(len(latent)), latent, seed)
        rows, codes = select_annotations(
            entropies,
            crowd.observed,
            self.counts,
            crowd.draw(epoch, _SELECT),
            by_entropy=self.settings.selection == "entropy",
        )
        pairs = crowd.with_generated(rows, codes, labels)
        return Pairs(*pairs, tf.gather(latent, pairs[0])), tf.reduce_mean(entropies)

    def annotation_losses(self, logits: Any, labels: Any, authentic: Any) -> Any:
        """Returns the discriminator's loss of each annotation; see `discriminator_losses`."""
        return discriminator_losses(logits, labels, authentic)

    def penalty(self, logits: Any, authentic: Any) -> Any:
        """Returns what keeps the discriminator's outputs sparse; see `output_penalty`."""
        return output_penalty(logits)

    def auxiliary_loss(self, unlikely: Any, generated: Any) -> Any:
        """Returns the auxiliary network's loss, the mean over generated annotations.

        Args:
            unlikely: `[P]` of each annotation, -log Q expected over z-hat.
            generated: `[P]` 1 for generated annotations, 0 for authentic ones.

        References:
            CrowdInG, eq. 3.
        """
        total = tf.reduce_sum(unlikely * generated)
        return tf.math.divide_no_nan(total, tf.reduce_sum(generated))

    def judges_penalty(self) -> Any:
        """Returns a term to add to the loss of discriminator and auxiliary network."""
        return 0.0

    # ----------------------------------------------------------------- generator (eq. 5)

    def generator_turn(self, epoch: Any, rows: Any, latent: Any) -> dict[str, Any]:
        """Updates the generator by eq. 5; the classifier stays as it is.

        Args:
            epoch: its number.
            rows: instances of which the classifier is sure.
            latent: `[N, C]` z-hat.

        References:
            CrowdInG, eq. 5 and section 3.3.3.
        """
        logged, seed = self.log_annotations(epoch, rows, latent, (_SURE, _GENERATOR))
        passes = functools.partial(self.generator_passes, self.crowd.inputs, logged, seed)
        (mu,) = self.multipliers([logged.delta], passes)
        passes(mu)
        return {"generator_loss": tf.reduce_mean(logged.delta), "generator_multiplier": mu}

    @compiled(_inputs, _logged, _seed, _scalar)
    def generator_passes(self, inputs: Any, logged: Logged, seed: Any, mu: Any) -> Any:
        """Updates the generator batch by batch by eq. 5; returns the loss expected afterwards."""
        (features, annotators), variables = inputs, self.generator.trainable_variables
        noise = self._remembered(logged, self._noise(logged, seed))

        def update(index: Any, batch: Logged) -> tuple[Any, Any]:
            x = tf.gather(features, batch.rows)
            with tf.GradientTape() as tape:
                hidden = self.generator.hidden(x, annotators, noise(index))
                ratios = self.ratios(batch, hidden, batch.latent)
                risk = counterfactual_risk(batch.delta, ratios, mu)
            take_step(self.generator_optimizer, gradients(tape, risk, variables), variables)
            return batch.delta, ratios

        return self.passes_over(logged, update)

    # ----------------------------------------------------------------- classifier (eq. 6)

    def classifier_turn(
        self, epoch: Any, rows: Any, latent: Any, logged: tuple[Logged, Any] | None = None
    ) -> dict[str, Any]:
        """Updates the classifier by eq. 6 through the updated generator, which stays as it is.

        Args:
            epoch: its number.
            rows: instances of which the classifier is not sure.
            latent: `[N, C]` z-hat.
            logged: their annotations from `log_annotations`; by default they are drawn here.

        References:
            CrowdInG, eq. 6 and section 3.3.3.
        """
        # Deviation: CrowdInG eq. 6. Paper: G_0 is last epoch's module. Here: Labels are drawn
        # again after the generator's turn. Why: The ratios would mix the generator's move with the
        # classifier's. Effect: not measured alone.
        if logged is None:
            logged = self.log_annotations(epoch, rows, latent, (_UNSURE, _CLASSIFIER))
        drawn, seed = logged
        passes = functools.partial(self.classifier_passes, self.crowd.inputs, drawn, seed)
        (mu,) = self.multipliers([drawn.authenticity], passes)
        passes(mu)
        return {"classifier_loss": tf.reduce_mean(drawn.authenticity), "classifier_multiplier": mu}

    @compiled(_inputs, _logged, _seed, _scalar)
    def classifier_passes(self, inputs: Any, logged: Logged, seed: Any, mu: Any) -> Any:
        """Updates the classifier batch by batch; returns the loss expected afterwards.

        References:
            CrowdInG, eq. 6.
        """
        (features, annotators), variables = inputs, self.classifier.trainable_variables
        noise = self._noise(logged, seed)

        def still(index: Any) -> Any:
            """Returns the part of the generator's hidden layer that z-hat does not change."""
            x = tf.gather(features, self._batch(logged.rows, index))
            return self.generator.hidden(x, annotators, noise(index))

        hidden = self._remembered(logged, still)

        def update(index: Any, batch: Logged) -> tuple[Any, Any]:
            x = tf.gather(features, batch.rows)
            with tf.GradientTape() as tape:
                ratios = self.ratios(batch, hidden(index), self.classify(x))
                risk = counterfactual_risk(batch.authenticity, ratios, mu)
            take_step(self.classifier_optimizer, gradients(tape, risk, variables), variables)
            return batch.authenticity, ratios

        return self.passes_over(logged, update)

    # ----------------------------------------------------------------- both in one step

    def joint_turn(self, epoch: Any, latent: Any) -> dict[str, Any]:
        """Updates generator and classifier together on all instances: the one-step variant.

        References:
            CrowdInG, eqs. 5 and 6, figure 2b.
        """
        rows = tf.range(len(latent))
        logged, seed = self.log_annotations(epoch, rows, latent, (_SURE, _GENERATOR))
        passes = functools.partial(self.joint_passes, self.crowd.inputs, logged, seed)
        mu = self.multipliers([logged.delta, logged.authenticity], passes)
        passes(*mu)
        losses = {"generator_loss": logged.delta, "classifier_loss": logged.authenticity}
        return {name: tf.reduce_mean(values) for name, values in losses.items()}

    @compiled(_inputs, _logged, _seed, _scalar, _scalar)
    def joint_passes(
        self, inputs: Any, logged: Logged, seed: Any, mu: Any, classifier_mu: Any
    ) -> Any:
        """Updates generator and classifier batch by batch; returns the loss expected afterwards.

        References:
            CrowdInG, eqs. 5 and 6, figure 2b.
        """
        features, annotators = inputs
        noise = self._remembered(logged, self._noise(logged, seed))
        g, c = self.generator.trainable_variables, self.classifier.trainable_variables

        def update(index: Any, batch: Logged) -> tuple[Any, Any]:
            x = tf.gather(features, batch.rows)
            with tf.GradientTape(persistent=True) as tape:
                hidden = self.generator.hidden(x, annotators, noise(index))
                ratios = self.ratios(batch, hidden, self.classify(x))
                risk = counterfactual_risk(batch.delta, ratios, mu)
                classifier_risk = counterfactual_risk(batch.authenticity, ratios, classifier_mu)
            both = gradients(tape, risk, g), gradients(tape, classifier_risk, c)
            take_step(self.generator_optimizer, both[0], g)
            take_step(self.classifier_optimizer, both[1], c)
            return batch.delta, ratios

        return self.passes_over(logged, update)

    # ----------------------------------------------------------------- logged annotations

    def passes_over(self, logged: Logged, update: Callable[[Any, Logged], tuple[Any, Any]]) -> Any:
        """Returns the loss expected after all passes over batches of logged annotations.

        Args:
            logged: the annotations.
            update: `update(index, batch)` updates a network, and returns losses and ratios.
        """
        count = self._batches(logged.rows)

        def step(number: Any, sums: Any) -> tuple[Any, Any]:
            index = number % count
            added = ratio_sums(*update(index, self._batch(logged, index)))
            return number + 1, tf.where(index == 0, 0.0, sums) + added

        times = self.settings.passes * count
        _, sums = tf.while_loop(
            lambda number, _: number < times, step, (0, tf.zeros([2])), parallel_iterations=1
        )
        return self_normalised_estimate(sums)

    def log_annotations(
        self, epoch: Any, rows: Any, latent: Any, purposes: tuple[int, int]
    ) -> tuple[Logged, Any]:
        """Returns annotations of instances by all annotators, drawn by the present module.

        The present generative module is the logging policy G_0 of the turn. A batch meets the same
        noise in each pass, so importance ratios begin at 1.

        Args:
            epoch: its number.
            rows: `[n]` instances.
            latent: `[N, C]` z-hat.
            purposes: of the random numbers for the order of the instances, and for the labels.

        Returns:
            The annotations, and the seed `[2]` of their noise.

        References:
            CrowdInG, section 3.3.2 (G_0).
        """
        order, seed = (self.crowd.draw(epoch, purpose) for purpose in purposes)
        rows = tf.gather(rows, shuffled(tf.range(len(rows)), len(rows), order))
        return self._log(self.crowd.inputs, rows, tf.gather(latent, rows), seed), seed

    @compiled(_inputs, _codes, _matrix, _seed)
    def _log(self, inputs: Any, rows: Any, latent: Any, seed: Any) -> Logged:
        """Draws and judges annotations of instances by all annotators."""

        def compute(index: Any) -> Logged:
            chosen, z = self._batch((rows, latent), index)
            x = tf.gather(inputs[0], chosen), inputs[1]
            labels, probabilities, _ = self.generator.draw(x[0], z, x[1], fold(seed, index))
            return Logged(chosen, z, labels, probabilities, *self.reward(x, z, labels))

        return gathered(self._batches(rows), _logged, compute)

    @compiled(_inputs, _codes, _matrix, _seed)
    def draw(self, inputs: Any, rows: Any, latent: Any, seed: Any) -> Drawn:
        """Draws annotations of instances `[n]` by all annotators; z-hat is `[n, C]`."""

        def compute(index: Any) -> Drawn:
            chosen, z = self._batch((rows, latent), index)
            x = tf.gather(inputs[0], chosen)
            return self.generator.draw(x, z, inputs[1], fold(seed, index))

        return gathered(self._batches(rows), _drawn, compute)

    def reward(self, inputs: Any, latent: Any, labels: Any) -> tuple[Any, Any]:
        """Returns L_G and delta = L_G - lambda log Q(z-hat | y) of drawn labels, both `[B, R]`.

        Args:
            inputs: features of the instances `[B, d]` and of the annotators `[R, e]`.
            latent: `[B, C]` z-hat.
            labels: `[B, R]`.

        References:
            CrowdInG, section 3.3.2 (L_G and delta, above eq. 5).
        """
        encoded, information = self.discriminator.encode(*inputs), self.settings.information
        authenticity = authenticity_loss(self.discriminator.all_pairs(*encoded), labels)
        if not information:
            return authenticity, authenticity
        log_q = self.auxiliary.all_pairs(*encoded, labels)
        likelihood = latent_log_likelihood(latent[:, None, :], log_q)
        return authenticity, generator_delta(authenticity, likelihood, information)

    def ratios(self, batch: Logged, hidden: Any, latent: Any) -> Any:
        """Returns G(y) / G_0(y) of logged labels under the present module, `[B, R]`.

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

    def multipliers(self, losses: Sequence[Any], passes: Callable[..., Any]) -> list[Any]:
        """Returns mu of a turn, one for each network that learns in it.

        Args:
            losses: delta or L_G of all logged labels, for each network.
            passes: `passes(*mu)` takes the turn and returns the loss expected after it.

        References:
            CrowdInG, section 3.3.2 (mu is searched for); Joachims, Swaminathan, de Rijke (2018),
            section 3.3.
        """
        multiplier = self.settings.multiplier
        if multiplier == "mean":
            # Deviation: CrowdInG eqs. 5 and 6. Paper: Mu searched. Here: The mean of the losses.
            # Why: Mu = 0 raises the probability of every drawn label; a search takes five times as
            # long and gave the same. Effect: `multiplier="search"`: five quantiles of the losses,
            # the one with the lowest self-normalised estimate; or a number.
            return [tf.reduce_mean(values) for values in losses]
        if multiplier != "search":
            return [tf.constant(float(multiplier))] * len(losses)
        candidates = list(zip(*(tf.unstack(quantiles(values)) for values in losses), strict=True))
        changed = [*self.generator.trainable_variables, *self.generator_optimizer.variables]
        changed += [*self.classifier.trainable_variables, *self.classifier_optimizer.variables]
        start, estimates = read_variables(changed), []
        for mu in candidates:
            estimates.append(float(passes(*mu)))
            write_variables(changed, start)
        return list(candidates[int(np.argmin(np.nan_to_num(estimates, nan=np.inf)))])

    def _batches(self, rows: Any) -> Any:
        return batches_in(tf.size(rows), self.settings.batch_size)

    def _batch(self, values: Any, index: Any) -> Any:
        size = self.settings.batch_size
        return tf.nest.map_structure(lambda x: x[index * size : (index + 1) * size], values)

    def _noise(self, logged: Logged, seed: Any) -> Callable[[Any], Any]:
        """Returns the noise `[B, R, k]` of a batch by its number, the same in each pass."""

        def noise(index: Any) -> Any:
            shape = tf.unstack(tf.shape(self._batch(logged.delta, index)))
            return pair_noise(fold(seed, index), [*shape, self.generator.noise_size])

        return noise

    def _remembered(self, logged: Logged, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Returns `compute` of a batch's number, or what it returned for each batch at once."""
        if not self.remember:
            return compute
        whole = gathered(self._batches(logged.rows), _cube, compute)
        return lambda index: self._batch(whole, index)

    # ----------------------------------------------------------------- after the game

    def confusion_matrices(self) -> NDArray[np.float32]:
        """Returns the generator's mean answers by the classifier's classes, `[R, C, C]`.

        An entry (annotator, true class, observed class) is the mean of G at the noise's mean over
        the training instances, weighted by the classifier's probability of the true class.
        """
        latent, (features, annotators) = self.classify_all(), self.crowd.inputs
        total, size = np.zeros((len(annotators), *[latent.shape[1]] * 2)), self.settings.batch_size
        for first in range(0, len(latent), size):
            x, z = features[first : first + size], latent[first : first + size]
            answers = np.asarray(self.generator.answers(x, z, annotators), np.float64)
            total += np.einsum("nc,nrk->rck", np.asarray(z, np.float64), answers)
        return (total / total.sum(axis=2, keepdims=True)).astype(np.float32)


def authenticity_auc(authentic: NDArray[np.bool_], scores: NDArray[np.float32]) -> float:
    """Returns the ROC AUC of D's scores for authenticity, .5 without generated annotations."""
    return 0.5 if authentic.all() else float(roc_auc_score(authentic, scores))
