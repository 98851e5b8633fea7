"""A Keras classifier as an estimator whose compiled network serves every refit.

Crowd layers and two-stage methods with a network build on it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from typing import Annotated, Any, ClassVar, Literal

import keras
import numpy as np

from neucrowd_tf.declare.declarations import estimator, fitted, one_of, whole
from neucrowd_tf.declare.types import Array, Floats32, Indices, Network, Tensor
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.methods.crowd_layers.common import bases
from neucrowd_tf.methods.crowd_layers.common.mixing import PADDING, crop_and_flip
from neucrowd_tf.methods.crowd_layers.common.model import TargetModel
from neucrowd_tf.methods.crowd_layers.common.network import CompiledNetwork, standardise_layer
from neucrowd_tf.methods.crowd_layers.common.prediction import compiled_output, rows_at_once
from neucrowd_tf.nn.embedding_networks import make_optimizer
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.features import LazyFeatures, in_blocks
from neucrowd_tf.training.learner import in_batches
from neucrowd_tf.training.loop import train
from neucrowd_tf.training.networks import (
    BASES,
    BatchSize,
    Kinds,
    LearningRate,
    MinDelta,
    Optimizer,
    Patience,
    Pretrained,
    ValidationFraction,
    check_network,
    configuration,
    network_of,
)
from neucrowd_tf.training.owner import with_start
from neucrowd_tf.training.reuse import UNSET, NetworkCache, arguments_of, reused
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.state import (
    copy_network,
    made_by,
    optimizers_of,
    read_variables,
    reinitialise,
    reset_optimizer,
    starting_values,
    warn_redrawn,
)
from neucrowd_tf.training.validation import hold_out, validation_figures

# Restarted fits' seeds lie this far apart, away from those of self-training's rounds.
_RESTART_SEEDS = 15_485_863


@estimator
class NetworkClassifier(CrowdEstimator):
    """A Keras classifier trained on instances drawn by index.

    A subclass sets what it is trained on, by default the shares of each class's votes.

    `fit` always starts from fresh weights, drawn from `seed`. Within `reused()`, further fits on
    data of as many features, annotators and classes share one compiled network, and give what a
    fresh one would.

    Attributes:
        model_: Keras model from raw features to {"probabilities" `[None, C]`}.
        history_: a dict with a list for each logged value, one entry per epoch.
        n_iter_: epochs trained; `best_epoch_` (from 0) is the one that `monitor` chose, or None.
        rows_: `[N]` positions of the instances trained on among those passed to `fit`.
    """

    distributed: ClassVar[bool] = True

    nested: ClassVar[Mapping[str, Kinds]] = {"base": BASES}

    base: Annotated[
        Any,
        network_of(BASES),
        'a name ("dense", or "small_cnn" and "resnet18" for images), or a configuration such as'
        ' `{"hidden_units": [256, 128], "batch_norm": True}`. Also a Keras classifier with C'
        " probabilities or logits, which is copied, or a function of (input shape, C) that makes"
        ' one. Also "module:function", or a name of keras.applications such as "MobileNetV2"'
        " (untrained).",
    ] = dataclasses.field(default="dense", kw_only=False)
    standardise: Annotated[
        bool | Literal["square_root"],
        "whether features are scaled to mean 0 and standard deviation 1 on the training instances;"
        ' "square_root" takes their signed square root first.',
    ] = True
    augment: Annotated[bool, "whether images are shifted and mirrored in training."] = False
    schedule: Annotated[
        Literal["constant", "cosine"],
        'learning rates over the epochs: "constant", or "cosine", which falls to 0.',
    ] = "constant"
    monitor: Annotated[
        str | None,
        one_of("accuracy", "log_loss", "auc", "loss"),
        'None trains all epochs; "accuracy", "log_loss" or "auc" keeps the best epoch on validation'
        ' data, "loss" that with the least training loss.',
    ] = None

    pretrained: Pretrained = False
    epochs: Annotated[int, whole(1), "number of passes over the instances."] = 50
    patience: Patience = None
    min_delta: MinDelta = 0.0
    validation_fraction: ValidationFraction = 0.2
    optimizer: Optimizer = "adam"
    learning_rate: LearningRate = 1e-3
    batch_size: BatchSize = 128

    model_: Network = fitted()
    history_: dict[str, list[float]] = fitted()
    n_iter_: int = fitted()
    best_epoch_: int | None = fitted()
    rows_: Indices = fitted()

    # Caches, left out of copies: the networks that fits share within `reused()`, the latest fit's
    # network there, and the compiled functions of predictions.
    _networks = _network = _functions = UNSET

    def reused(self, cache: NetworkCache | None = None) -> AbstractContextManager[None]:
        """Lets fits share one compiled network; see `neucrowd_tf.training.reuse.reused`."""
        return reused(self, cache)

    def _check_together(self) -> None:
        check_network(self)
        if self.schedule == "cosine" and not (
            isinstance(self.optimizer, str) and isinstance(self.learning_rate, (int, float))
        ):
            raise UsageError(
                "schedule: cosine needs an optimizer by name and a number as learning_rate. Leave"
                " schedule out, or give both so."
            )
        for name in ("patience", "min_delta"):
            if getattr(self, name) and self.monitor is None:
                raise UsageError(
                    f"{name}: without monitor there is no best epoch to wait for. Pass"
                    ' monitor="accuracy" or another one, too.'
                )

    # ----------------------------------------------------------------- what a subclass provides

    def _model(self, classifier: keras.Model, data: TrainingData) -> Network:
        """Returns the `InstanceModel` that trains a classifier of standardised features."""
        return TargetModel(classifier, data.features, len(self.classes_), self._augmentation())

    def _spec(self, data: TrainingData, run: Run) -> tuple[Hashable, ...]:
        """Returns all that the compiled network depends on: another value needs another network."""
        # Replicas share a batch by its size, which has to be known when it is traced.
        size = None if run.strategy is None else len(data.features)
        shape = (*data.features.shape[1:], data.annotations.num_annotators, len(self.classes_))
        lazy = isinstance(data.features, LazyFeatures)
        return (type(self), run.strategy, size, shape, lazy, *arguments_of(self))

    def _build(self, data: TrainingData) -> CompiledNetwork:
        base = self._make_base(data.features.shape[1:], len(self.classes_))
        layer = standardise_layer(self.standardise)
        inputs = keras.Input(data.features.shape[1:], name="features")
        outputs = base(layer(inputs))
        model = self._model(keras.Model(inputs, outputs, name="classifier"), data)
        name = type(self).__name__.lower()
        whole = keras.Model(inputs, {"probabilities": outputs}, name=name)
        return CompiledNetwork(model, whole, base, layer)

    def _compile(self, network: CompiledNetwork, run: Run) -> None:
        """Compiles what is trained."""
        self._compile_model(network.model, network.steps, self.learning_rate, run)

    def _set_targets(self, network: CompiledNetwork, data: TrainingData) -> None:
        """Sets what the network is trained on, by default the shares of each class's votes."""
        votes = data.annotations.vote_counts()
        network.model.set_targets(votes / votes.sum(axis=1, keepdims=True))

    def _train(self, network: CompiledNetwork, data: TrainingData, run: Run) -> Network:
        """Trains a network that has just been started, and returns the history."""
        return self._train_phase(network, network.model, self.epochs, data, run)

    def _fails(self, data: TrainingData, *, last: bool) -> bool:
        """Returns whether a trained network is so poor that it starts again, if it may."""
        return False

    def _start_again(self, network: CompiledNetwork) -> None:
        """Changes how a network starts after an attempt that failed."""

    def _finish(self, network: CompiledNetwork, data: TrainingData) -> None:
        """Sets the results of the trained network."""

    # ----------------------------------------------------------------- fit

    def _fit(self, data: TrainingData, run: Run) -> None:
        if self.monitor not in (None, "loss"):
            data, _ = hold_out(data, self.seed, fraction=self.validation_fraction)
        cache = self._networks or NetworkCache()
        network = cache.get(self._spec(data, run), lambda: self._compiled(data, run))
        network.set_batches(data.features, self.batch_size, run)
        run = with_start(run, [value for _, value in network.start])
        self.model_ = network.whole
        if self._networks is not None:
            self._network = network
            self._functions = network.functions
        restarts = getattr(self, "restarts", 0)
        for attempt in range(restarts + 1):
            self._start(network, data, (self.seed + _RESTART_SEEDS * attempt) % 2**31)
            stage = run
            if attempt:
                self._start_again(network)
                stage = run.stage(f"restart-{attempt}")
            history = self._train(network, data, stage)
            if not self._fails(data, last=attempt == restarts):
                break
        self.history_ = history.logs
        self.n_iter_ = history.epochs
        self.best_epoch_ = history.best_epoch
        self.rows_ = data.rows
        self._finish(network, data)
        if self._networks is None:
            network.model.free_features()

    @property
    def network(self) -> CompiledNetwork:
        """The compiled network of the latest fit, within `reused()` alone."""
        return self._network

    def _compiled(self, data: TrainingData, run: Run) -> Network:
        # This frees memory first: compiled predictions keep an earlier network.
        self._functions = self._network = None
        with run.scope():
            network = self._build(data)
            for model in filter(None, (network.model, network.second)):
                object.__setattr__(model, "whole", network.whole)  # no part of what is trained
            network.start = starting_values(network.base, pretrained=self.pretrained)
            # A user's layer may not say how its weights are drawn.
            undrawn = reinitialise(network.model, self.seed)
            network.start += zip(undrawn, read_variables(undrawn), strict=True)
        network.set_batches(data.features, self.batch_size, run)
        with run.scope():
            self._compile(network, run)
        return network

    def _compile_model(self, model: Network, steps: int, learning_rate: object, run: Run) -> None:
        other = learning_rate is not self.learning_rate
        optimizer = make_optimizer(self.optimizer, learning_rate, always=other)
        steps = run.steps_per_call(steps)
        model.compile(optimizer=optimizer, steps_per_execution=steps, jit_compile=False)

    def _start(self, network: CompiledNetwork, data: TrainingData, seed: int) -> None:
        """Gives the network fresh weights, this data's constants and its targets.

        Weights are drawn from `seed`.
        """
        reinitialise(network.model, seed)
        # Rounds of self-training fit the same features, which nobody can write to meanwhile.
        same = network.standardised and network.features is data.features
        if not same or data.features.flags.writeable:
            network.set_features(data.features, self.standardise)
        network.model.draw_seed = seed
        self._set_targets(network, data)
        # Last, as a subclass's targets may draw weights too.
        for variable, value in network.start:
            variable.assign(value)
        for optimizer in optimizers_of(network.model):  # whose state may be a copy of weights
            reset_optimizer(optimizer)

    def _train_phase(
        self,
        network: CompiledNetwork,
        model: Network,
        epochs: int,
        data: TrainingData,
        run: Run,
        epoch_start: Callable[[int], Mapping[str, float] | None] | None = None,
    ) -> Tensor:
        """Trains one of the network's compiled models.

        With `monitor` it keeps the best epoch. `epoch_start` is called before each epoch.
        """

        def evaluate() -> Mapping[str, float]:
            features, labels = data.validation  # type: ignore[misc]
            auc = self.monitor == "auc"
            return validation_figures(self._predict_proba(features), labels, auc=auc)

        def start(epoch: int) -> Mapping[str, float] | None:
            if self.schedule == "cosine" and model is network.model:
                share = 0.5 * (1.0 + math.cos(math.pi * epoch / epochs))
                for optimizer, rate in self._rates(model):
                    optimizer.learning_rate = share * rate
            if epoch_start is None:
                return None
            return epoch_start(epoch)

        batches = functools.partial(network.batches, seed=model.draw_seed)
        # Processes that train together need the same figures; the first alone writes event files.
        logged = run.tensorboard is not None or run.workers > 1
        wanted = self.monitor is not None or run.callbacks or logged
        return train(
            model,
            in_batches(model, batches, network.steps, run),
            epochs=epochs,
            steps_per_epoch=network.steps,
            run=run,
            evaluate=evaluate if wanted and data.validation is not None else None,
            monitor=self.monitor,
            patience=self.patience,
            min_delta=self.min_delta,
            epoch_start=start,
        )

    def _rates(self, model: Network) -> list[tuple[Tensor, float]]:
        """Returns the optimizers of `model` and the learning rates that they begin with."""
        return [(model.optimizer, self.learning_rate)]

    # ----------------------------------------------------------------- bases

    def _make_base(self, input_shape: tuple[int, ...], num_classes: int) -> keras.Model:
        """Returns the base classifier: a named one, a copy of the user's, or a function's."""
        base = configuration("base", self.base, BASES)
        if not callable(base):
            return bases.build_base(base, input_shape, num_classes)
        if isinstance(base, keras.Model):
            warn_redrawn(base, "base", pretrained=self.pretrained)
            base = copy_network(base, "base", input_shape)
        else:
            base = made_by(base, "base", input_shape, num_classes)
        return bases.with_softmax(base, input_shape, num_classes)

    def _augmentation(self) -> Callable[[Tensor, Tensor], Tensor] | None:
        if not self.augment:
            return None
        shape = tuple(self.feature_shape_)
        if len(shape) != 3 or min(shape[:2]) <= PADDING:
            raise DataError(
                f"augment: expected images [height, width, channels] of more than {PADDING} pixels"
                f" a side, received features of shape {shape}"
            )
        return crop_and_flip

    # ----------------------------------------------------------------- use

    def _inference_model(self) -> keras.Model:
        outputs = {"probabilities": self.model_.output["probabilities"]}
        return keras.Model(self.model_.input, outputs, name=self.model_.name)

    def _outputs(self, name: str, features: Floats32) -> Floats32:
        """Returns one output of `model_` for a block of features."""
        if self._functions is None:
            self._functions = NetworkCache()
        functions = self._functions.get(self.model_, dict)
        if name not in functions:
            functions[name] = compiled_output(self.model_, name, self.feature_shape_)
        return np.asarray(functions[name](features))

    def _predict_proba(self, features: Floats32) -> Array:
        rows = rows_at_once(self.feature_shape_)
        return in_blocks(lambda block: self._outputs("probabilities", block), features, rows)
