"""The contract of every method that learns from features and annotations.

TensorFlow is imported only when it is used.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score

from neucrowd_tf.annotations import Annotations, encode_labels
from neucrowd_tf.annotations.tables import (
    SHAPES,
    arrange_columns,
    as_single,
    check_features,
    check_numbers,
    check_texts,
    column_names,
    is_text,
    rescaling,
)
from neucrowd_tf.annotations.votes import decided, scale_of
from neucrowd_tf.declare.declarations import SEED, check_arguments, estimator, fitted
from neucrowd_tf.declare.types import (
    Array,
    Features,
    Fields,
    Floats,
    Floats32,
    Indices,
    Layer,
    Network,
)
from neucrowd_tf.errors import DataError, UnsupportedDataError, UsageError, one_at_a_time, warn
from neucrowd_tf.names import as_name_array, without
from neucrowd_tf.saving.persistent import Persistent
from neucrowd_tf.saving.transaction import transaction
from neucrowd_tf.training.features import (
    ArrayFeatures,
    LazyFeatures,
    blocks_of,
    in_blocks,
    is_dataset,
    is_mapped,
)
from neucrowd_tf.training.inputs import Inputs
from neucrowd_tf.training.owner import owner_of
from neucrowd_tf.training.random_states import random_states_stay
from neucrowd_tf.training.reuse import forgotten_after_errors
from neucrowd_tf.training.run import Run

PREDICTED_AT_END = 256  # instances whose predictions a fit checks before it ends


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingData:
    """What `fit` was given, checked: only instances that have annotations.

    Attributes:
        features: `[N, ...]` float32; texts `[N]` for a method that `takes_texts`.
        annotations: N instances, each with at least one label.
        validation: features and class codes, or None.
        rows: `[N]` positions of these instances in what `fit` was given.
        validation_kind: "truth", or "votes" of the crowd, which are no true labels.
    """

    features: Floats32
    annotations: Annotations
    validation: tuple[Floats32, Indices] | None
    rows: Indices
    validation_kind: str = "truth"

    @property
    def named_validation(self) -> tuple[Floats32, Array, str] | None:
        """The validation data as another estimator's `fit` takes it, with class names."""
        if self.validation is None:
            return None
        features, codes = self.validation
        return features, self.annotations.class_names[codes], self.validation_kind


