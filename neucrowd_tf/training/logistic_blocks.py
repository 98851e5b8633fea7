"""Logistic regression on features that are too many for a standardised copy in float64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from neucrowd_tf.declare.types import Array, Features, Floats, Indices
from neucrowd_tf.training.features import ArrayFeatures

MOST_COPIED = 1 << 22  # values of which there is a standardised copy
_BLOCK = 1 << 17  # values of a block, which stay in a processor's cache


def uncopied(features: Features) -> Features:
    """Returns features `[N, d]` whose rows can be chosen without a copy, if they are many."""
    if isinstance(features, np.ndarray) and features.size > MOST_COPIED:
        return ArrayFeatures(features)
    return features


class StandardisedRows:
    """Standardised features `[N, d]` in float64, made block by block whenever they are read.

    Args:
        features: `[N, d]`.
        mean, scale: `[d]`.
    """

    def __init__(self, features: ArrayFeatures, mean: Floats, scale: Floats) -> None:
        self.shape = features.shape
        self._features = features
        self._scaling = mean, scale

    def __getitem__(self, rows: Indices) -> StandardisedRows:
        """Returns the rows at these positions."""
        return StandardisedRows(self._features[rows], *self._scaling)

    def __matmul__(self, kernel: Floats) -> Floats:
        """Returns the product with `[d, C]`."""
        product = np.empty((self.shape[0], kernel.shape[1]))
        for positions, block in self.blocks():
            product[positions] = block @ kernel
        return product

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yields positions and standardised rows."""
        mean, scale = self._scaling
        for positions, block in self._features.blocks(max(1, _BLOCK // self.shape[1])):
            values = block - mean
            values /= scale
            yield positions, values


class BlockwiseLogistic:
    """scikit-learn's `LogisticRegression` (L-BFGS, started from the fit before) without copies.

    Args:
        max_iter: largest number of iterations.

    Attributes:
        C: the inverse regularisation strength.
        coef_, intercept_: `[K, d]` and `[K]`; K is 1 for two classes.
    """

    coef_: Floats
    intercept_: Floats

    def __init__(self, max_iter: int) -> None:
        self.max_iter = max_iter
        self.C = 1.0
        self._weights: Floats | None = None

    def set_params(self, C: float) -> None:
        """Sets the inverse regularisation strength."""
        self.C = C

    def fit(self, rows: StandardisedRows, codes: Array, sample_weight: Floats) -> None:
        """Fits; two classes have one column of weights, more have one each."""
        classes, targets = np.unique(codes, return_inverse=True)
        columns = 1 if len(classes) == 2 else len(classes)
        total = sample_weight.sum()
        penalty = 1.0 / (self.C * total)
        shape = (rows.shape[1] + 1, columns)

        def objective(flat: Floats) -> tuple[float, Floats]:
            weights = flat.reshape(shape)
            slopes = np.zeros(shape)
            loss = 0.0
            for positions, block in rows.blocks():
                logits = np.zeros((len(block), len(classes)))
                logits[:, -columns:] = block @ weights[:-1] + weights[-1]
                logs = log_softmax(logits, axis=1)
                target = np.arange(len(block)), targets[positions]
                weight = sample_weight[positions]
                loss -= float(weight @ logs[target])
                surplus = np.exp(logs)
                surplus[target] -= 1.0
                surplus *= weight[:, None]
                slopes[:-1] += block.T @ surplus[:, -columns:]
                slopes[-1] += surplus[:, -columns:].sum(axis=0)
            slopes /= total
            slopes[:-1] += penalty * weights[:-1]
            loss = loss / total + 0.5 * penalty * float(np.square(weights[:-1]).sum())
            return loss, slopes.ravel()

        start = np.zeros(shape) if self._weights is None else self._weights
        tolerance = 64 * np.finfo(np.float64).eps  # as scikit-learn's
        ends = {"maxiter": self.max_iter, "maxls": 50, "gtol": 1e-4, "ftol": tolerance}
        solution = minimize(objective, start.ravel(), method="L-BFGS-B", jac=True, options=ends)
        self._weights = solution.x.reshape(shape)
        self.coef_ = self._weights[:-1].T
        self.intercept_ = self._weights[-1]
