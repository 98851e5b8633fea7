"""A crowd's labels of held-out instances, and the two criteria that rank predictions by them."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.sparse import csr_matrix

from neucrowd_tf.aggregation import crowd_and_classifier
from neucrowd_tf.aggregation.base import Aggregator
from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.aggregation.ordinal import OrdinalConsensus
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.agreement import Scale
from neucrowd_tf.declare.types import Floats, Indices
from neucrowd_tf.errors import quietly, warn
from neucrowd_tf.io.values import numbers_of
from neucrowd_tf.training.validation import consensus_labels

_TINY = 1e-12
# Annotators' matrices are shrunk to the crowd's mean matrix by this many pseudo-counts per row.
POOLING = 3.0
FOLDS = 5
ROUNDS = 3  # in each, posteriors and then annotators' matrices are computed


def weighed_consensus(annotations: Annotations, seed: int, scale: Scale = "nominal") -> Indices:
    """Returns consensus labels `[N]`, class codes.

    Args:
        annotations: of N instances. Of vote counts the consensus is the majority's.
        seed: breaks ties.
        scale: "nominal" takes Dawid and Skene's labels, "ordinal" those of `OrdinalConsensus`.
    """
    names = list(map(str, annotations.class_names.tolist()))
    unordered = len(names) > 2 and numbers_of(names) is None and names == sorted(names)
    if scale == "ordinal" and unordered:
        warn(
            f"scale='ordinal': the order of classes is {' < '.join(names)}. If it is not from"
            " the least to the most, name it with --classes or class_names=.",
            stacklevel=2,
        )
    if not annotations.has_identities:
        return consensus_labels(annotations, seed)
    with quietly():  # labels settle long before the last digits of the objective
        aggregator: Aggregator = DawidSkene(seed=seed)
        if scale == "ordinal":
            aggregator = OrdinalConsensus(seed=seed)
        return np.asarray(aggregator.fit(annotations).labels_, dtype=np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """A crowd's labels of N held-out instances.

    Attributes:
        one_hot: `[N, R * C]` label counts.
        instances: `[A]` codes of the labels' instances.
        annotators: `[A]` codes, all 0 for vote counts.
        labels: `[A]` class codes.
        weights: `[A]` how often the label was given (1 except for vote counts).
        consensus: `[N]` Dawid and Skene's labels, or the majority's.
        gold: `[N]` true class codes, -1 if unknown.
        folds: `[N]` each instance's fold in a cross-validation of annotators' matrices.
        num_classes: C.
    """

    one_hot: csr_matrix
    instances: Indices
    annotators: Indices
    labels: Indices
    weights: Floats
    consensus: Indices
    gold: Indices
    folds: Indices
    num_classes: int

    @classmethod
    def of(
        cls, annotations: Annotations, consensus: Indices, seed: int, gold: Indices | None = None
    ) -> Evidence:
        """Returns the evidence of annotations.

        Args:
            annotations: of N instances.
            consensus: `[N]` class codes.
            seed: draws the folds.
            gold: `[N]` true class codes, -1 if unknown; None without any.
        """
        size = annotations.num_instances
        folds = np.random.default_rng([seed, 0xC401]).permutation(size) % FOLDS
        one_hot = crowd_and_classifier.evidence(annotations)
        cells = one_hot.tocoo()
        annotators, labels = np.divmod(cells.col.astype(np.int64), annotations.num_classes)
        if gold is None:
            gold = np.full(size, -1)
        weights = cells.data.astype(np.float64)
        return cls(
            one_hot,
            cells.row.astype(np.int64),
            annotators,
            labels,
            weights,
            consensus,
            gold,
            folds,
            annotations.num_classes,
        )

    def errors(self, probas: Floats) -> Floats:
        """Returns annotators' matrices `[R, C true, C observed]` under probabilities `[N, C]`.

        An instance whose probabilities are all zero is left out.
        """
        return crowd_and_classifier.error_matrices(self.one_hot, probas, pooled)

    def posterior(self, predicted: Indices) -> crowd_and_classifier.Posterior:
        """Returns the posterior of the true classes given the labels and a model's predictions.

        The predictions count as one more annotator. Labels alone would make their consensus look
        too reliable: on sparse tables it seemed right for 80% of the instances and was for 65%.

        Args:
            predicted: `[N]` held-out class codes.

        References:
            Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates.
        """
        size = self.num_classes
        guesses = np.eye(size)[predicted]

        def prior(probas: Floats) -> Floats:
            shares = (probas.sum(axis=0) + 1) / (len(probas) + size)
            model = probas.T @ guesses + 1 / size
            model /= model.sum(axis=1, keepdims=True)
            return shares * model[:, predicted].T

        start = np.eye(size)[self.consensus]
        return crowd_and_classifier.alternate(
            self.one_hot, prior, start, pseudo_counts=pooled, max_iter=ROUNDS
        )


def pooled(counts: Floats) -> Floats:
    """Returns pseudo-counts that shrink annotators' matrices to the crowd's mean matrix."""
    size = counts.shape[-1]
    mean = counts.sum(axis=0) + 1.0 / size + np.eye(size)
    return POOLING * mean / mean.sum(axis=1, keepdims=True)


def determinant(probabilities: Floats, evidence: Evidence) -> float:
    """Returns the log absolute determinant of the table of predicted classes and labels.

    Half a label is added to each cell. The determinant does not depend on how often a class is
    predicted.

    References:
        Kong (2020), Dominantly truthful multi-task peer prediction with a constant number of tasks.
    """
    size = evidence.num_classes
    guesses = probabilities.argmax(axis=1)[evidence.instances]
    table = np.bincount(guesses * size + evidence.labels, evidence.weights, size * size)
    joint = table.reshape(size, size) / table.sum() + 0.5 / evidence.weights.sum()
    return float(np.linalg.slogdet(joint / joint.sum())[1])


def label_log_likelihood(probabilities: Floats, evidence: Evidence) -> float:
    """Returns the mean log likelihood of a label, sum_c p(c) A[c, label].

    Each annotator's matrix A comes from the predictions for the other folds' instances.
    """
    logs = np.zeros(len(evidence.labels))
    for fold in range(FOLDS):
        held_out = evidence.folds == fold
        matrices = evidence.errors(probabilities * ~held_out[:, None])
        chosen = held_out[evidence.instances]
        emitted = matrices[evidence.annotators[chosen], :, evidence.labels[chosen]]
        likelihoods = (probabilities[evidence.instances[chosen]] * emitted).sum(axis=1)
        logs[chosen] = np.log(likelihoods + _TINY)
    return float(np.average(logs, weights=evidence.weights))


CRITERIA = (determinant, label_log_likelihood)