@estimator
class CrowdEstimator(ClassifierMixin, Persistent, BaseEstimator):
    """Base of the classifiers that train on crowd labels.

    A subclass declares its arguments (`neucrowd_tf.declare.declarations`), fits in
    `_fit(data, run)` and sets results that end in `_`. It predicts in `_predict_proba`, by default
    with `model_`, a Keras model from raw features to "probabilities" and perhaps "embedding". It
    says with `requires_identities` and `max_classes` what it cannot do without.
    """

    requires_identities: ClassVar[bool] = False
    max_classes: ClassVar[int | None] = None
    takes_texts: ClassVar[bool] = False  # beside numbers
    trains_network: ClassVar[bool] = True  # whose loops call callbacks
    reads_batches: ClassVar[bool] = False  # it needs no more than one batch of features at a time
    takes_rows: ClassVar[bool] = False  # it needs batches of its choice, or goes over all often
    learns_from_generated: ClassVar[bool] = True  # labels that another method made up
    distributed: ClassVar[bool] = False  # it, or what it fits, trains on all devices of a strategy

    classes_: Array = fitted()
    n_features_in_: int = fitted()
    feature_names_in_: Array | None = fitted()  # None of features without names
    feature_shape_: tuple[int, ...] = fitted()
    rescaling_: Floats | None = fitted()  # of columns that float32 cannot hold

    seed: Annotated[int, SEED, "seed of all random draws."] = 0

    def fit(
        self,
        features: ArrayLike,
        annotations: Annotations | ArrayLike,
        validation: Sequence[object] | None = None,
        *,
        run: Run | None = None,
        callbacks: Sequence[object] = (),
    ) -> Self:
        """Trains.

        Args:
            features: `[N, ...]` numbers; `TextClassifier` and `Auto` take texts `[N]` too. Crowd
                layers, two-stage methods, NeuCrowd and RLL read an `np.memmap`, or a
                `tf.data.Dataset` of (features, index), by batches.
            annotations: N instances; `Annotations`, a frame `task, worker, label`, or a dense
                `[N, R]` matrix with -1 for missing labels. Features with an index, or a column of
                item ids, are matched by name. Instances without annotations are left out with a
                warning.
            validation: features and labels (class names) for choices such as the best epoch, and
                their kind if they are not the "truth" but a crowd's "votes". Without it, methods
                that need it hold out a part of the annotated instances.
            run: where checkpoints and TensorBoard logs go; by default nowhere.
            callbacks: Keras callbacks of each training loop (see `Run`).

        Raises:
            UsageError: an argument of the constructor that cannot be used, before anything else.
            DataError: what is wrong with the input and where.
            FloatingPointError: a loss, a weight or a prediction that is not finite.

        Whatever ends a fit with an exception (`KeyboardInterrupt` too), the estimator stays as it
        was before.
        """
        check_arguments(self)
        self._check_together()
        run = run or Run()
        run = dataclasses.replace(run, callbacks=[*run.callbacks, *callbacks])
        if run.callbacks and not self.trains_network:
            raise UsageError(f"callbacks: {type(self).__name__} trains no network that calls them")
        with transaction(self), random_states_stay():
            data = self._check(features, annotations, validation)
            if not self.distributed:
                run = self._on_one_device(run)
            if run.checkpoints is not None and not run.owner:  # the outermost fit's
                owner = owner_of(self, data.features, data.annotations, *(data.validation or ()))
                run = dataclasses.replace(run, owner=owner)
            with retracing_expected(), forgotten_after_errors(self):
                self._fit(data, run)
                first_rows = next(blocks_of(data.features, PREDICTED_AT_END))[1]
                check_finite(self._predict_proba(first_rows))
            run.flush()
        return self

    def _on_one_device(self, run: Run) -> Run:
        """Returns a run without a strategy.

        Replicas of such a method would have more to tell each other than to compute.
        """
        if run.strategy is None:
            return run
        if run.strategy.num_replicas_in_sync > 1:
            warn(
                f"{type(self).__name__}: trains on one device, the strategy's others stay idle",
                stacklevel=3,
            )
        checkpoints = run.checkpoints if run.first_worker else None
        return dataclasses.replace(run, strategy=None, checkpoints=checkpoints)

    def _check_together(self) -> None:
        """Raises UsageError for arguments that do not go together.

        Each argument's own constraint is checked already.
        """

    def _fit(self, data: TrainingData, run: Run) -> None:
        raise NotImplementedError

    def _outputs(self, name: str, features: Floats32) -> Array:
        """Returns one output of `model_`."""
        return in_blocks(lambda block: self.model_(block, training=False)[name], features)

    def _predict_proba(self, features: Floats32) -> Array:
        return self._outputs("probabilities", features)

    def _check(
        self,
        features: ArrayLike,
        annotations: Annotations | ArrayLike,
        validation: Sequence[object] | None,
    ) -> TrainingData:
        """Returns what `fit` is given as the method trains on it, and notes classes and columns."""
        if is_dataset(features) or is_mapped(features):
            self._require_batches()
        inputs = Inputs.of(features, annotations, validation)
        x = self._features(inputs.features, "features")
        crowd, rows = self._annotated(len(x), inputs.annotations)
        if len(rows) < len(x):
            x = x[rows]
        self.classes_ = crowd.class_names
        self.feature_names_in_ = column_names(inputs.features)
        self.rescaling_ = None
        if x.dtype != object:
            self.rescaling_ = self._rescaling(x)
        x = self._by_rows(self._single(x, "features"))
        self.feature_shape_ = tuple(map(int, x.shape[1:]))
        self.n_features_in_ = (1, *self.feature_shape_)[-1]
        if inputs.validation is None:
            return TrainingData(x, crowd, None, rows)
        table, codes, kind = inputs.validation
        held_out = self._by_rows(self._values(table, "validation features"))
        return TrainingData(x, crowd, (held_out, codes), rows, kind)

    def _rescaling(self, features: Any) -> Floats | None:
        """Returns the `rescaling` of what the method trains on.

        Raises:
            DataError: a column that float32 cannot hold, of a method that keeps its scale.
        """
        scaling = rescaling(features)
        if scaling is not None and getattr(self, "standardise", True) is not True:
            column = int(np.flatnonzero((scaling != [[0.0], [1.0]]).any(axis=0))[0])
            raise DataError(
                f"features: column {column}: float32 does not hold its numbers"
                f" (about {scaling[0, column]:g}) apart. Rescale it, or set standardise=True."
            )
        return scaling

    def _annotated(self, size: int, crowd: Annotations | None) -> tuple[Annotations, Indices]:
        """Returns the annotations of instances that have any, and the rows of these instances.

        Args:
            size: number of rows of the features.
            crowd: annotations of as many instances.
        """
        if crowd is None:
            raise DataError(f"annotations: expected {SHAPES}; received None")
        if size != crowd.num_instances:
            raise DataError(
                f"expected as many feature rows as annotated instances, received {size} and"
                f" {crowd.num_instances}"
            )
        self._check_crowd(crowd)
        rows = np.flatnonzero(crowd.annotated)
        if len(rows) == size:
            return crowd, rows
        missing = crowd.instance_names[~crowd.annotated][:3].tolist()
        warn(
            f"{size - len(rows)} instances have no annotations and are left out of training (the"
            f" first: {', '.join(map(repr, missing))})",
            UserWarning,
            stacklevel=4,
        )
        return crowd[rows], rows

    def _check_crowd(self, crowd: Annotations) -> None:
        """Checks that the method can learn from such annotations.

        They have at least two classes.
        """
        name = type(self).__name__
        if self.requires_identities:
            crowd.require_identities(name)
        if self.max_classes is not None and crowd.num_classes > self.max_classes:
            raise UnsupportedDataError(
                f"{name} handles at most {self.max_classes} classes, received {crowd.num_classes}"
            )
        used = np.flatnonzero(crowd.vote_counts().sum(axis=0))
        if len(used) < 2:
            raise DataError(
                "annotations: expected labels of at least two classes, received"
                f" {crowd.class_names[used].tolist()}"
            )

    def _inputs(self, features: ArrayLike, annotations: object = None) -> Inputs:
        """Returns what the fitted method is given."""
        if not hasattr(self, "feature_shape_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        columns = getattr(self, "feature_names_in_", None)
        return Inputs.of(features, annotations, columns=columns, num_classes=len(self.classes_))

    def _check_fitted(self, features: ArrayLike) -> Floats32:
        """Returns features as the fitted method sees them."""
        return self._values(self._inputs(features).features)

    def _values(self, table: Features, subject: str = "features") -> Any:
        """Returns features without ids as the method sees them.

        Raises:
            DataError: other columns, or another shape, than those of the training features.
        """
        table = arrange_columns(table, getattr(self, "feature_names_in_", None), subject)
        if self.takes_texts and not self.feature_shape_:
            return check_texts(table, subject)
        x = self._features(table, subject)
        if x.shape[1:] != tuple(self.feature_shape_):
            shape = ", ".join(map(str, self.feature_shape_))
            raise DataError(f"{subject}: expected shape [*, {shape}], received {x.shape}")
        return self._single(x, subject)

    def _single(self, features: Any, subject: str) -> Any:
        """Returns numbers as float32, rescaled as those of training were; texts as they are."""
        scaling = getattr(self, "rescaling_", None)
        if features.dtype == object:
            return features
        if not isinstance(features, LazyFeatures):
            return as_single(features, subject, scaling)
        if scaling is None and features.dtype == np.float32:
            return features
        return features.changed(lambda block: as_single(block, subject, scaling))

    def _features(self, features: Features, subject: str) -> Any:
        """Returns features as numbers `[N, ...]`, as texts, or out of memory."""
        if isinstance(features, LazyFeatures):
            self._require_batches()
            return features
        if is_mapped(features) and (self.reads_batches or self.takes_rows):
            array = np.asarray(features)
            check_numbers(array, subject)
            return ArrayFeatures(array, subject)
        if is_text(features):
            if self.takes_texts:
                return check_texts(features)
            raise DataError(
                f"{subject}: texts, and {type(self).__name__} takes numbers. Fit a"
                f" TextClassifier(estimator={type(self).__name__}(...))."
            )
        return check_features(features, subject)

    def _by_rows(self, features: Any) -> Any:
        """Returns features as they are, or in a file from which the method can take any rows."""
        if self.takes_rows and isinstance(features, LazyFeatures):
            return features.in_file()
        return features

    def _require_batches(self) -> None:
        """Raises UsageError if the method needs all features in memory."""
        if not self.reads_batches and not self.takes_rows:
            raise UsageError(
                f"features: {type(self).__name__} needs all features in memory. Pass a NumPy array,"
                " not an np.memmap or a tf.data.Dataset."
            )

    def text_layer(self) -> Layer:
        """Returns a Keras layer from texts or images to what `inference_model` takes.

        Methods fitted to numbers, or to the vectors of a `SentenceEncoder`, give None.
        """
        return None

    def predict_proba(self, features: ArrayLike) -> Array:
        """Returns `[M, C]` class probabilities in the order of `classes_`.

        Args:
            features: `[M, ...]` as those of `fit`; a frame's columns are found by their names.

        Raises:
            NotFittedError: before `fit`.
            DataError: features that do not go with those of training.
            FloatingPointError: some are not finite, as the features are too large for the model.
        """
        return self._probabilities(self._inputs(features))

    def _probabilities(self, inputs: Inputs) -> Array:
        with retracing_expected():
            return check_finite(self._predict_proba(self._values(inputs.features)))

    def predict(self, features: ArrayLike) -> Array:
        """Returns `[M]` labels (class names), see `predict_proba`."""
        codes = self._decide(self.predict_proba(features))
        return self.classes_[codes]

    def _decide(self, probabilities: Array) -> Indices:
        """Returns `[M]` class codes."""
        return decided(probabilities, scale_of(self))

    def score(
        self,
        features: ArrayLike,
        labels: Annotations | ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Returns the accuracy against labels.

        Args:
            features: `[M, ...]` as those of `fit`.
            labels: `[M]` class names, or annotations in any form that `fit` takes, whose majority
                votes are the labels. Labels with an index are matched with the features by name.
            sample_weight: `[M]` weights of the instances; those without annotations have none.

        Raises:
            NotFittedError: before `fit`.
            DataError: features, or labels, that do not go with those of training.
            FloatingPointError: a prediction that is not finite.
        """
        is_crowd = isinstance(labels, Annotations)
        is_crowd = is_crowd or (np.ndim(labels) == 2 and np.shape(labels)[1] > 1)
        inputs = self._inputs(features, labels if is_crowd else None)
        sample_weight = inputs.of_rows(sample_weight, "sample_weight")
        if is_crowd:
            codes, weights = self._majority(inputs.annotations)
            sample_weight = np.multiply(weights, 1.0 if sample_weight is None else sample_weight)
        else:
            codes = encode_labels(inputs.of_rows(labels), self.classes_)
        predicted = self._decide(self._probabilities(inputs))
        with one_at_a_time():
            return float(accuracy_score(codes, predicted, sample_weight=sample_weight))

    def _majority(self, crowd: Any) -> tuple[Indices, Floats]:
        """Returns `[N]` majority votes as codes of `classes_`, and 0 for instances without votes.

        Votes for classes that training did not have follow those of `classes_`.
        """
        crowd = crowd.observed()
        classes = self.classes_.tolist()
        names = crowd.class_names.tolist()
        others = without(names, classes)
        if names != [*range(len(classes))] or not others:  # not codes
            crowd = crowd.align(class_names=as_name_array([*classes, *others]))
        return crowd.vote_counts().argmax(axis=1), crowd.annotated.astype(float)

    def inference_model(self) -> Network:
        """Returns a Keras model from raw features `[None, ...]` to a dict of outputs.

        It has "probabilities" and, where there is one, "embedding". It takes float64 if float32
        cannot hold a column.
        """
        model = self._inference_model()
        if (scaling := getattr(self, "rescaling_", None)) is None:
            return model
        from neucrowd_tf.nn.standardise import rescaled

        return rescaled(model, self.feature_shape_, *scaling)

    def __getstate__(self) -> Fields:
        """Copies leave out caches, whose names begin with "_", as saved estimators do."""
        theirs = ("_sklearn", "_metadata")  # of scikit-learn, no caches
        state = super().__getstate__()
        return {name: x for name, x in state.items() if name[0] != "_" or name.startswith(theirs)}

    def _inference_model(self) -> Network:
        """Returns the model of `inference_model`, from features as the method sees them."""
        if not hasattr(self, "model_"):
            raise NotImplementedError(f"{type(self).__name__} cannot be exported")
        return self.model_


def transform(self: CrowdEstimator, features: ArrayLike) -> Floats32:
    """Returns the embedding `[M, h]` of raw features (of several networks, side by side)."""
    return self._outputs("embedding", self._check_fitted(features))


def check_finite(probabilities: Array) -> Array:
    """Returns predictions `[M, C]`, or raises FloatingPointError if some are not finite."""
    finite = np.isfinite(probabilities).all(axis=1)
    if not finite.all():
        row = int(finite.argmin())
        raise FloatingPointError(
            f"row {row}: the predicted probabilities are not finite. Lower the learning rate, or"
            " standardise the features."
        )
    return probabilities


@contextlib.contextmanager
def retracing_expected() -> Iterator[None]:
    """Keeps TensorFlow from warning of retracing.

    Each fit traces its own network once, which looks to TensorFlow like one function that is traced
    again and again.
    """

    def expected(record: logging.LogRecord) -> bool:
        return "triggered tf.function retracing" not in record.getMessage()

    logger = logging.getLogger("tensorflow")
    logger.addFilter(expected)
    try:
        yield
    finally:
        logger.removeFilter(expected)
