"""Methods that learn an embedding, with logistic regression on top.

They are NeuCrowd, RLL and the metric-learning baselines.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Annotated, ClassVar

import keras
import numpy as np
from sklearn.base import TransformerMixin

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import estimator, number, one_of, strengths
from neucrowd_tf.declare.types import Array, Fields, Floats32, Indices, Network, Tensor
from neucrowd_tf.errors import DataError
from neucrowd_tf.nn.embedding_networks import build_encoder, embedding_model, make_optimizer
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData, transform
from neucrowd_tf.training.features import ArrayFeatures, in_blocks, standardise
from neucrowd_tf.training.learner import in_batches
from neucrowd_tf.training.logistic_head import STRENGTHS, LinearHead, fit_logistic
from neucrowd_tf.training.loop import Evaluate, train
from neucrowd_tf.training.networks import (
    ENCODERS,
    BatchSize,
    Encoder,
    Epochs,
    Kinds,
    LearningRate,
    MinDelta,
    Optimizer,
    Patience,
    Pretrained,
    Standardise,
    StepsPerEpoch,
    ValidationFraction,
    check_network,
    configuration,
)
from neucrowd_tf.training.owner import with_start
from neucrowd_tf.training.reuse import UNSET, NetworkCache, arguments_of, reused
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.state import (
    read_variables,
    reset_optimizer,
    starting_values,
    user_network,
    write_variables,
)
from neucrowd_tf.training.trained import beats_one_step, figures_after_one_step
from neucrowd_tf.training.tuplet_index import TupletIndex
from neucrowd_tf.training.tuplets import TupletModel
from neucrowd_tf.training.validation import consensus_labels, hold_out, validation_figures

# What a search tries for the encoder of all these methods.
ENCODER_SPACE: dict[str, tuple[Tensor, ...]] = {
    "l2": (1e-4, 1e-3, 1e-2),
    "hidden_units": ((64, 32), (128, 64), (32, 16)),
    "dropout": (0.0, 0.2, 0.4),
}
# What a dataset asks of the encoder of all these methods alike, whichever the loss. On Syn1's
# validation rows NeuCrowd has .621 so and .616 by the default 1e-2 (results/neucrowd_choice.csv).
EQUAL_PRESETS: dict[str, Fields] = {"syn1": {"l2": 1e-3}, "syn2": {"l2": 1e-3}}


def adadelta(learning_rate: float) -> Fields:
    """Returns the configuration of TensorFlow 1's Adadelta, whose epsilon is 1e-8 (Keras: 1e-7)."""
    config = {"learning_rate": learning_rate, "rho": 0.95, "epsilon": 1e-8}
    return {"class_name": "Adadelta", "config": config}


# What is trained beside the encoder draws its first weights from a seed this far off, so that two
# networks of one estimator do not start alike; a prime, which no run of seeds reaches by chance.
SECOND_SEED = 7919
_MONITOR_ROWS = 5000


@dataclasses.dataclass(frozen=True, eq=False)
class EmbeddingData:
    """What an embedding is trained on and judged by.

    Attributes:
        features, labels: `[n, ...]`, standardised, and `[n]` consensus class codes of the instances
            trained on.
        annotations: theirs.
        validation, validation_labels: `[m, ...]`, standardised, and `[m]`, likewise.
    """

    features: Floats32
    labels: Indices
    annotations: Annotations
    validation: Floats32
    validation_labels: Indices


