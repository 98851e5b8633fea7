"""Learning from crowds (Raykar et al., 2010).

EM estimates the classifier and the annotators' errors together.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from neucrowd_tf.aggregation.base import normalise_counts, normalise_log, warn_not_converged
from neucrowd_tf.aggregation.crowd_and_classifier import error_matrices, log_likelihoods
from neucrowd_tf.declare.declarations import estimator, fitted, number, whole
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Array, Floats, Indices
from neucrowd_tf.methods.two_stage.logistic_classifier import LinearClassifier
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.logistic_head import ABSENT, LinearHead
from neucrowd_tf.training.run import Run


class _SoftRegression:
    """Logistic regression on soft labels that starts from the previous fit.

    Features are standardised once and never copied. As in scikit-learn, two classes have one column
    of weights and more have one each, and strengths mean the same.

    Args:
        x: `[N, d]`.
        classes: codes of the classes that have labels.
        num_classes: C.
        start: the first weights, the strength, and the features' mean and scale.
    """

    def __init__(self, x: Array, classes: Indices, num_classes: int, start: LinearHead) -> None:
        self.head = start
        self.classes = classes
        self.num_classes = num_classes
        self.z = (np.asarray(x, dtype=np.float64) - start.mean_) / start.scale_
        self.free = classes[1:] if len(classes) == 2 else classes
        self.weights = np.concatenate([start.kernel_[:, self.free], start.bias_[None, self.free]])

    def loss(self, flat: Floats, probas: Floats) -> tuple[float, Floats]:
        """Returns cross-entropy plus penalty, and its gradient.

        The weights `[d + 1, K]` are flat.
        """
        weights = flat.reshape(self.weights.shape)
        predicted = self.log_probabilities(weights)
        error = (np.exp(predicted) - probas)[:, self.free]
        kernel_gradient = self.z.T @ error + weights[:-1] / self.head.C_
        gradient = np.concatenate([kernel_gradient.ravel(), error.sum(axis=0)])
        used = predicted[:, self.classes] * probas[:, self.classes]
        return float(-used.sum() + self.penalty(weights)), gradient

    def m_step(self, probas: Floats) -> None:
        """Fits to the probabilities `[N, C]` of the classes; each instance weighs one."""
        solution = minimize(
            self.loss,
            self.weights.ravel(),
            args=(probas,),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 200},
        )
        self.weights = solution.x.reshape(self.weights.shape)
        self.head.kernel_ = np.zeros((self.z.shape[1], self.num_classes))
        self.head.bias_ = np.full(self.num_classes, ABSENT)
        self.head.bias_[self.classes] = 0.0
        self.head.kernel_[:, self.free] = self.weights[:-1]
        self.head.bias_[self.free] = self.weights[-1]

    def penalty(self, weights: Floats) -> float:
        """Returns minus the log of the Gaussian prior on the weights, up to a constant."""
        return 0.5 * float(np.sum(weights[:-1] ** 2)) / self.head.C_

    def log_probabilities(self, weights: Floats) -> Floats:
        """Returns `[N, C]` log p(class | features)."""
        logits = np.full((len(self.z), self.num_classes), ABSENT)
        logits[:, self.classes] = 0.0
        logits[:, self.free] = self.z @ weights[:-1] + weights[-1]
        return log_softmax(logits, axis=1)


@register_method(
    "raykar",
    summary="joint EM of a logistic regression and the annotators' confusion matrices (Raykar et"
    " al. 2010)",
    space={"smoothing": (0.01, 0.1, 1.0)},
)
@estimator
class Raykar(LinearClassifier):
    """Logistic regression and confusion matrices, each improved with the help of the other.

    The E-step combines the classifier's probabilities of an instance with its labels; the M-step
    refits both. One of `Cs`, the inverse strengths of the Gaussian prior on the weights, is chosen
    once, on the vote shares that EM starts from. With two classes this is the paper's model
    (sensitivity and specificity); with more its multi-class extension (section 2.7).

    Attributes:
        head_: the fitted `LinearHead`.
        labels_, probas_: `[N]` class codes and `[N, C]` posterior of the training instances.
        confusion_matrices_: `[R, C true, C observed]`.
        n_iter_, converged_, history_: iterations, whether `tol` was reached, and the log posterior
            after each.

    References:
        Raykar et al. (2010), sections 2.4 to 2.7.
    """

    requires_identities: ClassVar[bool] = True

    smoothing: Annotated[
        float,
        number(above=0),
        "pseudo-counts in each cell of a confusion matrix (a Dirichlet prior of 1 + smoothing).",
    ] = 0.01
    max_iter: Annotated[int, whole(1), "largest number of EM iterations."] = 100
    tol: Annotated[
        float, number(), "stops when the log posterior rises by less than this per annotation."
    ] = 1e-5

    history_: list[float] = fitted()

    def _fit(self, data: TrainingData, run: Run) -> None:
        x = data.features.reshape(len(data.features), -1)
        crowd = data.annotations
        num_classes = len(self.classes_)
        votes = crowd.vote_counts()
        probas = normalise_counts(votes)
        start = self._fit_head(data, probas)
        classifier = _SoftRegression(x, np.flatnonzero(votes.sum(axis=0)), num_classes, start)
        one_hot = crowd.one_hot()
        self.history_ = []
        self.converged_ = False
        errors = np.zeros((0, num_classes, num_classes))
        change = float("inf")
        for _ in range(self.max_iter):
            errors = error_matrices(one_hot, probas, self.smoothing)
            classifier.m_step(probas)
            log_p = classifier.log_probabilities(classifier.weights)
            probas, likelihood = self._e_step(one_hot, errors, log_p)
            log_prior = self.smoothing * float(np.log(errors).sum())
            penalty = classifier.penalty(classifier.weights)
            self.history_.append(likelihood + log_prior - penalty)
            if len(self.history_) > 1:
                change = (self.history_[-1] - self.history_[-2]) / crowd.num_annotations
            self.converged_ = change < self.tol
            if self.converged_:
                break
        if not self.converged_:
            warn_not_converged(type(self).__name__, self.max_iter, change, self.tol)
        self.n_iter_ = len(self.history_)
        self.head_ = classifier.head
        self.confusion_matrices_ = errors
        self.probas_ = probas
        self.labels_ = probas.argmax(axis=1)

    @staticmethod
    def _e_step(one_hot: object, errors: Floats, log_prior: Floats) -> tuple[Floats, float]:
        """Returns posteriors `[N, C]` and the log likelihood of all labels.

        `log_prior` are the classifier's log probabilities `[N, C]`.
        """
        scores = log_likelihoods(one_hot, errors) + log_prior
        return scores, float(normalise_log(scores, np.zeros(errors.shape[1])).sum())
