"""How well held-out predictions do, judged by the crowd's labels alone.

Each criterion takes predictions `[N, C]` for instances that the model had not seen, and those
instances' annotations; higher is better. `results/choice.md` compares them by the truth.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import rankdata

from neucrowd_tf.annotations import Annotations

Array = NDArray[np.float64]
_TINY = 1e-12
# Annotators' matrices are drawn to the crowd's mean matrix with so many pseudo-counts a row.
POOLING = 3.0
PARTS = 5
HOTTEST = 10.0


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What the crowd said of N held-out instances, label by label.

    Attributes:
        instances, annotators, labels: `[A]` codes; annotators are all 0 where nobody knows them.
        weights: `[A]` how often the label was given (1 but for vote counts).
        consensus: `[N]` Dawid and Skene's labels, or the majority's.
        parts: `[N]` in which part of a cross-validation of annotators' matrices an instance is.
        num_instances, num_annotators, num_classes: N, R and C.
    """

    instances: NDArray[np.int64]
    annotators: NDArray[np.int64]
    labels: NDArray[np.int64]
    weights: Array
    consensus: NDArray[np.int64]
    parts: NDArray[np.int64]
    num_instances: int
    num_annotators: int
    num_classes: int

    @classmethod
    def of(cls, annotations: Annotations, consensus: NDArray[np.int64], seed: int) -> Evidence:
        """Collects the labels of annotations."""
        count = annotations.num_instances
        parts = np.random.default_rng([seed, 0xC401]).permutation(count) % PARTS
        triples: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
        if annotations.has_identities:
            triples = (annotations.instances, annotations.annotators, annotations.labels)
            weights, people = np.ones(len(annotations.labels)), annotations.num_annotators
        else:
            votes = annotations.vote_counts()
            rows, labels = np.nonzero(votes)
            triples = (rows, np.zeros_like(rows), labels)
            weights, people = votes[rows, labels].astype(np.float64), 1
        instances, annotators, labels = (np.asarray(one, dtype=np.int64) for one in triples)
        return cls(
            *(instances, annotators, labels, weights, np.asarray(consensus), parts),
            *(count, people, annotations.num_classes),
        )

    def matrices(self, beliefs: Array, used: NDArray[np.bool_] | None = None) -> Array:
        """Returns annotators' matrices `[R, C, C]` (true class, label) as beliefs `[N, C]` in the
        true classes have them, smoothed towards the crowd's mean matrix.

        Args:
            beliefs: probabilities of the true classes.
            used: `[N]` the instances to count; None for all.
        """
        size = self.num_classes
        weights = self.weights if used is None else self.weights * used[self.instances]
        cells = self.annotators * size + self.labels
        counts = np.stack(
            [
                np.bincount(
                    cells,
                    weights * beliefs[self.instances, true],
                    minlength=self.num_annotators * size,
                ).reshape(-1, size)
                for true in range(size)
            ],
            axis=1,
        )
        mean = counts.sum(axis=0) + 1.0 / size + np.eye(size)
        mean /= mean.sum(axis=1, keepdims=True)
        smooth = counts + POOLING * mean
        return np.asarray(smooth / smooth.sum(axis=2, keepdims=True))

    def likelihoods(self, matrices: Array) -> Array:
        """Returns `[N, C]` log probabilities of each instance's labels given its true class."""
        size = self.num_classes
        logs = np.log(matrices)[self.annotators, :, self.labels] * self.weights[:, None]
        return np.stack(
            [np.bincount(self.instances, logs[:, c], self.num_instances) for c in range(size)],
            axis=1,
        )


def heated(probabilities: Array, temperature: float) -> Array:
    """Returns `p^(1/T)`, scaled to sum to one."""
    logits = np.log(np.maximum(probabilities, _TINY)) / temperature
    return np.asarray(np.exp(logits - logsumexp(logits, axis=1, keepdims=True)))


def rebalanced(probabilities: Array) -> Array:
    """Returns probabilities divided by their mean over the rows: as if classes were met equally
    often.
    """
    divided = probabilities / np.maximum(probabilities.mean(axis=0), 1e-6)
    return np.asarray(divided / divided.sum(axis=1, keepdims=True))


# --------------------------------------------------------------------------- agreement


def consensus_agreement(probabilities: Array, evidence: Evidence) -> float:
    """Returns the share of instances whose prediction is the consensus label."""
    return float((probabilities.argmax(axis=1) == evidence.consensus).mean())


def label_agreement(probabilities: Array, evidence: Evidence) -> float:
    """Returns the share of single labels that are the predicted class."""
    right = probabilities.argmax(axis=1)[evidence.instances] == evidence.labels
    return float(np.average(right, weights=evidence.weights))


def weighted_agreement(probabilities: Array, evidence: Evidence) -> float:
    """Returns the same, each label weighted with its annotator's log odds of agreeing with the
    consensus (none for those who do no better than chance).
    """
    agrees = (evidence.labels == evidence.consensus[evidence.instances]) * evidence.weights
    right = np.bincount(evidence.annotators, agrees, evidence.num_annotators) + 1.0
    seen = np.bincount(evidence.annotators, evidence.weights, evidence.num_annotators) + 2.0
    odds = np.log(right / (seen - right) * (evidence.num_classes - 1))
    weights = evidence.weights * np.maximum(odds, 0.0)[evidence.annotators]
    hits = probabilities.argmax(axis=1)[evidence.instances] == evidence.labels
    return float(hits @ weights / max(weights.sum(), _TINY))


# --------------------------------------------------------------------------- information


def _joint(probabilities: Array, evidence: Evidence) -> Array:
    """Returns the joint table `[C, C]` of predicted classes and labels."""
    size = evidence.num_classes
    guesses = probabilities.argmax(axis=1)[evidence.instances]
    table = np.bincount(guesses * size + evidence.labels, evidence.weights, size * size)
    return np.asarray(table.reshape(size, size) / table.sum())