@estimator
class RepresentationEstimator(TransformerMixin, CrowdEstimator):
    """Standardise, embed, classify: a subclass says how the embedding network is trained.

    It makes a model with `.encoder` and `.embed` and a pipeline of batches in `_network`.

    Attributes:
        model_: Keras model from raw features to {"probabilities", "embedding"}.
        history_: a dict with a list for each logged value, one entry an epoch.
        n_iter_: epochs trained; `best_epoch_` is the one whose weights were kept (from 0).
        one_step_: validation figures of a copy after one training step; `trained_` says whether the
            AUC of the best epoch is higher by more than a standard error (None without an AUC).
        train_labels_: `[N]` consensus class codes that the embedding was trained on.
        rows_: `[N]` positions of the annotated instances in what `fit` was given.
        kept_: `[n]` those of them that the embedding was trained on (without held-out ones).
    """

    distributed: ClassVar[bool] = True
    nested: ClassVar[Mapping[str, Kinds]] = {"encoder": ENCODERS}

    steps_per_epoch: StepsPerEpoch = 20
    monitor: Annotated[
        str,
        one_of("auc", "accuracy", "log_loss"),
        'the validation figure that chooses the epoch: "auc", "accuracy" or "log_loss".',
    ] = "auc"
    Cs: Annotated[
        Sequence[float], strengths, "values of C from which the logistic regression chooses."
    ] = STRENGTHS
    encoder: Encoder = "dense"
    standardise: Standardise = True
    pretrained: Pretrained = False
    epochs: Epochs = 20
    patience: Patience = None
    min_delta: MinDelta = 0.0
    validation_fraction: ValidationFraction = 0.2
    optimizer: Optimizer = "adam"
    learning_rate: LearningRate = 1e-3
    batch_size: BatchSize = 128

    # What fits share within `reused()`, left out of copies.
    _networks = UNSET

    _check_together = check_network
    transform = transform

    def reused(self, cache: NetworkCache | None = None) -> AbstractContextManager[None]:
        """Lets fits share one compiled network; see `neucrowd_tf.training.reuse.reused`."""
        return reused(self, cache)

    # ----------------------------------------------------------------- what a subclass provides

    def _consensus(self, annotations: Annotations) -> Indices:
        """Returns the class codes `[N]` that the embedding is trained on."""
        return consensus_labels(annotations, self.seed)

    def _model_and_batches(self, data: EmbeddingData) -> tuple[Network, Network]:
        """Returns the model that is trained, and its batches, see `in_batches`."""
        raise NotImplementedError

    def _before_epoch(
        self, model: Network, data: EmbeddingData, epoch: int
    ) -> Mapping[str, float] | None:
        """Changes the model before an epoch; what it returns is logged."""

    def _watch(self, model: Network, data: EmbeddingData) -> Evaluate:
        """Returns what is logged of the training data after each epoch."""
        return dict

    def _judge(self, model: Network, data: EmbeddingData) -> Evaluate:
        """Returns further figures of the validation data, logged as `val_<name>`."""
        return dict

    # ----------------------------------------------------------------- the steps of a fit

    def _fit(self, data: TrainingData, run: Run) -> None:
        prepared = self._prepare(data, self._consensus(data.annotations))
        with run.scope():
            fresh, batches = self._model_and_batches(prepared)
        model = self._compiled(fresh, run, self._steps(prepared))
        self._train_embedding(model, batches, prepared, run)
        if model is not fresh:
            write_variables(fresh.encoder.variables, read_variables(model.encoder.variables))
        self._classify(model, fresh.encoder, prepared, data.features)

    def _prepare(self, data: TrainingData, labels: Indices) -> EmbeddingData:
        """Holds instances out where there is no validation data, and standardises.

        Args:
            labels: `[N]` consensus class codes.

        Raises:
            DataError: one class alone is left to train on.
        """
        split, places = hold_out(data, self.seed, fraction=self.validation_fraction, labels=labels)
        if len(np.unique(labels[places])) < 2:
            raise DataError(
                "annotations: expected consensus labels of at least two classes, received only"
                f" {self.classes_.tolist()[labels[places][0]]!r}"
            )
        mean, scale = standardise(split.features, self.standardise)
        self.mean_ = mean.astype(np.float32)
        self.scale_ = scale.astype(np.float32)
        self.train_labels_ = labels
        self.rows_ = data.rows
        self.kept_ = places
        train_labels = labels[places]
        validation, validation_labels = split.validation or (split.features, train_labels)
        return EmbeddingData(
            self._scale(split.features),
            train_labels,
            split.annotations,
            self._scale(validation),
            validation_labels,
        )

    def _train_embedding(
        self, model: Network, batches: Callable[[int], Tensor], data: EmbeddingData, run: Run
    ) -> None:
        """Trains the model and restores the best epoch.

        That is the one whose embedding serves a plain logistic regression best on the held-out
        instances.
        """
        judge = self._judge(model, data)
        rows = len(data.features)
        sample = np.linspace(0, rows - 1, min(rows, _MONITOR_ROWS)).astype(int)
        features = data.features[sample]
        labels = data.labels[sample]

        def evaluate() -> dict[str, float]:
            head = self._head(model.embed(features), labels, (1.0,))
            probas = head.predict_proba(model.embed(data.validation))
            return {**validation_figures(probas, data.validation_labels), **judge()}

        steps = self._steps(data)
        start = starting_values(model.encoder, pretrained=self.pretrained)
        run = with_start(run, [value for _, value in start])
        self._before_epoch(model, data, 0)
        self.one_step_ = figures_after_one_step(model, batches, evaluate, run)
        history = train(
            model,
            in_batches(model, batches, steps, run),
            epochs=self.epochs,
            steps_per_epoch=steps,
            run=run,
            evaluate=evaluate,
            watch=self._watch(model, data),
            monitor=self.monitor,
            tie_break="log_loss",
            patience=self.patience,
            min_delta=self.min_delta,
            epoch_start=lambda epoch: self._before_epoch(model, data, epoch),
        )
        self.history_ = history.logs
        self.n_iter_ = history.epochs
        self.best_epoch_ = history.best_epoch
        auc = history.logs["val_auc"][history.best_epoch or 0]
        size = len(data.validation_labels)
        self.trained_ = beats_one_step(auc, self.one_step_["auc"], size)

    def _steps(self, data: EmbeddingData) -> int:
        """Returns the batches of an epoch."""
        return self.steps_per_epoch

    def _compiled(self, fresh: Network, run: Run, steps: int) -> Network:
        """Returns a model compiled, or an earlier fit's within `reused()` that starts as it."""

        def build() -> Network:
            with run.scope():
                fresh.compile(
                    optimizer=make_optimizer(self.optimizer, self.learning_rate),
                    steps_per_execution=run.steps_per_call(steps),
                    jit_compile=False,
                )
            return fresh

        if self._networks is None or isinstance(fresh.instances, ArrayFeatures):
            return build()
        shapes = [(*x.shape, x.dtype, x.trainable) for x in (*fresh.held, *fresh.variables)]
        spec = (type(self), run.strategy, steps, *arguments_of(self), *shapes)
        model = self._networks.get(spec, build)
        if model is not fresh:
            model.start_as(fresh)
            reset_optimizer(model.optimizer)
        return model

    def _head(
        self,
        embedded: Floats32,
        labels: Indices,
        Cs: Sequence[float],
        validation: tuple[Array, Array] | None = None,
    ) -> LinearHead:
        return fit_logistic(embedded, labels, len(self.classes_), Cs, validation, seed=self.seed)

    def _classify(
        self, model: Network, encoder: Network, data: EmbeddingData, features: Floats32
    ) -> None:
        """Fits the downstream classifier: C by the held-out instances, then on all `[N, ...]`."""
        validation = model.embed(data.validation), data.validation_labels
        chosen = self._head(model.embed(data.features), data.labels, self.Cs, validation)
        embedded = model.embed(self._scale(features))
        head = self._head(embedded, self.train_labels_, (chosen.C_,))
        self.model_ = self._inference(encoder, head)

    def _scale(self, features: Floats32) -> Floats32:
        def scaled(block: Array) -> Floats32:
            return np.asarray((block - self.mean_) / self.scale_, dtype=np.float32)

        if isinstance(features, ArrayFeatures):
            return features.changed(scaled)  # type: ignore[return-value]
        return in_blocks(scaled, features)

    def _make_encoder(
        self, input_shape: tuple[int, ...], seed: int, name: str = "encoder"
    ) -> keras.Model:
        """Returns a copy of the user's encoder, or fully connected layers of `hidden_units`."""
        config = configuration("encoder", self.encoder, ENCODERS)
        if callable(config):
            return user_network(config, seed, input_shape, pretrained=self.pretrained)
        if len(input_shape) != 1:
            raise DataError(
                "features: expected shape [instances, features] for the default encoder, received"
                f" {input_shape} per row. Pass encoder="
            )
        return build_encoder(config, input_shape[0], seed, name)

    def _inference(self, encoder: keras.Model, head: LinearHead) -> keras.Model:
        """Returns raw features -> standardise -> embed -> logistic regression as a Keras model."""
        size = len(self.classes_)
        dense = keras.layers.Dense(size, "softmax", dtype="float32", name="probabilities")
        scaling = (self.mean_, self.scale_)
        name = type(self).__name__.lower()
        model = embedding_model(self.feature_shape_, scaling, encoder, dense, name)
        dense.set_weights(list(head.folded()))
        return model


