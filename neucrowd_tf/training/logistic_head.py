"""The linear head: standardised features and a logistic regression.

Its strength is chosen without test labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from neucrowd_tf.aggregation.blas import one_blas_thread
from neucrowd_tf.declare.types import Array, Features, Floats
from neucrowd_tf.errors import one_at_a_time
from neucrowd_tf.saving.persistent import Persistent
from neucrowd_tf.training.features import ArrayFeatures
from neucrowd_tf.training.features import standardise as scaling
from neucrowd_tf.training.folds import stratified_folds
from neucrowd_tf.training.logistic_blocks import BlockwiseLogistic, StandardisedRows, uncopied

STRENGTHS: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
# The logit of a class that training never saw. The largest logit of the others is at least 0 (they
# are centred), so its probability is at most exp(-100), which is finite in float32 as -inf would
# not be.
ABSENT = -100.0
MAX_ITERATIONS = 1000
PATIENCE = 2  # strengths in a row that are worse than the best before the rest are left
FOLDS = 5
# Rows of sparse features are scaled to the mean length of so many standardised columns.
SPARSE_COLUMNS = 50


class LinearHead(Persistent, BaseEstimator):
    """A fitted multinomial logistic regression on standardised features; made by `fit_logistic`.

    Attributes:
        mean_, scale_: `[d]` what the features are standardised with.
        kernel_: `[d, C]` weights on standardised features. With two classes the first column is
            zero.
        bias_: `[C]`.
        C_: the inverse regularisation strength that was chosen.
        scores_: minus the log loss of each strength that was tried, in their order (the weakest
            are left out once two in a row are worse than the best); empty when there was no choice.
    """

    mean_: Floats
    scale_: Floats
    kernel_: Floats
    bias_: Floats
    C_: float
    scores_: list[float]

    def decision_function(self, x: Array) -> Floats:
        """Returns logits `[M, C]` of features `[M, d]`."""
        return np.asarray(self.standardised(x) @ self.kernel_ + self.bias_)

    def standardised(self, x: Features) -> Any:
        """Returns standardised features `[M, d]`; a large array is standardised as it is read.

        Sparse ones stay sparse.
        """
        if issparse(x):  # their mean_ is 0, and all columns have one scale
            return x / self.scale_[0]
        x = uncopied(x)
        if isinstance(x, ArrayFeatures):
            return StandardisedRows(x, self.mean_, self.scale_)
        values = np.array(x, dtype=np.float64)
        values -= self.mean_
        values /= self.scale_
        return values

    def predict_proba(self, x: Array) -> Floats:
        """Returns class probabilities `[M, C]` of features `[M, d]`."""
        return np.asarray(softmax(self.decision_function(x), axis=1))

    def folded(self) -> tuple[Floats, Floats]:
        """Returns weights `[d, C]` and bias `[C]` that apply to features as they are.

        The features need not be standardised first.
        """
        kernel = self.kernel_ / self.scale_[:, None]
        return kernel, self.bias_ - self.mean_ @ kernel

    def of_logits(self) -> LinearHead:
        """Returns the head of features that are multiplied with `folded`'s weights already."""
        head = LinearHead()
        size = len(self.bias_)
        head.mean_ = np.zeros(size)
        head.scale_ = np.ones(size)
        head.kernel_ = np.eye(size)
        head.bias_ = self.folded()[1]
        return head


def fit_logistic(
    x: Any,
    codes: Array,
    num_classes: int,
    Cs: Sequence[float] = STRENGTHS,
    validation: tuple[Array, Array] | None = None,
    sample_weight: Array | None = None,
    seed: int = 0,
    *,
    standardise: bool = True,
    groups: Array | None = None,
) -> LinearHead:
    """Fits a logistic regression, its L2 strength chosen by log loss.

    AUC, which the papers report, would not do for two classes: it says nothing of the threshold,
    and takes strengths under which every probability is near the commoner class's share.

    Args:
        x: `[N, d]` features, of which many are not copied, or a sparse matrix of them, whose
            columns keep their zeros and their proportions.
        codes: `[N]` class codes below `num_classes`; classes that do not occur get a probability of
            about zero.
        num_classes: C.
        Cs: inverse strengths to choose from; among equals the first (list the strongest
            regularisation first).
        validation: features `[M, d]` and codes `[M]` to choose by; without them by cross-validation
            over the rows.
        sample_weight: `[N]` weights of the rows.
        seed: shuffles the rows into folds.
        standardise: whether to subtract the mean and divide by the standard deviation of `x` first.
        groups: `[N]`; rows of one group (copies of one instance) stay in one fold.
    """
    weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    head = LinearHead()
    if issparse(x):
        length = float(x.multiply(x).sum()) / len(codes)
        scale = np.sqrt(length / SPARSE_COLUMNS) or 1.0
        head.mean_ = np.zeros(x.shape[1])
        head.scale_ = np.full(x.shape[1], scale)
    else:
        if not isinstance(x, ArrayFeatures):
            x = np.asarray(x)
        head.mean_, head.scale_ = scaling(x, standardise, weights=weight)
    data = head.standardised(x), codes, weight
    head.scores_ = []
    # Threads that wait for each other cost more than they give in matrices this small.
    with one_blas_thread():
        if len(Cs) > 1 and len(np.unique(codes)) > 1:
            if validation is not None:
                held_out = head.standardised(validation[0]), np.asarray(validation[1]), None
                splits = [_Split(data, held_out)]
            else:
                splits = [_Split(data, data, *rows) for rows in _folds(codes, groups, seed)]
            if splits:
                head.scores_ = _path(splits, num_classes, Cs)
        best = int(np.argmax(head.scores_)) if head.scores_ else len(Cs) // 2
        head.C_ = float(Cs[best])
        head.kernel_, head.bias_ = next(_weights(_Split(data, data), num_classes, [head.C_]))
    return head


