"""RLL: the estimator that puts section III together.

Xu, Ding, Tang, Yang, Huang and Liu: Learning Effective Embeddings From Crowdsourced Labels: An
Educational Case Study.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from neucrowd_tf.declare.declarations import estimator, number, one_of, whole
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.settings import settings_in
from neucrowd_tf.declare.types import Codes32, Fields, Floats32, Indices, Network
from neucrowd_tf.methods.rll.confidence import (
    bayesian_confidence,
    beta_parameters,
    class_prior,
    mle_confidence,
    subsample_annotations,
)
from neucrowd_tf.training.batches import uniform_batches
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.representation import (
    ENCODER_SPACE,
    EQUAL_PRESETS,
    EmbeddingData,
    TupletEstimator,
)
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    from neucrowd_tf.datasets import CrowdDataset


_ANNOTATORS = 0xD  # separates the draw of annotations from others of the seed


@estimator
class RLL(TupletEstimator):
    """Embedding from groups of a positive pair and k negatives, weighted by label confidence.

    Works on annotations and on vote counts alone, for two classes (as in the paper) and for more:
    then each class is the positive one in turn.

    Attributes:
        confidence_: `[n]` confidence in the labels of the instances that the embedding was trained
            on (without held-out ones).
        model_, history_, n_iter_, best_epoch_, train_labels_, rows_, kept_: see
            `RepresentationEstimator`.

    References:
        RLL, section III.
    """

    confidence: Annotated[
        str,
        one_of("bayesian", "mle", "majority"),
        '"bayesian" (eq. 2), "mle" (eq. 1) or "majority" (every label counts fully: plain RLL).',
    ] = dataclasses.field(default="bayesian", kw_only=False)
    k: Annotated[int, whole(1), "number of negatives per group."] = 3
    prior_mass: Annotated[
        float,
        number(above=0),
        "number of votes that the prior, the shares of the consensus labels, counts as.",
    ] = 1.0
    alpha: Annotated[
        float | None,
        number(above=0),
        "with two classes, Beta(alpha, beta) for the positive label instead of the class prior.",
    ] = None
    beta: Annotated[float | None, number(above=0), "see `alpha`."] = None
    annotators_per_instance: Annotated[
        int | None,
        whole(1),
        "d, the number of annotations used per instance, drawn at random; None uses all.",
    ] = None

    def _fit(self, data: TrainingData, run: Run) -> None:
        if self.annotators_per_instance is not None:  # the d of table III
            drawn = [self.seed, _ANNOTATORS]
            fewer = subsample_annotations(data.annotations, self.annotators_per_instance, drawn)
            data = dataclasses.replace(data, annotations=fewer)
        super()._fit(data, run)

    @property
    def _negatives(self) -> int:
        return self.k

    def _confidence(self, votes: Codes32, labels: Indices) -> Floats32:
        """Returns the confidence in each label, `[N]`.

        References:
            RLL, section III-B, eqs. (1) and (2).
        """
        if self.confidence == "majority":
            return np.ones(len(labels), dtype=np.float32)
        if self.confidence == "mle":
            return mle_confidence(votes, labels)
        prior = class_prior(labels, votes.shape[1])
        parameters = beta_parameters(prior, mass=self.prior_mass, alpha=self.alpha, beta=self.beta)
        return bayesian_confidence(votes, labels, parameters)

    def evaluation(self, dataset: CrowdDataset) -> Fields:
        """Returns means of the label confidence for evaluation.json.

        Returns:
            `confidence`, over all labels; `by_class`, over each consensus label; with true labels
                of the training instances also `confidence_right` and `confidence_wrong`, over right
                and over wrong consensus labels (None without any).
        """
        labels = self.train_labels_[self.kept_]
        by_class = {}
        for code in np.unique(labels):
            mean = self.confidence_[labels == code].mean()
            by_class[str(self.classes_.tolist()[code])] = float(mean)
        figures: Fields = {
            "confidence": float(self.confidence_.mean()),
            "by_class": {"confidence": by_class},
        }
        if dataset.truth is not None:
            truth = dataset.truth[self.rows_[self.kept_]]
            for name, rows in (
                ("confidence_right", labels == truth),
                ("confidence_wrong", (labels != truth) & (truth >= 0)),
            ):
                figures[name] = None
                if rows.any():
                    figures[name] = float(self.confidence_[rows].mean())
        return figures

    def _model_and_batches(self, data: EmbeddingData) -> tuple[Network, Network]:
        """Returns the grouping-based network of eq. (3), and batches of groups."""
        self.confidence_ = self._confidence(data.annotations.vote_counts(), data.labels)
        encoder = self._make_encoder(data.features.shape[1:], self.seed)
        model = self._model(encoder, data.features, data.labels, self.confidence_)
        return model, uniform_batches(self.seed, self.batch_size, self.k + 2)


_SETTINGS = settings_in(Path(__file__).with_name("presets.toml"))
for _name, _variant in _SETTINGS["variants"].items():
    _space = {**ENCODER_SPACE, **_SETTINGS["space"], **_variant.pop("space", {})}
    register_method(_name, presets=EQUAL_PRESETS, space=_space, **_variant)(RLL)
