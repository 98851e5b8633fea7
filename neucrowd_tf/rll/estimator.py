"""RLL: the estimator that puts section III together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neucrowd_tf.errors import UsageError
from neucrowd_tf.registry import register_method
from neucrowd_tf.rll.confidence import (
    bayesian_confidence,
    beta_parameters,
    class_prior,
    mle_confidence,
    subsample_annotations,
)
from neucrowd_tf.training.arguments import check_number, check_whole
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.representation import DEFAULT_CS, RepresentationEstimator
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PAPER = (
    "Xu, Ding, Tang, Yang, Huang, Liu: Learning Effective Embeddings From Crowdsourced Labels: An"
    " Educational Case Study"
)
_SPACE: dict[str, tuple[Any, ...]] = {
    "k": (2, 3, 4, 5),
    "eta": (2.0, 5.0, 10.0, 20.0),
    "l2": (1e-4, 1e-3, 1e-2),
    "hidden_units": ((64, 32), (128, 64), (32, 16)),
    "dropout": (0.0, 0.2, 0.4),
}


@register_method(
    "rll_bayesian",
    summary="RLL with the Beta posterior mean as label confidence",
    defaults={"confidence": "bayesian"},
    space={**_SPACE, "prior_mass": (0.5, 1.0, 2.0, 5.0)},
    paper=_PAPER,
)
@register_method(
    "rll_mle",
    summary="RLL with the share of agreeing votes as label confidence",
    defaults={"confidence": "mle"},
    space=_SPACE,
    paper=_PAPER,
)
@register_method(
    "rll",
    summary=(
        "RLL: embedding from groups of two positive and k negative examples, labels by majority"
        " vote"
    ),
    defaults={"confidence": "majority"},
    space=_SPACE,
    paper=_PAPER,
)
class RLL(RepresentationEstimator):
    """Embedding from groups of a positive pair and k negatives, each example weighted by the
    confidence in its label.

    Works on annotations and on vote counts alone, for two classes (as in the paper) and for more:
    then each class is the positive one in turn.

    Args:
        confidence: "bayesian" (eq. 2), "mle" (eq. 1) or "majority" (every label counts fully: plain
            RLL).
        k: negatives in a group.
        eta: smoothing of the softmax.
        weight_inside: whether the confidence multiplies inside the exponent (eq. 3), or outside it.
        similarity: "cosine" (section III-A) or "euclidean".
        class_prior: `[C]` prior in the order of the classes; by default the share of each consensus
            label in training.
        prior_mass: how many votes the prior counts as.
        alpha, beta: with two classes, Beta(alpha, beta) for the positive label instead of the class
            prior.
        annotators_per_instance: d, how many of each instance's annotations are used, drawn by the
            seed; None uses all.
        encoder: a Keras model to use as embedding network in place of fully connected layers; it is
            copied, not trained itself.
        hidden_units, activation, dropout, l2, initializer: the fully connected layers.
        optimizer, learning_rate: by Keras' name.
        batch_size: groups a step.
        steps_per_epoch, epochs, patience, monitor: how long to train and which validation figure
            ("auc", "accuracy" or "log_loss") chooses the epoch.
        standardise: whether features are standardised on the training instances.
        Cs: what the downstream logistic regression's C is chosen from.
        validation_fraction: the share held out when `fit` gets no validation data.
        seed: draws everything that is random.

    Attributes:
        confidence_: `[n]` confidence in the labels of the instances that the embedding was trained
            on (without held-out ones).
        prior_: `[C]` the class prior that was used, or None unless `confidence` is "bayesian".
        model_, history_, n_iter_, best_epoch_, train_labels_, rows_: see `RepresentationEstimator`.

    References:
        RLL, section III.
    """

    confidence_: NDArray[np.float32]
    prior_: NDArray[np.float64] | None

    def __init__(
        self,
        confidence: Literal["bayesian", "mle", "majority"] = "bayesian",
        k: int = 3,
        eta: float = 10.0,
        weight_inside: bool = True,
        similarity: Literal["cosine", "euclidean"] = "cosine",
        class_prior: Sequence[float] | None = None,
        prior_mass: float = 1.0,
        alpha: float | None = None,
        beta: float | None = None,
        annotators_per_instance: int | None = None,
        encoder: Any = None,
        hidden_units: Sequence[int] = (64, 32),
        activation: str = "sigmoid",
        dropout: float = 0.2,
        l2: float = 1e-2,
        initializer: Literal["glorot", "normal"] = "glorot",
        optimizer: str = "adam",
        learning_rate: float = 1e-3,
        batch_size: int = 128,
        steps_per_epoch: int = 20,
        epochs: int = 20,
        patience: int | None = None,
        monitor: Literal["auc", "accuracy", "log_loss"] = "auc",
        standardise: bool = True,
        Cs: Sequence[float] = DEFAULT_CS,
        validation_fraction: float = 0.2,
        seed: int = 0,
    ) -> None:
        self.confidence = confidence
        self.k = k
        self.eta = eta
        self.weight_inside = weight_inside
        self.similarity = similarity
        self.class_prior = class_prior
        self.prior_mass = prior_mass
        self.alpha = alpha
        self.beta = beta
        self.annotators_per_instance = annotators_per_instance
        self.encoder = encoder
        self.hidden_units = hidden_units  # type: ignore[assignment]
        self.activation = activation
        self.dropout = dropout
        self.l2 = l2
        self.initializer = initializer
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.steps_per_epoch = steps_per_epoch
        self.epochs = epochs
        self.patience = patience
        self.monitor = monitor
        self.standardise = standardise
        self.Cs = Cs  # type: ignore[assignment]
        self.validation_fraction = validation_fraction
        self.seed = seed

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.confidence not in ("bayesian", "mle", "majority"):
            raise UsageError(
                "confidence: expected 'bayesian', 'mle' or 'majority', received"
                f" {self.confidence!r}"
            )
        check_whole("k", self.k)
        check_whole("annotators_per_instance", self.annotators_per_instance, optional=True)
        check_number("eta", self.eta, least=0)
        check_number("prior_mass", self.prior_mass, above=0)
        for name in ("alpha", "beta"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), above=0)
        if self.class_prior is not None:
            self._class_prior()

    def _class_prior(self) -> NDArray[np.float64]:
        try:
            prior = np.asarray(self.class_prior, dtype=np.float64)
        except (TypeError, ValueError):
            prior = np.zeros(())
        if prior.ndim != 1:
            raise UsageError(
                f"class_prior: expected a list of probabilities, received {self.class_prior!r}"
            )
        return prior

    def _fit(self, data: TrainingData, run: Run) -> None:
        if self.annotators_per_instance is not None:
            fewer = subsample_annotations(
                data.annotations, self.annotators_per_instance, [self.seed, 0xD]
            )
            data = dataclasses.replace(data, annotations=fewer)
        super()._fit(data, run)

    def _confidence(
        self, votes: NDArray[np.int32], labels: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Returns the confidence in each label, `[N]` (section III-B)."""
        self.prior_ = None
        if self.confidence == "majority":
            return np.ones(len(labels), dtype=np.float32)
        if self.confidence == "mle":
            return mle_confidence(votes, labels)
        num_classes = votes.shape[1]
        prior = (
            class_prior(labels, num_classes) if self.class_prior is None else self._class_prior()
        )
        if len(prior) != num_classes:
            raise UsageError(
                f"class_prior: expected {num_classes} probabilities, received {len(prior)}"
            )
        parameters = beta_parameters(prior, mass=self.prior_mass, alpha=self.alpha, beta=self.beta)
        self.prior_ = parameters[0] / (parameters[0] + parameters[1])
        return bayesian_confidence(votes, labels, parameters)

    def _trainer(
        self, features: NDArray[np.float32], data: TrainingData, labels: NDArray[np.int64], run: Run
    ) -> tuple[Any, Any]:
        from neucrowd_tf.nn.encoders import make_optimizer
        from neucrowd_tf.training.tuplet_model import TupletModel
        from neucrowd_tf.training.tuplets import TupletIndex, uniform_batches

        self.confidence_ = self._confidence(data.annotations.vote_counts(), labels)
        model = TupletModel(
            self._make_encoder(features.shape[1:], self.seed),
            features,
            TupletIndex(labels, self.k),
            self.confidence_,
            eta=self.eta,
            similarity_name=self.similarity,
            weight_inside=self.weight_inside,
        )
        optimizer = make_optimizer(self.optimizer, self.learning_rate)
        model.compile(
            optimizer=optimizer,
            steps_per_execution=run.steps_per_call(self.steps_per_epoch),
            jit_compile=False,
        )
        return model, uniform_batches(self.seed, self.batch_size, self.k + 2)
