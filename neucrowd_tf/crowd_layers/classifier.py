"""A classifier as an estimator whose compiled network serves every refit: what deep methods of this
package build on.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.training.arguments import check_training, check_whole, check_widths
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.validation import hold_out

if TYPE_CHECKING:
    import keras
    from numpy.typing import NDArray


@dataclasses.dataclass
class Network:
    """A compiled network.

    Attributes:
        model: what is trained, an `InstanceModel`.
        whole: raw features to a dict of outputs, "probabilities" among them; it shares the trained
            weights.
        base: the base classifier, whose Keras losses (weight penalties) `model` counts.
        standardise: the layer that holds the features' mean and scale.
        batches: the pipeline's maker.
        steps: steps an epoch.
        start: the base's weights that every fit starts from, or None for fresh ones.
        own: weights of the base that cannot be drawn anew, as they came, once a fit has started;
            every fit starts from them.
        key: what the network was built for.
    """

    model: Any
    whole: Any
    base: Any
    standardise: Any
    batches: Any = None
    steps: int = 0
    start: list[NDArray[Any]] | None = None
    own: list[NDArray[Any]] | None = None
    key: tuple[Any, ...] = ()


class ClassifierEstimator(CrowdEstimator):
    """A Keras classifier trained on instances drawn by index; a subclass builds the network and
    sets its targets.

    `fit` always starts from fresh weights, drawn from `seed`. Within `reused()`, further fits on
    data of one shape share one compiled network, and give what a fresh one would.
    """

    # Declared for the type checker; each subclass's constructor stores them.
    base: Any
    hidden_units: Sequence[int]
    activation: str
    dropout: float
    batch_norm: bool
    l2: float
    square_root: bool
    standardise: bool
    augment: bool
    pretrained: bool
    weights: str | None
    optimizer: str
    learning_rate: float
    batch_size: int
    epochs: int
    monitor: str | None
    patience: int | None
    validation_fraction: float
    seed: int

    model_: Any

    # ----------------------------------------------------------------- what a subclass provides

    def _build(self, data: TrainingData) -> Network:
        raise NotImplementedError

    def _compile(self, network: Any, run: Run) -> None:
        """Compiles what is trained."""
        from neucrowd_tf.nn.encoders import make_optimizer

        optimizer = make_optimizer(self.optimizer, self.learning_rate)
        network.model.compile(
            optimizer=optimizer,
            steps_per_execution=run.steps_per_call(network.steps),
            jit_compile=False,
        )

    def _set_targets(self, network: Any, data: TrainingData) -> None:
        """Sets what the network is trained on."""
        raise NotImplementedError

    def _train(self, network: Any, data: TrainingData, run: Run) -> Any:
        """Trains from fresh weights and returns the history."""
        return self._train_phase(
            network.model, network.batches, network.steps, self.epochs, data, run
        )

    def _finish(self, network: Any, data: TrainingData, run: Run) -> None:
        """Reads results off the trained network."""

    # ----------------------------------------------------------------- fit

    def _check_arguments(self) -> None:
        from neucrowd_tf.crowd_layers.bases import BASES

        if isinstance(self.base, str) and self.base not in BASES:
            raise UsageError(
                f"base: expected one of {', '.join(BASES)} or a Keras model, received {self.base!r}"
            )
        for name in ("batch_size", "epochs"):
            check_whole(name, getattr(self, name))
        check_training(self)
        if not isinstance(self.hidden_units, (tuple, list)) or len(
            self.hidden_units
        ):  # without hidden layers the base is linear
            check_widths("hidden_units", self.hidden_units)
        if self.monitor not in (None, "accuracy", "log_loss"):
            raise UsageError(
                f"monitor: expected None, 'accuracy' or 'log_loss', received {self.monitor!r}"
            )

    def _fit(self, data: TrainingData, run: Run) -> None:
        self._check_arguments()
        if self.monitor is not None and data.validation is None:
            from neucrowd_tf.aggregation import MajorityVote

            consensus = np.asarray(
                MajorityVote(seed=self.seed).fit(data.annotations).labels_, dtype=np.int64
            )
            data, _ = hold_out(data, consensus, self.validation_fraction, self.seed)
        network = self._network_for(data, run)
        self._start(network, data)
        self.model_ = network.whole
        history = self._train(network, data, run)
        self.history_, self.n_iter_, self.best_epoch_ = (
            history.logs,
            history.epochs,
            history.best_epoch,
        )
        self.rows_ = data.rows
        self._finish(network, data, run)
        run.flush()
        if not self.__dict__.get("_reusing", False):
            self.__dict__.pop("_network", None)

    @contextlib.contextmanager
    def reused(self) -> Iterator[None]:
        """Within this context, fits on data of one shape share one compiled network (and its memory
        is kept).
        """
        self._reusing = True
        try:
            yield
        finally:
            self._reusing = False
            self.__dict__.pop("_network", None)

    def _network_for(self, data: TrainingData, run: Run) -> Any:
        from neucrowd_tf.crowd_layers.model import position_batches
        from neucrowd_tf.training.state import read_variables

        parameters = {
            name: value for name, value in self.get_params(deep=False).items() if name != "seed"
        }
        key = (
            data.features.shape,
            data.annotations.num_annotators,
            len(self.classes_),
            id(run.strategy),
            repr(sorted(parameters.items(), key=str)),
        )
        network = self.__dict__.get("_network")
        if network is not None and network.key == key:
            return network
        self.__dict__.pop("_functions", None)
        with run.scope():
            network = self._build(data)
            if self.pretrained or self.weights is not None:
                network.start = read_variables(network.base.variables)
            network.batches, network.steps = position_batches(
                len(data.features),
                self.batch_size,
                1 if run.strategy is None else run.strategy.num_replicas_in_sync,
            )
            self._compile(network, run)
        network.key = key
        self._network = network
        return network

    def _start(self, network: Any, data: TrainingData) -> None:
        """Gives the network fresh weights, this data's constants and its targets."""
        from neucrowd_tf.training.state import read_variables, reinitialise, write_variables

        left = reinitialise(network.model, self.seed)
        if network.own is None:
            network.own = read_variables(left)
        else:
            write_variables(left, network.own)
        mean, scale = self._moments(data.features)
        network.standardise.mean.assign(mean)
        network.standardise.scale.assign(scale)
        network.model.set_features(data.features)
        network.model.set_draw_seed(self.seed)
        self._set_targets(network, data)
        # Last, as a subclass's targets may draw weights too.
        if network.start is not None:
            write_variables(
                [v for v in network.base.variables if "seed" not in v.path], _without_seeds(network)
            )

    def _moments(
        self, features: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns the mean and standard deviation of each column (or image channel), after the
        square root; 0 and 1 without standardising.
        """
        width = features.shape[-1]
        if not self.standardise:
            return np.zeros(width, np.float32), np.ones(width, np.float32)
        total, squares, count = np.zeros(width), np.zeros(width), 0
        for start in range(0, len(features), 1024):
            part = features[start : start + 1024].reshape(-1, width).astype(np.float64)
            if self.square_root:
                part = np.sign(part) * np.sqrt(np.abs(part))
            total, squares, count = (
                total + part.sum(axis=0),
                squares + np.square(part).sum(axis=0),
                count + len(part),
            )
        mean = total / count
        scale = np.sqrt(np.maximum(squares / count - np.square(mean), 0.0))
        return mean.astype(np.float32), np.where(
            scale > 1e-6 * np.maximum(np.abs(mean), 1.0), scale, 1.0
        ).astype(np.float32)

    def _train_phase(
        self,
        model: Any,
        batches: Any,
        steps: int,
        epochs: int,
        data: TrainingData,
        run: Run,
        callbacks: Sequence[Any] = (),
    ) -> Any:
        """Trains one compiled model, choosing the epoch on validation data where `monitor` says
        so."""
        from neucrowd_tf.training.loop import train

        def evaluate() -> Mapping[str, float]:
            features, labels = data.validation  # type: ignore[misc]
            probabilities = self._predict_proba(features)
            likelihood = np.maximum(probabilities[np.arange(len(labels)), labels], 1e-7)
            return {
                "accuracy": float((probabilities.argmax(axis=1) == labels).mean()),
                "log_loss": float(-np.log(likelihood).mean()),
            }

        return train(
            model,
            batches,
            epochs=epochs,
            steps_per_epoch=steps,
            run=run,
            evaluate=evaluate if self.monitor is not None else None,
            monitor=self.monitor,
            mode="min" if self.monitor == "log_loss" else "max",
            patience=self.patience,
            callbacks=callbacks,
        )

    # ----------------------------------------------------------------- bases

    def _make_base(self, input_shape: tuple[int, ...], num_classes: int) -> keras.Model:
        """Returns the base classifier: a preset by name, a user's Keras model (copied), or what a
        user's function makes.
        """
        import keras

        from neucrowd_tf.crowd_layers import bases

        if isinstance(self.base, keras.Model):
            made = bases.copied(self.base, input_shape, num_classes)
        elif callable(self.base):
            made = bases.copied(self.base(input_shape, num_classes), input_shape, num_classes)
        elif self.base == "dense":
            made = bases.dense_base(
                input_shape,
                num_classes,
                units=self.hidden_units,
                activation=self.activation,
                dropout=self.dropout,
                batch_norm=self.batch_norm,
                l2=self.l2,
                seed=self.seed,
            )
        elif self.base == "small_cnn":
            made = bases.small_cnn_base(
                input_shape, num_classes, dropout=self.dropout, l2=self.l2, seed=self.seed
            )
        else:
            made = bases.resnet18_base(input_shape, num_classes, l2=self.l2, seed=self.seed)
        if self.weights is not None:
            bases.load_pretrained(made, self.weights)
        return made

    def _augmentation(self) -> Callable[[Any, Any], Any] | None:
        from neucrowd_tf.crowd_layers.augmentation import crop_and_flip

        if not self.augment:
            return None
        if len(self.feature_shape_) != 3:
            raise DataError(
                "augment: expected images [height, width, channels], received features of shape"
                f" {tuple(self.feature_shape_)}"
            )
        return crop_and_flip

    # ----------------------------------------------------------------- use

    def inference_model(self) -> keras.Model:
        import keras

        return keras.Model(
            self.model_.input,
            {"probabilities": self.model_.output["probabilities"]},
            name=self.model_.name,
        )

    def _rows_at_once(self) -> int:
        return 4096 if len(self.feature_shape_) == 1 else 256

    def _outputs(self, name: str, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns one output of `model_` for a block of features."""
        import keras
        import tensorflow as tf

        functions = self.__dict__.setdefault("_functions", {})
        if functions.get("model") is not self.model_:
            functions.clear()
            functions["model"] = self.model_
        if name not in functions:
            part = keras.Model(self.model_.input, self.model_.output[name])
            signature = [tf.TensorSpec([None, *self.feature_shape_], tf.float32)]
            functions[name] = tf.function(
                lambda x: part(x, training=False), input_signature=signature
            )
        return np.asarray(functions[name](features))

    def _predict_proba(self, features: NDArray[np.float32]) -> NDArray[Any]:
        rows = self._rows_at_once()
        parts = [
            self._outputs("probabilities", features[start : start + rows])
            for start in range(0, len(features), rows)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.classes_)), np.float32)

    def __getstate__(self) -> dict[str, Any]:
        """Caches (compiled functions and networks) are left out of copies."""
        return {
            name: value
            for name, value in super().__getstate__().items()
            if name not in ("_network", "_functions", "_reusing")
        }


def _without_seeds(network: Network) -> list[NDArray[Any]]:
    """Returns the starting values of the base's variables other than seeds."""
    pairs = zip(network.base.variables, network.start or [], strict=True)
    return [value for variable, value in pairs if "seed" not in variable.path]
