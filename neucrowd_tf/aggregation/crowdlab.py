"""CROWDLAB: annotators' labels and a classifier's probabilities in one weighted mean."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from neucrowd_tf.aggregation.base import (
    Aggregator,
    Codes,
    GoldLabels,
    apply_gold,
    as_numbers,
    coin_errors,
    with_gold,
)
from neucrowd_tf.aggregation.sums import Shard
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.codes import axis_names
from neucrowd_tf.annotations.statistics import leave_one_out_agreement
from neucrowd_tf.annotations.votes import majority_labels
from neucrowd_tf.declare.declarations import estimator, fitted
from neucrowd_tf.declare.types import Array, Floats
from neucrowd_tf.errors import DataError
from neucrowd_tf.names import listed, without
from neucrowd_tf.saving.transaction import transaction

# The paper's weights are at least this, and so is the error of guessing the commonest class.
LEAST = 1e-6


@estimator
class Crowdlab(Aggregator):
    """Weighs a classifier's probabilities against the annotators' labels.

    The classifier and each annotator count by how much better they are than always guessing the
    commonest class. The consensus begins as the majority vote, whose ties the classifier breaks.
    The most probable class under these weights is the label, and the weights that follow from the
    labels give `probas_` (`consensus_method="best_quality"`, the default of the authors' package).

    Attributes: see `Aggregator`, and
        quality_: `[N]` the probability that each label is right.
        weights_: `[R]` of the annotators.
        model_weight_: of the classifier.
    `skills_` are how often an annotator agrees with others who labelled the same instances; without
    such instances it is the annotators' mean.

    References:
        Goh, Tkachenko and Mueller (2022), CROWDLAB: supervised learning to infer consensus labels
        and quality scores for data with multiple annotators, section 3.

    Example:
        >>> Crowdlab().fit([[0, 0], [1, 0]], probabilities=[[0.9, 0.1], [0.2, 0.8]]).labels_
        array([0, 1])
    """

    quality_: Floats = fitted()
    weights_: Floats = fitted()
    model_weight_: float = fitted()

    def fit(
        self,
        annotations: Annotations | ArrayLike,
        gold_labels: GoldLabels = None,
        probabilities: ArrayLike | None = None,
    ) -> Self:
        """Combines annotations and a classifier's probabilities.

        Args:
            annotations: `Annotations` with identities, or a dense `[N, R]` matrix with -1 for
                missing.
            gold_labels: see `gold_codes`; they replace what is inferred.
            probabilities: `[N, C]` a classifier's, for instances that it was not trained on (of a
                cross-validation, say), in the order of the annotations' instances and classes, or a
                frame with their names (columns may be `p_<class>`).

        Raises:
            IdentitiesError: vote counts only.
            DataError: no annotation, or gold labels or probabilities that cannot be used.
            UsageError: an argument out of range.
        """
        with transaction(self):
            self._fit_both(annotations, gold_labels, probabilities)
        return self

    def _fit_both(
        self,
        annotations: Annotations | ArrayLike,
        gold_labels: GoldLabels,
        probabilities: ArrayLike | None,
    ) -> None:
        """Sets the results of annotations and a classifier's probabilities."""
        crowd, gold = self._start(annotations, gold_labels)
        is_named = crowd.class_names.tolist() != list(range(crowd.num_classes))
        probabilities = _by_name(probabilities, "index", crowd.instance_names, crowd.named)
        probabilities = _by_name(probabilities, "columns", crowd.class_names, is_named)
        model = _probabilities(probabilities, (crowd.num_instances, crowd.num_classes))
        shard = Shard(crowd.one_hot(), crowd.num_classes)
        votes = crowd.vote_counts().astype(np.float64)
        agreed = leave_one_out_agreement(crowd)
        others = ~np.isnan(agreed)
        if others.any():
            mean = agreed[others].mean()
        else:
            mean = 1.0 / crowd.num_classes
        skills = self.skills_ = np.where(others, agreed, mean)
        # Deviation: CROWDLAB (cleanlab), ties. Paper: Ties that the classifier leaves are broken by
        # the rarest class, the annotators' agreement, then by chance. Here: `ties` decides. Why:
        # One named rule everywhere. Effect: none, but for items with equal votes and probabilities.
        vote = majority_labels(votes + model / 2.0, self.ties, self.seed)
        probas = self._combine(shard, votes, model, skills, vote)
        rows = np.arange(len(vote))
        labels = np.where(probas[rows, vote] == probas.max(axis=1), vote, probas.argmax(axis=1))
        self.probas_ = self._combine(shard, votes, model, skills, labels)
        self.probas_ /= self.probas_.sum(axis=1, keepdims=True)
        self.priors_ = self.probas_[self.annotated_].mean(axis=0)
        self.labels_ = with_gold(labels, gold)
        apply_gold(self.probas_, gold)
        self.quality_ = self.probas_[rows, self.labels_]
        self.errors_ = coin_errors(skills, crowd.num_classes)

    def _combine(
        self, shard: Shard, votes: Floats, model: Floats, skills: Floats, labels: Codes
    ) -> Floats:
        """Sets the weights that follow from consensus labels `[N]`; returns the means `[N, C]`."""
        size = votes.shape[1]
        num_labels = votes.sum(axis=1)
        several = num_labels > 1  # one label says nothing about agreement
        right = 1.0
        commonest = 1.0
        wrong = 0.0
        if several.any():
            consensus = labels[several]
            right = float((votes[several, consensus] / num_labels[several]).mean())
            commonest = float((consensus != np.bincount(consensus).argmax()).mean())
            wrong = float((model[several].argmax(axis=1) != consensus).mean())
        commonest = max(commonest, LEAST)
        self.weights_ = np.maximum(1.0 - (1.0 - skills) / commonest, LEAST)
        self.model_weight_ = float(
            max(1.0 - wrong / commonest, LEAST) * np.sqrt(num_labels[num_labels > 0].mean())
        )
        by_label = coin_errors(np.array([right]), size)[0]
        total = (shard.annotator_weights @ self.weights_) + self.model_weight_
        crowd = shard.one_hot @ np.kron(self.weights_[:, None], by_label)
        return (crowd + self.model_weight_ * model) / total[:, None]


