"""CPC: clustered personal classifiers (Kajino et al., 2013).

Each annotator has a linear classifier. A penalty draws them together until similar annotators share
one; one of them is the target classifier.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.declarations import SEED, estimator, number, whole
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Floats, Indices, Mask
from neucrowd_tf.errors import UnsupportedDataError, warn
from neucrowd_tf.methods.two_stage.logistic_classifier import LinearClassifier
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.features import standardise
from neucrowd_tf.training.logistic_head import LinearHead
from neucrowd_tf.training.run import Run

# Three arrays of pairs x weights are held; 2^26 numbers each are 1.6 GB in all.
_MOST_NUMBERS = 1 << 26
# Norms are rounded off near zero by this much; annotators within ten times this are fused.
_ROUNDING = 1e-3


def logits_of(scores: Floats) -> Floats:
    """Returns logits `[M, C]`.

    One column of scores is the second class's against the first one's zero.
    """
    if scores.shape[1] == 1:
        return np.pad(scores, ((0, 0), (1, 0)))
    return scores


class PersonalLosses:
    """Computes the annotators' losses and their gradients.

    The loss of annotator j is the log loss on the instances that j labelled.

    Args:
        x: `[N, p]` features, a constant column among them.
        annotations: N instances.
    """

    def __init__(self, x: Floats, annotations: Annotations) -> None:
        classes = annotations.num_classes
        self.columns = 1 if classes == 2 else classes
        self.shape = (annotations.num_annotators + 1, x.shape[1], self.columns)
        order = np.argsort(annotations.annotators, kind="stable")
        ends = np.cumsum(annotations.labels_per_annotator())
        self.parts = []
        for members in np.split(order, ends[:-1]):
            self.parts.append((x[annotations.instances[members]], annotations.labels[members]))

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Returns the loss and its gradient at weights `[R + 1, p, K]`.

        The first classifier, the target, has no data of its own.
        """
        total = 0.0
        gradient = np.zeros_like(weights)
        for index, (x, labels) in enumerate(self.parts, start=1):
            if not len(labels):
                continue
            log_p = log_softmax(logits_of(x @ weights[index]), axis=1)
            labelled = (np.arange(len(labels)), labels)
            total -= float(log_p[labelled].sum())
            residual = np.exp(log_p)
            residual[labelled] -= 1.0
            gradient[index] = x.T @ residual[:, -self.columns :]
        return total, gradient


class Fusion:
    """Computes the penalty mu / R sum_{i < j} |w_i - w_j| over all pairs of classifiers.

    Each norm is rounded off near zero: `sqrt(|g|^2 + e^2) - e` differs from it by less than e, and
    has a gradient everywhere.

    Args:
        count: R + 1, the annotators' classifiers and the target.
        size: number of weights of a classifier.
        mu: weight of the penalty.

    Raises:
        UnsupportedDataError: the pairs' weights do not fit in memory.
    """

    def __init__(self, count: int, size: int, mu: float) -> None:
        self.first, self.second = np.triu_indices(count, k=1)
        if len(self.first) * size > _MOST_NUMBERS:
            raise UnsupportedDataError(
                f"CPC compares every pair of annotators: expected at most {_MOST_NUMBERS:,}"
                f" numbers, received {len(self.first):,} pairs of {size:,} weights. Use fewer"
                " features or annotators."
            )
        self.weight = mu / max(count - 1, 1)
        pairs = len(self.first)
        ends = (np.concatenate([self.first, self.second]), np.tile(np.arange(pairs), 2))
        signs = np.repeat([1.0, -1.0], pairs)
        self.incidence = csr_matrix((signs, ends), shape=(count, pairs))

    def gaps(self, weights: Floats) -> Floats:
        """Returns `[pairs]` distances of weights `[R + 1, size]`."""
        return np.linalg.norm(weights[self.first] - weights[self.second], axis=1)

    def __call__(self, weights: Floats, rounding: float) -> tuple[float, Floats]:
        """Returns the penalty and its gradient at weights `[R + 1, size]`."""
        gap = weights[self.first] - weights[self.second]
        norms = np.sqrt(np.einsum("pk,pk->p", gap, gap) + rounding**2)
        pull = gap * (self.weight / norms)[:, None]
        return self.weight * float((norms - rounding).sum()), self.incidence @ pull


def objective(losses: PersonalLosses, weights: Floats, mu: float, eta: float) -> float:
    """Returns the CPC objective at weights `[R + 1, p, K]`.

    It is losses + eta / 2 |w_0|^2 + mu / R sum_{i < j} |w_i - w_j|.
    """
    flat = weights.reshape(len(weights), -1)
    fusion = Fusion(len(flat), flat.shape[1], mu)
    penalty = float(fusion.gaps(flat).sum()) * fusion.weight
    return losses(weights)[0] + 0.5 * eta * float(np.square(flat[0]).sum()) + penalty


