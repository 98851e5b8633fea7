"""Methods that learn an embedding and put logistic regression on top: NeuCrowd, RLL and the
metric-learning baselines.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from neucrowd_tf.errors import DataError
from neucrowd_tf.training.arguments import (
    check_choice,
    check_strengths,
    check_training,
    check_whole,
    check_widths,
)
from neucrowd_tf.training.blocks import in_blocks
from neucrowd_tf.training.consensus import consensus_labels
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.linear import fit_logistic
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.standardise import standardise
from neucrowd_tf.training.validation import hold_out

if TYPE_CHECKING:
    import keras
    from numpy.typing import ArrayLike, NDArray

DEFAULT_CS: tuple[float, ...] = tuple(float(c) for c in np.logspace(-4, 4, 9))
INITIALIZERS = ("glorot", "normal")
SIMILARITIES = ("cosine", "euclidean")
_MONITOR_ROWS = 5000


class RepresentationEstimator(TransformerMixin, CrowdEstimator):
    """Standardise, embed, classify: a subclass says how the embedding network is trained.

    It implements `_trainer(features, data, labels, run)`, which returns a compiled model with
    `.encoder` and `.embed`, and the pipeline's maker; and, where it needs to, `_labels` and
    `_epoch_start`.

    Attributes:
        model_: Keras model from raw features to {"probabilities", "embedding"}.
        history_: a dict with a list for each logged value, one entry an epoch.
        n_iter_: epochs trained; `best_epoch_` is the one whose weights were kept (from 0).
        train_labels_: `[N]` consensus class codes that the embedding was trained on.
        rows_: `[N]` positions of the instances trained on in what `fit` was given.
        regularisation_: C of the downstream logistic regression.
    """

    needs_epochs: ClassVar[bool] = True

    # Declared for the type checker; each subclass's constructor stores them.
    encoder: Any
    hidden_units: tuple[int, ...]
    activation: str
    dropout: float
    l2: float
    initializer: str
    optimizer: str
    learning_rate: float
    batch_size: int
    steps_per_epoch: int
    epochs: int
    patience: int | None
    monitor: str
    standardise: bool
    Cs: tuple[float, ...]
    validation_fraction: float
    seed: int

    # ----------------------------------------------------------------- what a subclass provides

    def _labels(self, data: TrainingData, run: Run) -> NDArray[np.int64]:
        """Returns consensus class codes `[N]`; by default the majority vote with seeded ties."""
        del run
        return consensus_labels(data.annotations, self.seed)

    def _trainer(
        self, features: NDArray[np.float32], data: TrainingData, labels: NDArray[np.int64], run: Run
    ) -> tuple[Any, Any]:
        raise NotImplementedError

    def _epoch_start(
        self, model: Any, labels: NDArray[np.int64], epoch: int, steps: int
    ) -> Mapping[str, float] | None:
        """Called before each epoch; may set the model's variables."""
        del model, labels, epoch, steps
        return None

    # ----------------------------------------------------------------- fit

    def _fit(self, data: TrainingData, run: Run) -> None:
        from neucrowd_tf.training.loop import train

        self._check_arguments()
        everything, all_labels = data, self._labels(data, run)
        data, kept = hold_out(data, all_labels, self.validation_fraction, self.seed)
        labels = all_labels[kept]
        if len(np.unique(labels)) < 2:
            raise DataError(
                "annotations: expected consensus labels of at least two classes, received only"
                f" {self.classes_.tolist()[labels[0]]!r}"
            )
        self._fit_scaler(data.features)
        features = self._scale(data.features)
        held = self._scale(data.validation[0]) if data.validation is not None else features
        held_labels = data.validation[1] if data.validation is not None else labels
        with run.scope():
            model, batches = self._trainer(features, data, labels, run)
        monitored = np.linspace(0, len(features) - 1, min(len(features), _MONITOR_ROWS)).astype(int)
        shown, shown_labels = features[monitored], labels[monitored]

        def evaluate() -> dict[str, float]:
            head = fit_logistic(
                model.embed(shown), shown_labels, len(self.classes_), Cs=(1.0,), seed=self.seed
            )
            return ranking_metrics(held_labels, head.predict_proba(model.embed(held)))

        history = train(
            model,
            batches,
            epochs=self.epochs,
            steps_per_epoch=self.steps_per_epoch,
            run=run,
            evaluate=evaluate,
            monitor=self.monitor,
            mode="min" if self.monitor == "log_loss" else "max",
            tie_break="log_loss",
            patience=self.patience,
            epoch_start=lambda epoch: self._epoch_start(model, labels, epoch, self.steps_per_epoch),
        )
        self.history_, self.n_iter_, self.best_epoch_ = (
            history.logs,
            history.epochs,
            history.best_epoch,
        )
        self._finish(model, everything, all_labels, (features, labels, held, held_labels), run)

    def _finish(
        self,
        model: Any,
        data: TrainingData,
        labels: NDArray[np.int64],
        parts: tuple[NDArray[Any], ...],
        run: Run,
    ) -> None:
        """Fits the downstream classifier: C by the validation part, then on all training
        instances."""
        features, train_labels, held, held_labels = parts
        embedded = model.embed(features)
        chosen = fit_logistic(
            embedded,
            train_labels,
            len(self.classes_),
            Cs=self.Cs,
            validation=(model.embed(held), held_labels),
            seed=self.seed,
        )
        whole = model.embed(self._scale(data.features))
        head = fit_logistic(whole, labels, len(self.classes_), Cs=(chosen.C_,), seed=self.seed)
        self.regularisation_ = float(chosen.C_)
        self.train_labels_, self.rows_ = labels, data.rows
        self.model_ = self._inference(model.encoder, head)
        run.projector("embedding", whole, self.classes_[labels])
        run.flush()

    def _check_arguments(self) -> None:
        """Raises UsageError for an argument that cannot be used, before anything is computed; a
        subclass checks its own too.
        """
        for name in ("batch_size", "steps_per_epoch", "epochs"):
            check_whole(name, getattr(self, name))
        check_training(self)
        check_widths("hidden_units", self.hidden_units)
        check_strengths("Cs", self.Cs)
        check_choice("initializer", self.initializer, INITIALIZERS)
        check_choice("monitor", self.monitor, ("auc", "accuracy", "log_loss"))
        if hasattr(self, "similarity"):
            check_choice("similarity", self.similarity, SIMILARITIES)

    def _fit_scaler(self, features: NDArray[np.float32]) -> None:
        mean, scale = standardise(features, self.standardise)
        self.mean_, self.scale_ = mean.astype(np.float32), scale.astype(np.float32)

    def _scale(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray((features - self.mean_) / self.scale_, dtype=np.float32)

    def _make_encoder(
        self, input_shape: tuple[int, ...], seed: int, name: str = "encoder"
    ) -> keras.Model:
        """Returns the user's encoder (a fresh copy of it), or fully connected layers of
        `hidden_units`.
        """
        from neucrowd_tf.nn.encoders import dense_encoder
        from neucrowd_tf.training.state import fresh_copy

        if self.encoder is not None:
            return fresh_copy(self.encoder, seed)
        if len(input_shape) != 1:
            raise DataError(
                "features: expected shape [instances, features] for the default encoder, received"
                f" {input_shape} a row; pass encoder="
            )
        return dense_encoder(
            input_shape[0],
            self.hidden_units,
            activation=self.activation,
            dropout=self.dropout,
            l2=self.l2,
            initializer=self.initializer,  # type: ignore[arg-type]
            seed=seed,
            name=name,
        )

    def _inference(self, encoder: keras.Model, head: Any) -> keras.Model:
        """Returns raw features -> standardise -> embed -> logistic regression as one Keras
        model."""
        import keras

        inputs = keras.Input(self.feature_shape_, name="features")
        x = keras.layers.Normalization(
            axis=-1, mean=self.mean_, variance=np.square(self.scale_), name="standardise"
        )(inputs)
        embedding = keras.layers.Activation("linear", dtype="float32", name="embedding")(encoder(x))
        dense = keras.layers.Dense(
            len(self.classes_), activation="softmax", dtype="float32", name="probabilities"
        )
        model = keras.Model(
            inputs,
            {"probabilities": dense(embedding), "embedding": embedding},
            name=type(self).__name__.lower(),
        )
        dense.set_weights(list(head.folded()))
        return model

    # ----------------------------------------------------------------- use

    def inference_model(self) -> keras.Model:
        return self.model_

    def _outputs(self, features: NDArray[np.float32], name: str) -> NDArray[Any]:
        return in_blocks(lambda part: self.model_(part, training=False)[name], features)

    def _predict_proba(self, features: NDArray[np.float32]) -> NDArray[Any]:
        return self._outputs(features, "probabilities")

    def transform(self, features: ArrayLike) -> NDArray[np.float32]:
        """Returns the embedding `[M, h]` of raw features."""
        return self._outputs(self._check_fitted(features), "embedding")


def ranking_metrics(
    labels: NDArray[np.integer[Any]], probabilities: NDArray[Any]
) -> dict[str, float]:
    """Returns accuracy, AUC (one against rest for C classes; 0.5 where a split has one class) and
    log loss.
    """
    classes = np.unique(labels)
    result = {"accuracy": float(accuracy_score(labels, probabilities.argmax(axis=1)))}
    if len(classes) < 2:
        auc = 0.5
    elif probabilities.shape[1] == 2:
        auc = float(roc_auc_score(labels, probabilities[:, 1]))
    else:
        auc = float(np.mean([roc_auc_score(labels == c, probabilities[:, c]) for c in classes]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss = float(
            log_loss(
                labels, np.clip(probabilities, 1e-7, 1.0), labels=np.arange(probabilities.shape[1])
            )
        )
    return {**result, "auc": auc if math.isfinite(auc) else 0.5, "log_loss": loss}
