"""CROWDLAB: annotators' labels and a model's probabilities in one weighted mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from neucrowd_tf.aggregation.base import Aggregator, GoldLabels, apply_gold, as_numbers, coin_errors
from neucrowd_tf.aggregation.majority_vote import majority_labels
from neucrowd_tf.aggregation.sums import Shard
from neucrowd_tf.arguments import estimator, fitted
from neucrowd_tf.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from neucrowd_tf.annotations import Annotations

# The paper's weights are at least this, and so is the error of guessing the commonest class.
LEAST = 1e-6


@estimator
class Crowdlab(Aggregator):
    """Weighs a classifier's predicted probabilities against the annotators, each by how much
    better than the commonest class they are.

    Attributes: see `Aggregator`, and
        weights_: `[R]` of the annotators.
        model_weight_: of the classifier.
    `skills_` are how often an annotator agrees with others who labelled the same instances.

    References:
        Goh, Tkachenko and Mueller (2022), CROWDLAB: supervised learning to infer consensus labels
        and quality scores for data with multiple annotators, section 3.
    """

    needs_identities: ClassVar[str | None] = "CROWDLAB"

    weights_: NDArray[np.float64] = fitted()
    model_weight_: float = fitted()

    def fit(
        self,
        annotations: Annotations | ArrayLike,
        gold_labels: GoldLabels = None,
        probabilities: ArrayLike | None = None,
    ) -> Self:
        """Combines annotations and a model.

        Args:
            annotations: `Annotations` with identities, or a dense `[N, R]` matrix with -1 for
                missing.
            gold_labels: see `gold_codes`; they replace what is inferred.
            probabilities: `[N, C]` a classifier's, for instances that it was not trained on (of a
                cross-validation, say), in the order of the annotations' instances and classes.

        Raises:
            IdentitiesError: vote counts only.
            DataError: no annotation, or gold labels or probabilities that cannot be used.
            UsageError: an argument out of range.
        """
        crowd, gold = self._start(annotations, gold_labels)
        model = _probabilities(probabilities, (crowd.num_instances, crowd.num_classes))
        shard = Shard(crowd.one_hot(), crowd.num_classes)
        votes = crowd.vote_counts().astype(np.float64)
        skills = self.skills_ = mutual_agreement(shard, votes)
        said = self._weigh(votes, model, skills)
        total = np.asarray(shard.who @ self.weights_) + self.model_weight_
        told = shard.one_hot @ np.kron(self.weights_[:, None], said)
        self.probas_ = (told + self.model_weight_ * model) / total[:, None]
        self.probas_ /= self.probas_.sum(axis=1, keepdims=True)
        self.priors_ = self.probas_[self.annotated_].mean(axis=0)
        apply_gold(self.probas_, gold)
        self.labels_ = majority_labels(self.probas_, self.ties, self.seed)
        self.errors_ = coin_errors(skills, crowd.num_classes)
        return self

    def _weigh(
        self, votes: NDArray[np.float64], model: NDArray[np.float64], skills: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Sets the weights, and returns `[C said, C]` what a label tells of the classes."""
        size = votes.shape[1]
        # The vote, ties by the model; instances with one label tell nothing of agreement.
        first = majority_labels(votes + model / 2.0, self.ties, self.seed)
        given = votes.sum(axis=1)
        several = given > 1
        labels = first[several]
        right, commonest, wrong = 1.0, 1.0, 0.0
        if several.any():
            right = float((votes[several, labels] / given[several]).mean())
            commonest = float((labels != np.bincount(labels).argmax()).mean())
            wrong = float((model[several].argmax(axis=1) != labels).mean())
        commonest = max(commonest, LEAST)
        self.weights_ = np.maximum(1.0 - (1.0 - skills) / commonest, LEAST)
        self.model_weight_ = float(
            max(1.0 - wrong / commonest, LEAST) * np.sqrt(given[given > 0].mean())
        )
        said = np.full((size, size), (1.0 - right) / max(size - 1, 1))
        np.fill_diagonal(said, right)
        return said


def mutual_agreement(shard: Shard, votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns `[R]` the share of the other labels of an annotator's instances that are the same as
    the annotator's; the annotators' mean where there are none.
    """
    size = shard.num_classes
    same = np.einsum("rcc->r", np.asarray(shard.transposed @ votes).reshape(-1, size, size))
    given = np.asarray(shard.one_hot.sum(axis=0)).reshape(-1, size).sum(axis=1)
    others = shard.who.T @ votes.sum(axis=1) - given
    agreed = np.divide(same - given, others, out=np.full(len(given), np.nan), where=others > 0)
    known = ~np.isnan(agreed)
    return np.where(known, agreed, agreed[known].mean() if known.any() else 1.0 / size)


def _probabilities(values: ArrayLike | None, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Returns a model's probabilities `[N, C]`, or raises DataError."""
    if values is None:
        raise DataError(f"probabilities: expected a model's, of shape {shape}, received none")
    array = as_numbers(values, "probabilities")
    if array.shape != shape or not np.isfinite(array).all() or (array < 0).any():
        raise DataError(
            f"probabilities: expected finite numbers from 0 of shape {shape}, received shape"
            f" {array.shape}"
        )
    total = array.sum(axis=1, keepdims=True)
    if (total <= 0).any():
        row = int(np.flatnonzero(total[:, 0] <= 0)[0])
        raise DataError(f"probabilities: row {row}: expected a positive sum, received 0")
    return array / total
