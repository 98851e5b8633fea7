"""Expected scores of predictions without true labels, under a model of the crowd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from neucrowd_tf.aggregation.crowd_and_classifier import combine
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.labelling.belief import believe
from neucrowd_tf.metrics import calibration_error, check_predictions, classification_metrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

BASIS = "Dawid-Skene posterior"
MEANING = (
    "No true labels are available. The figures are expected values under Dawid and Skene's model of"
    " the crowd, combined with the predictions. They do not count mistakes that annotators share,"
    " so the true accuracy is often lower. Use them to compare methods on these rows."
)
LEAST = 1e-6  # a prediction's smallest probability
PENALTY = 0.5


def expected_metrics(
    posterior: NDArray[np.float64], probabilities: NDArray[Any]
) -> dict[str, float]:
    """Returns the expected accuracy, log loss, Brier score and calibration error of predictions.

    The predicted class is the most probable one. It is correct with its probability in the
    posterior.

    Args:
        posterior: `[M, C]` probabilities of the true classes.
        probabilities: `[M, C]` predictions.
    """
    q = np.asarray(posterior, dtype=np.float64)
    _, p = check_predictions(q.argmax(axis=1), probabilities)
    correct = q[np.arange(len(p)), p.argmax(axis=1)]
    brier = float(np.mean((p**2).sum(axis=1) - 2 * (p * q).sum(axis=1) + 1.0))
    logs = np.log(np.clip(p / p.sum(axis=1, keepdims=True), np.finfo(np.float64).eps, 1.0))
    return {
        "accuracy": float(correct.mean()),
        "log_loss": float(-(q * logs).sum(axis=1).mean()),
        "brier": brier / 2 if p.shape[1] == 2 else brier,  # scikit-learn's scale for two classes
        "ece": calibration_error(p.max(axis=1), correct),
    }


def informed_posterior(
    likelihoods: NDArray[np.float64], probabilities: NDArray[Any]
) -> NDArray[np.float64]:
    """Returns `[M, C]` the classes' posterior given the crowd's labels and predictions.

    The crowd's posterior alone would not do: a correct prediction would count as a mistake
    if the crowd's few labels are wrong. So the predictions p are evidence too, as far as the crowd
    supports them: g(p) = softmax(t log p + b), with t and b by maximum likelihood of the crowd's
    labels, sum_i log sum_c P(labels_i | c) g(p_i)_c, shrunk a little to 1 and 0.

    Args:
        likelihoods: `[M, C]` of each row's labels for each class, up to a factor per row.
        probabilities: `[M, C]` predictions of a model that has not seen these labels.
    """
    size = likelihoods.shape[1]
    likely = np.log(np.clip(likelihoods, 1e-300, None))
    logs = np.log(np.clip(probabilities, LEAST, 1.0))

    def shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(log_softmax(np.exp(values[0]) * logs + values[1:], axis=1))

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        model = shares(values)
        joint = logsumexp(likely + model, axis=1)
        pull = np.exp(likely + model - joint[:, None]) - np.exp(model)
        slope = np.array([np.exp(values[0]) * (pull * logs).sum(), *pull.sum(axis=0)])
        value = float(-joint.sum() + PENALTY * (values**2).sum())
        return value, -slope + 2 * PENALTY * values

    bounds = [(-3.0, 3.0), *[(-10.0, 10.0)] * size]
    best = minimize(loss, np.zeros(size + 1), jac=True, method="L-BFGS-B", bounds=bounds)
    return combine(likely, np.exp(shares(best.x)))


def score_without_truth(
    crowd: Annotations,
    rows: NDArray[np.int64],
    probabilities: NDArray[Any],
    *,
    class_names: NDArray[Any] | None = None,
) -> tuple[dict[str, Any], NDArray[np.float64]]:
    """Scores predictions of instances whose labels the predictor has not seen.

    Args:
        crowd: with identities, all available labels: those of other instances show how reliable
            each annotator is.
        rows: `[M]` the predicted instances; each needs a label.
        probabilities: `[M, C]`.
        class_names: `[C]` names for `per_class`.

    Returns:
        The metrics of `classification_metrics` and the posterior `[M, C]`. Accuracy, log loss,
        Brier score and calibration error are expected values, the others are against the most
        probable class.
    """
    probas = believe(crowd).probas
    priors = np.maximum(probas.mean(axis=0), LEAST)
    posterior = informed_posterior(probas[rows] / priors, probabilities)
    metrics = classification_metrics(
        posterior.argmax(axis=1), probabilities, class_names=class_names
    )
    return metrics | expected_metrics(posterior, probabilities), posterior