def _by_name(values: Any, axis: str, names: Array, is_named: bool) -> Any:
    """Returns a frame with its rows or columns in the order of names, and anything else as it is.

    Names are compared as text, and columns may also be named as in predictions.csv.

    Args:
        values: a frame, or what has no names.
        axis: "index" or "columns".
        names: of the instances or the classes.
        is_named: whether these are names, rather than numbers of rows or of classes.

    Raises:
        DataError: the frame has other names.
    """
    theirs = axis_names(values, axis)
    if theirs is None:
        return values
    wanted = list(map(str, names.tolist()))
    present = list(map(str, theirs))
    if axis == "columns" and {*present} == {f"p_{name}" for name in wanted}:
        present = [name.removeprefix("p_") for name in present]
    if present == wanted:
        return values
    if sorted(present) == sorted({*wanted}):
        return values.set_axis(present, axis=axis).reindex(**{axis: wanted})
    if not is_named:
        return values
    sides = {"index": ("row", "instances"), "columns": ("column", "classes")}
    side, of_crowd = sides[axis]
    other = (without(present, wanted) or present)[0]
    raise DataError(
        f"probabilities: {side} {other!r} is not one of the {of_crowd}, or is there twice"
        f" ({listed(wanted, 5, repr)}). Name each {side} so, or pass an array in this order."
    )


def _probabilities(values: ArrayLike | None, shape: tuple[int, int]) -> Floats:
    """Returns a classifier's probabilities `[N, C]`, or raises DataError."""
    array = as_numbers(values, "probabilities")
    total = array.sum(axis=-1, keepdims=True)
    if array.shape != shape or not np.isfinite(total).all() or (array < 0).any() or not total.all():
        raise DataError(
            f"probabilities: expected a model's, of shape {shape}: numbers from 0, not all 0 in a"
            f" row; received shape {array.shape}"
        )
    return array / total
