"""A classifier of texts, or of encoded images: an encoder, and an estimator fitted to vectors."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
from contextlib import AbstractContextManager
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from neucrowd_tf.annotations.votes import Scale, scale_of
from neucrowd_tf.declare.declarations import (
    SEED,
    Constraint,
    check_arguments,
    estimator,
    fitted,
    none,
)
from neucrowd_tf.declare.types import Array, Estimator, Fields, Layer, Network
from neucrowd_tf.encoders.tfidf import TextFeatures
from neucrowd_tf.errors import UsageError
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.reuse import UNSET, NetworkCache, reused
from neucrowd_tf.training.run import Run

ENCODER = none | Constraint(
    "an encoder, such as a SentenceEncoder", lambda value: hasattr(value, "transform")
)
# Methods of fitted estimators that take features.
_OF_FEATURES = ("predict_annotators", "transform", "staged_predict_proba", "generate")


def _makes_sparse(encoder: object) -> bool:
    """Returns whether a fitted encoder makes sparse vectors: `TextFeatures` without a reduction."""
    return getattr(encoder, "components_", ()) is None


def fitted_encoder(encoder: object, items: Array) -> Any:
    """Returns an encoder that is already fitted, else a copy of it that is fitted to the items."""
    if hasattr(encoder, "digest_"):
        return encoder
    return clone(encoder).fit(items)


@estimator
class TextClassifier(CrowdEstimator):
    """An estimator of numbers, fitted to the vectors that an encoder makes of texts.

    With an `ImageEncoder` it takes images.

    Attributes:
        encoder_: the fitted encoder.
        estimator_: the fitted estimator. Its results (names that end in `_`) are also this one's,
            and so are its `predict_annotators` and `transform`, which take texts.

    Example:
        >>> from neucrowd_tf import TextClassifier
        >>> from neucrowd_tf.methods.two_stage import TwoStageClassifier
        >>> model = TextClassifier(estimator=TwoStageClassifier())
        >>> model.fit(texts, annotations).predict(["a text"])  # doctest: +SKIP
    """

    takes_texts: ClassVar[bool] = True

    encoder: Annotated[
        Any,
        ENCODER,
        "makes vectors: a `SentenceEncoder` of texts, an `ImageEncoder` of images; None takes"
        " `TextFeatures`: TF-IDF, which is reduced for networks.",
    ] = dataclasses.field(default=None, kw_only=False)
    estimator: Annotated[
        Any,
        Constraint("an estimator", lambda value: hasattr(value, "fit")),
        "what is fitted to the vectors: a clone of it is.",
    ] = dataclasses.field(kw_only=True)
    seed: Annotated[int, SEED, "of `TextFeatures`, and of an estimator whose own is 0."] = 0

    encoder_: Any = fitted()
    estimator_: Estimator = fitted()

    # The networks that the estimator's fits share within `reused()`.
    _networks = _network = UNSET

    def reused(self, cache: NetworkCache | None = None) -> AbstractContextManager[None]:
        """Lets fits share one compiled network; see `neucrowd_tf.training.reuse.reused`."""
        return reused(self, cache)

    @property
    def distributed(self) -> bool:  # type: ignore[override]
        """Whether the estimator trains on all devices of a strategy."""
        return getattr(self.estimator, "distributed", False)

    @property
    def trains_network(self) -> bool:  # type: ignore[override]
        """Whether the estimator calls callbacks."""
        return getattr(self.estimator, "trains_network", True)

    @property
    def scale(self) -> Scale:
        """The scale of the estimator's classes."""
        return scale_of(self.estimator)

    def _check(self, *arguments: Any) -> TrainingData:
        data = super()._check(*arguments)
        encoder = self.encoder
        takes_sparse = getattr(self.estimator, "takes_sparse", False)
        if encoder is None:
            encoder = TextFeatures(seed=self.seed)
            if takes_sparse:
                encoder.set_params(size=None)
        self.encoder_ = fitted_encoder(encoder, data.features)
        if _makes_sparse(self.encoder_) and not takes_sparse:
            raise UsageError(
                f"encoder: TextFeatures(size=None) is sparse, and {type(self.estimator).__name__}"
                " takes dense vectors. Give it a size, such as 100."
            )
        return data

    def _fit(self, data: TrainingData, run: Run) -> None:
        model = self.estimator_ = clone(self.estimator)
        if getattr(model, "seed", None) == 0:
            model.set_params(seed=self.seed)
        if self._sparse:
            return self._fit_sparse(data, run)
        validation = data.named_validation
        if validation is not None:
            validation = (self.encoder_.transform(validation[0]), *validation[1:])
        vectors = self.encoder_.transform(data.features)
        shared = contextlib.nullcontext()
        if self._networks is not None and hasattr(model, "reused"):
            shared = model.reused(self._networks)
        with shared:
            model.fit(vectors, data.annotations, validation, run=run)
        self.rows_ = data.rows[getattr(model, "rows_", slice(None))]

    @property
    def _sparse(self) -> bool:
        """Whether the estimator takes TF-IDF as a sparse matrix."""
        return _makes_sparse(self.encoder_) and getattr(self.estimator_, "takes_sparse", False)

    def _fit_sparse(self, data: TrainingData, run: Run) -> None:
        """Fits the estimator; other estimators' `fit` makes sparse features dense."""
        model = self.estimator_
        encode = self.encoder_.transform
        check_arguments(model)
        model._check_crowd(data.annotations)
        vectors = encode(data.features)
        model.classes_ = self.classes_
        model.feature_names_in_ = None
        model.rescaling_ = None
        model.feature_shape_ = vectors.shape[1:]
        model.n_features_in_ = vectors.shape[1]
        validation = data.validation
        if validation is not None:
            validation = (encode(validation[0]), validation[1])
        model._fit(dataclasses.replace(data, features=vectors, validation=validation), run)
        self.rows_ = data.rows

    def projection(self) -> Array:
        """Returns `[V + W, k]` from TF-IDF to what `inference_model` takes."""
        if self._sparse:
            return self.estimator_.head_.folded()[0]
        return self.encoder_.components_

    def _predict_proba(self, features: Array) -> Array:
        vectors = self.encoder_.transform(features)
        if self._sparse:
            return self.estimator_.head_.predict_proba(vectors)
        return self.estimator_.predict_proba(vectors)

    def _of_features(self, name: str, features: ArrayLike) -> Any:
        vectors = self.encoder_.transform(self._check_fitted(features))
        return getattr(self.estimator_, name)(vectors)

    def __getattr__(self, name: str) -> Any:
        """Returns a result of the fitted estimator, or a method of it that takes texts."""
        if "estimator_" in vars(self) and not name.startswith("_"):
            if name in _OF_FEATURES and hasattr(self.estimator_, name):
                return functools.partial(self._of_features, name)
            if name.endswith("_"):
                return getattr(self.estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def evaluation(self, dataset: Any) -> Fields:
        """Returns what the estimator's `evaluation` says of a `CrowdDataset` of texts."""
        if not hasattr(self.estimator_, "evaluation"):
            return {}
        encode = self.encoder_.transform
        test = dataclasses.replace(dataset.test, features=encode(dataset.test.features))
        rows = np.flatnonzero(dataset.annotations.annotated)  # those that the estimator was given
        encoded = dataset.replace(
            features=encode(dataset.features[rows]),
            annotations=dataset.annotations[rows],
            truth=None if dataset.truth is None else dataset.truth[rows],
            test=test,
            validation=None,
        )
        return dict(self.estimator_.evaluation(encoded))

    def _inference_model(self) -> Network:
        if not self._sparse:
            return self.estimator_.inference_model()
        model = copy.copy(self.estimator_)
        model.head_ = model.head_.of_logits()
        model.feature_shape_ = (len(self.classes_),)
        return model.inference_model()

    def text_layer(self) -> Layer:
        """Returns the layer from texts or images to vectors; None of a `SentenceEncoder`."""
        if self._sparse:
            return self.encoder_.layer(self.projection())
        return self.encoder_.layer()