@estimator
class TupletEstimator(RepresentationEstimator):
    """Base of methods whose embedding tells a positive example from negatives."""

    eta: Annotated[float, number(least=0), "smoothing of the softmax."] = 10.0
    takes_rows: ClassVar[bool] = True

    weight_inside: Annotated[
        bool,
        "whether the confidence in a label (NeuCrowd: its assurance) multiplies inside the"
        " exponent, as published, or outside it.",
    ] = True
    similarity: Annotated[
        str, one_of("cosine", "euclidean"), 'similarity of embeddings: "cosine" or "euclidean".'
    ] = "cosine"

    @property
    def _negatives(self) -> int:
        """How many negatives a tuplet has."""
        raise NotImplementedError

    def _model(
        self,
        encoder: Network,
        features: Floats32,
        labels: Indices,
        confidence: Floats32,
        **further: object,
    ) -> TupletModel:
        """Returns the network with the instances that it is trained on."""
        # Deviation: NeuCrowd section 3.3.3, p(e+ | e_r*). Paper: The sum runs over the whole
        # tuplet; the robust anchor's assurance is not defined. Here: The anchor itself is not in
        # the sum (`anchor_in_sum`: with the drawn anchor's assurance); `weight_inside=False` (the
        # released code) is another place for the assurance. Why: An anchor's similarity to itself
        # carries no information. Effect: claims neucrowd_anchor_in_sum and
        # neucrowd_anchor_in_sum_auc.
        return self._model_class()(
            encoder,
            features,
            TupletIndex(labels, self._negatives, names=self.classes_.tolist()),
            confidence,
            eta=self.eta,
            similarity_name=self.similarity,
            weight_inside=self.weight_inside,
            **further,
        )

    def _model_class(self) -> Callable[..., TupletModel]:
        return TupletModel