def solve(
    losses: PersonalLosses, mu: float, eta: float, *, max_iter: int
) -> tuple[Floats, Mask, list[float], bool]:
    """Minimises the objective by L-BFGS while the rounding of the norms shrinks.

    Args:
        losses: of the annotators.
        mu, eta: see `ClusteredPersonalClassifiers`.
        max_iter: iterations per stage.

    Returns:
        Weights `[R + 1, p, K]`, which pairs `[R + 1, R + 1]` are fused, the objective at the end of
        each stage, and whether the last stage converged.
    """
    # Deviation: the paper solves the same convex problem by the alternating direction method of
    # multipliers, whose step has to fit the data's scale; this gets as far in a fraction of the
    # time.
    count = losses.shape[0]
    size = losses.shape[1] * losses.shape[2]
    fusion = Fusion(count, size, mu)

    def rounded(vector: Floats, rounding: float) -> tuple[float, Floats]:
        weights = vector.reshape(count, size)
        target = weights[0]
        value, gradient = losses(weights.reshape(losses.shape))
        penalty, pull = fusion(weights, rounding)
        total = gradient.reshape(count, size) + pull
        total[0] += eta * target
        return value + penalty + 0.5 * eta * float(target @ target), total.ravel()

    flat = np.zeros((count, size))
    history = []
    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 1e-7}
    for rounding in _ROUNDING * np.array([100.0, 10.0, 1.0]):
        result = minimize(
            rounded, flat.ravel(), args=(rounding,), jac=True, method="L-BFGS-B", options=options
        )
        flat = result.x.reshape(count, size)
        history.append(objective(losses, flat.reshape(losses.shape), mu, eta))
    fused = np.eye(count, dtype=bool)
    # At a fused pair the penalty holds w_i and w_j together with less than its full force, so their
    # distance is a few roundings.
    alike = fusion.gaps(flat) <= 10 * _ROUNDING
    fused[fusion.first[alike], fusion.second[alike]] = True
    fused |= fused.T
    return flat.reshape(losses.shape), fused, history, bool(result.success)


@register_method(
    "cpc",
    summary="CPC: clustered personal classifiers, one logistic regression per annotator, with a"
    " convex penalty on their distance",
    space={"mu": (1.0, 10.0, 100.0, 1000.0), "eta": (1.0, 30.0, 300.0, 3000.0)},
)
@estimator
class ClusteredPersonalClassifiers(LinearClassifier):
    """Personal logistic regressions whose differences are penalised.

    Similar annotators come to share one classifier. Predictions are those of the target classifier.

    The target classifier has no labels of its own. The same penalty draws it to the annotators'
    classifiers; its norm is not squared, so that a few odd annotators do not move it. Features are
    standardised and have a constant column for the intercept.

    Attributes:
        head_: the target classifier.
        personal_weights_: `[R, d + 1, K]` on standardised features, the intercept last; K is 1 for
            two classes, else C.
        clusters_: `[R]` which annotators share a classifier; -1 for one of their own.
        confusion_matrices_: `[R, C true, C observed]`: an annotator's mean prediction over the
            training instances, weighted with the target classifier's probability of the true class.
        history_: the objective after each stage; converged_.

    References:
        Kajino, Tsuboi, Kashima (2013), Clustering Crowds.
    """

    requires_identities = True

    mu: Annotated[
        float, number(above=0), "weight of the penalty on differences; large values join everyone."
    ] = dataclasses.field(default=100.0, kw_only=False)
    eta: Annotated[float, number(above=0), "weight of the target classifier's squared norm."] = (
        300.0
    )
    max_iter: Annotated[
        int, whole(), "largest number of iterations of each of the three stages."
    ] = 500
    seed: Annotated[int, SEED, "not used, because the objective has one minimum."] = 0

    def _fit(self, data: TrainingData, run: Run) -> None:
        raw = data.features.reshape(len(data.features), -1).astype(np.float64)
        mean, scale = standardise(raw)
        x = np.concatenate([(raw - mean) / scale, np.ones((len(raw), 1))], axis=1)
        losses = PersonalLosses(x, data.annotations)
        weights, fused, self.history_, self.converged_ = solve(
            losses, self.mu, self.eta, max_iter=self.max_iter
        )
        if not self.converged_:
            warn(
                f"CPC did not converge in {self.max_iter} iterations: raise max_iter",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.personal_weights_ = weights[1:]
        self.clusters_ = _clusters(fused[1:, 1:])
        self.confusion_matrices_ = self._confusions(x, weights)
        self.head_ = self._head(weights[0], mean, scale)

    def _head(self, target: Floats, mean: Floats, scale: Floats) -> LinearHead:
        head = LinearHead()
        kernel = logits_of(target)
        head.mean_ = mean
        head.scale_ = scale
        head.kernel_ = kernel[:-1].copy()
        head.bias_ = kernel[-1].copy()
        head.C_ = 1.0 / self.eta
        head.scores_ = []
        return head

    @staticmethod
    def _confusions(x: Floats, weights: Floats) -> Floats:
        target, *personal = (softmax(logits_of(x @ w), axis=1) for w in weights)
        mass = np.maximum(target.sum(axis=0), 1e-12)
        answers = np.stack([target.T @ predicted for predicted in personal]) / mass[:, None]
        return answers / answers.sum(axis=2, keepdims=True)


def _clusters(fused: Mask) -> Indices:
    """Returns `[R]` cluster numbers from 0, -1 for annotators on their own."""
    _, groups = connected_components(csr_matrix(fused), directed=False)
    sizes = np.bincount(groups)
    names = np.full(len(sizes), -1, dtype=np.int64)
    names[sizes > 1] = np.arange((sizes > 1).sum())
    return names[groups]