class _Split(NamedTuple):
    """Features, codes and weights to fit and to judge by; rows are copied only while in use.

    Attributes:
        fitted, held_out: features `[n, d]`, codes `[n]` and weights `[n]`, or None.
        train, test: rows of these; None for all.
    """

    fitted: tuple[Any, Array, Array]
    held_out: tuple[Any, Array, Array | None]
    train: Array | None = None
    test: Array | None = None


def _rows(values: Any, rows: Array | None) -> Any:
    if rows is None or values is None:
        return values
    return values[rows]


def _folds(codes: Array, groups: Array | None, seed: int) -> list[tuple[Array, Array]]:
    """Returns the rows of stratified folds, as many as the data allows; none for a single row."""
    units = len(codes if groups is None else np.unique(groups))
    size = min(FOLDS, units, int(np.bincount(codes).max()))
    if size < 2:
        return []
    tests = stratified_folds(codes, size, seed, None if units == len(codes) else groups)
    rows = np.arange(len(codes))
    return [(np.setdiff1d(rows, test), test) for test in tests]


def _weights(
    split: _Split, num_classes: int, Cs: Sequence[float]
) -> Iterator[tuple[Floats, Floats]]:
    """Yields kernel `[d, C]` and bias `[C]` for each strength.

    Each is fitted when it is asked for, and starts from the solution before.
    """
    z = split.fitted[0]
    codes = _rows(split.fitted[1], split.train)
    weight = _rows(split.fitted[2], split.train)
    present = np.unique(codes)
    model: Any = BlockwiseLogistic(MAX_ITERATIONS)
    if not isinstance(z, StandardisedRows):
        solver = "newton-cg" if issparse(z) else "lbfgs"  # a fifth of the time on sparse features
        model = LogisticRegression(solver=solver, max_iter=MAX_ITERATIONS, warm_start=len(Cs) > 1)
    for strength in Cs:
        kernel = np.zeros((z.shape[1], num_classes))
        bias = np.full(num_classes, ABSENT)
        bias[present] = 0.0
        if len(present) > 1:
            model.set_params(C=strength)
            with one_at_a_time():  # a name for the rows would keep a copy of them in each fold
                model.fit(_rows(z, split.train), codes, sample_weight=weight)
            columns = present[-len(model.coef_) :]  # of two classes the second one alone
            kernel[:, columns] = model.coef_.T
            bias[columns] = model.intercept_
        yield kernel, bias


def _path(splits: Sequence[_Split], num_classes: int, Cs: Sequence[float]) -> list[float]:
    """Returns the mean score of strengths in their order.

    The last one is the second in a row that is worse than the best: weaker regularisation overfits
    further, and costs most.
    """
    means: list[float] = []
    classes = np.arange(num_classes)

    def held_out(split: _Split) -> Iterator[float]:
        """Yields minus the log loss of each strength on held-out rows."""
        for kernel, bias in _weights(split, num_classes, Cs):
            z, codes, weight = (_rows(values, split.test) for values in split.held_out)
            probas = softmax(z @ kernel + bias, axis=1)
            del z
            with one_at_a_time():
                loss = log_loss(codes, probas, sample_weight=weight, labels=classes)
            yield -float(loss)

    for scores in zip(*map(held_out, splits), strict=True):
        means.append(float(np.mean(scores)))
        if len(means) - 1 - int(np.argmax(means)) >= PATIENCE:
            break
    return means