def mutual_information(probabilities: Array, evidence: Evidence) -> float:
    """Returns the mutual information of predicted classes and labels, in nats."""
    joint = _joint(probabilities, evidence)
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())


def determinant(probabilities: Array, evidence: Evidence) -> float:
    """Returns the logarithm of the absolute determinant of that table, half a label added to each
    cell: blind to how often a class is predicted.

    References:
        Kong (2020), Dominantly truthful multi-task peer prediction with a constant number of tasks.
    """
    total = evidence.weights.sum()
    joint = _joint(probabilities, evidence) + 0.5 / total
    return float(np.linalg.slogdet(joint / joint.sum())[1])


# --------------------------------------------------------------------------- likelihood


def label_log_likelihood(probabilities: Array, evidence: Evidence) -> float:
    """Returns the mean log likelihood of a label, sum_c p(c) A[c, label]: each annotator's matrix A
    comes from the predictions for the instances of other parts.
    """
    found = np.zeros(len(evidence.labels))
    for part in range(PARTS):
        held = evidence.parts == part
        matrices = evidence.matrices(probabilities, ~held)
        chosen = held[evidence.instances]
        emitted = matrices[evidence.annotators[chosen], :, evidence.labels[chosen]]
        found[chosen] = np.log(
            (probabilities[evidence.instances[chosen]] * emitted).sum(axis=1) + _TINY
        )
    return float(np.average(found, weights=evidence.weights))


def instance_log_likelihood(probabilities: Array, evidence: Evidence) -> float:
    """Returns the mean log likelihood of an instance's labels taken together, as independent of
    each other given its class.
    """
    found = np.zeros(evidence.num_instances)
    for part in range(PARTS):
        held = evidence.parts == part
        logs = evidence.likelihoods(evidence.matrices(probabilities, ~held))[held]
        found[held] = logsumexp(np.log(np.maximum(probabilities[held], _TINY)) + logs, axis=1)
    return float(found.mean())


def temperature_of(
    probabilities: Array,
    evidence: Evidence,
    score: Callable[[Array, Evidence], float] = label_log_likelihood,
) -> float:
    """Returns the temperature whose probabilities make held-out annotations most likely."""
    best = minimize_scalar(
        lambda log_t: -score(heated(probabilities, float(np.exp(log_t))), evidence),
        bounds=(-np.log(HOTTEST), np.log(HOTTEST)),
        method="bounded",
        options={"xatol": 0.02},
    )
    return float(np.exp(best.x))


def calibrated_label_log_likelihood(probabilities: Array, evidence: Evidence) -> float:
    """Returns `label_log_likelihood` at the temperature that is best for it."""
    return label_log_likelihood(
        heated(probabilities, temperature_of(probabilities, evidence)), evidence
    )


def calibrated_instance_log_likelihood(probabilities: Array, evidence: Evidence) -> float:
    """Returns `instance_log_likelihood` at the temperature that is best for it."""
    hot = temperature_of(probabilities, evidence, instance_log_likelihood)
    return instance_log_likelihood(heated(probabilities, hot), evidence)


# --------------------------------------------------------------------------- among candidates


def posterior(beliefs: Array, evidence: Evidence, iterations: int = 3) -> Array:
    """Returns `[N, C]`: what beliefs and labels together say of the true classes.

    Beliefs are the prior of each instance; annotators' matrices and posteriors are found in turns.

    References:
        Goh, Tkachenko and Mueller (2022), CROWDLAB: a consensus of a model and of annotators. This
        one weighs annotators by whole matrices.
    """
    found = beliefs
    for _ in range(iterations):
        logs = evidence.likelihoods(evidence.matrices(found))
        joint = np.log(np.maximum(beliefs, 1e-3)) + logs
        found = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    return found


def posterior_agreement(
    candidates: Mapping[str, Array], evidence: Evidence, *, balanced: bool = False
) -> dict[str, float]:
    """Returns each candidate's expected accuracy under the posterior of the others' mean.

    Args:
        candidates: predictions by name, at least two.
        evidence: the crowd's labels.
        balanced: weigh each instance so that all classes count alike.
    """
    total = np.sum(list(candidates.values()), axis=0)
    found = {}
    for name, probabilities in candidates.items():
        others = (total - probabilities) / max(1, len(candidates) - 1)
        belief = posterior(others, evidence)
        right = belief[np.arange(len(belief)), probabilities.argmax(axis=1)]
        if balanced:
            guess = np.eye(belief.shape[1])[probabilities.argmax(axis=1)]
            found[name] = float(((guess * belief).sum(axis=0) / belief.sum(axis=0)).mean())
        else:
            found[name] = float(right.mean())
    return found


def mean_rank(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Returns minus each candidate's mean rank over criteria (crowd-hpo's ensemble).

    Args:
        scores: by criterion, then by candidate.
    """
    names = list(next(iter(scores.values())))
    ranks = [rankdata([-by_name[name] for name in names]) for by_name in scores.values()]
    return {name: -float(rank) for name, rank in zip(names, np.mean(ranks, axis=0), strict=True)}


SINGLE: dict[str, Callable[[Array, Evidence], float]] = {
    "consensus": consensus_agreement,
    "labels": label_agreement,
    "weighted labels": weighted_agreement,
    "information": mutual_information,
    "determinant": determinant,
    "likelihood of a label": label_log_likelihood,
    "likelihood of a label, calibrated": calibrated_label_log_likelihood,
    "likelihood of an instance": instance_log_likelihood,
    "likelihood of an instance, calibrated": calibrated_instance_log_likelihood,
}
