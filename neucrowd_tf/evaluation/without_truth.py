"""Scores where no truth is known: predictions against what a model of the crowd believes of each
instance, and how far such scores were off on simulated crowds of the same shape.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.labelling.belief import believe
from neucrowd_tf.metrics import CALIBRATION_BINS, check_predictions, classification_metrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

# How many crowds are simulated, by how many labels there are at most.
CROWDS = ((100_000, 10), (1_000_000, 3))
EXPECTED = ("accuracy", "log_loss", "brier", "ece")
BASIS = "Dawid-Skene posterior"
LEAST = 1e-6  # a prediction counts for this at least
PENALTY = 0.5


def expected_metrics(beliefs: NDArray[np.float64], probabilities: NDArray[Any]) -> dict[str, float]:
    """Returns the expected accuracy, log loss, Brier score and calibration error of predictions
    `[M, C]`, if `beliefs` `[M, C]` were the probabilities of the true classes.

    The predicted class is the most probable one; the calibration error is that of
    `neucrowd_tf.metrics`, a row's accuracy being the belief in its predicted class.
    """
    q = np.asarray(beliefs, dtype=np.float64)
    _, p = check_predictions(q.argmax(axis=1), probabilities)
    predicted, rows = p.argmax(axis=1), np.arange(len(p))
    right, confidence = q[rows, predicted], p.max(axis=1)
    bins = np.clip(np.ceil(confidence * CALIBRATION_BINS).astype(int) - 1, 0, CALIBRATION_BINS - 1)
    gaps = np.bincount(bins, weights=confidence - right, minlength=CALIBRATION_BINS)
    brier = float(np.mean((p**2).sum(axis=1) - 2 * (p * q).sum(axis=1) + 1.0))
    logs = np.log(np.clip(p / p.sum(axis=1, keepdims=True), np.finfo(np.float64).eps, 1.0))
    return {
        "accuracy": float(right.mean()),
        "log_loss": float(-(q * logs).sum(axis=1).mean()),
        "brier": brier / 2 if p.shape[1] == 2 else brier,  # scikit-learn's scale for two classes
        "ece": float(np.abs(gaps).sum() / len(p)),
    }


def informed_beliefs(
    likelihoods: NDArray[np.float64], probabilities: NDArray[Any]
) -> NDArray[np.float64]:
    """Returns what crowd and predictions together say of each row's class `[M, C]`.

    What the crowd alone believes would not do: a prediction that is right where the crowd's few
    labels are wrong would count against the predictor. So the predictions p are evidence too, as
    far as the crowd bears them out: g(p) = softmax(t log p + b), with t and b by maximum likelihood
    of the crowd's labels, sum_i log sum_c P(labels_i | c) g(p_i)_c, drawn a little to 1 and 0.

    Args:
        likelihoods: `[M, C]` of each row's labels given its class, up to a factor a row.
        probabilities: `[M, C]` predictions of a model that has not seen these labels.
    """
    size = likelihoods.shape[1]
    given = np.log(np.clip(likelihoods, 1e-300, None))
    logs = np.log(np.clip(probabilities, LEAST, 1.0))

    def shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(log_softmax(np.exp(values[0]) * logs + values[1:], axis=1))

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        model = shares(values)
        joint = logsumexp(given + model, axis=1)
        pull = np.exp(given + model - joint[:, None]) - np.exp(model)
        slope = np.array([np.exp(values[0]) * (pull * logs).sum(), *pull.sum(axis=0)])
        value = float(-joint.sum() + PENALTY * (values**2).sum())
        return value, -slope + 2 * PENALTY * values

    bounds = [(-3.0, 3.0), *[(-10.0, 10.0)] * size]
    found = minimize(loss, np.zeros(size + 1), jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(softmax(given + shares(found.x), axis=1))


@dataclasses.dataclass(frozen=True)
class Scores:
    """What is said of predictions without truth.

    Attributes:
        metrics: as `classification_metrics` gives: accuracy, log loss, Brier score and calibration
            error expected under the crowd's model, the others against the most probable class.
        beliefs: `[M, C]` of the rows that were scored.
        simulated: for accuracy, log loss and calibration error, by how much the figure was above
            the true one on simulated crowds: `mean`, `least`, `most`; and `crowds`, how many there
            were. None where there are too many labels to simulate.
    """

    metrics: dict[str, Any]
    beliefs: NDArray[np.float64]
    simulated: dict[str, Any] | None

    @property
    def meaning(self) -> str:
        """What the figures can and cannot mean, in words."""
        said = (
            "No truth is known: figures are expected ones, by what a model of the crowd"
            " (Dawid and Skene's) and the predictions together say of each test row. They cannot"
            " see mistakes that annotators make together, nor rows that the crowd knows"
            " nothing of; they serve to compare methods on these rows."
        )
        if self.simulated is None:
            return f"{said} How far they are off was not simulated: there are too many labels."
        found = self.simulated["accuracy"]
        return (
            f"{said} On {self.simulated['crowds']} simulated crowds of this shape, in which"
            f" annotators err independently, the accuracy said was {_off(found['mean'])} on average"
            f" ({found['least']:+.3f} to {found['most']:+.3f})."
        )


def _off(value: float) -> str:
    return f"{abs(value):.3f} too {'high' if value > 0 else 'low'}"


def score_without_truth(
    crowd: Annotations,
    rows: NDArray[np.int64],
    probabilities: NDArray[Any],
    *,
    class_names: NDArray[Any] | None = None,
    seed: int = 0,
) -> Scores:
    """Scores predictions of instances whose labels the predictor has not seen.

    Args:
        crowd: with identities, all labels at hand: those of other instances tell how good each
            annotator is.
        rows: `[M]` the instances that were predicted; each needs a label.
        probabilities: `[M, C]`.
        class_names: `[C]` names for `per_class`.
        seed: of the simulated crowds.
    """
    belief = believe(crowd)
    beliefs = _beliefs(belief.probas, rows, probabilities)
    metrics = classification_metrics(
        beliefs.argmax(axis=1), probabilities, class_names=class_names, calibration=False
    )
    metrics |= expected_metrics(beliefs, probabilities)
    crowds = next((count for size, count in CROWDS if crowd.num_annotations <= size), 0)
    simulated = None
    if crowds:
        rng = np.random.default_rng([seed, 0x71])
        believed = belief.probas.copy()
        believed[rows] = beliefs
        found = [
            _simulated_difference(crowd, believed, belief.errors, rows, probabilities, rng)
            for _ in range(crowds)
        ]
        simulated = {"crowds": crowds} | {
            name: {
                "mean": float(np.mean([one[name] for one in found])),
                "least": float(min(one[name] for one in found)),
                "most": float(max(one[name] for one in found)),
            }
            for name in ("accuracy", "log_loss", "ece")
        }
    return Scores(metrics, beliefs, simulated)


def _draw(shares: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Returns a class for each row of `[K, C]` shares."""
    bounds = shares.cumsum(axis=1)
    drawn = (rng.random((len(shares), 1)) * bounds[:, -1:] > bounds).sum(axis=1)
    return np.asarray(np.minimum(drawn, shares.shape[1] - 1))


def _beliefs(
    probas: NDArray[np.float64], rows: NDArray[np.int64], probabilities: NDArray[Any]
) -> NDArray[np.float64]:
    """Returns `informed_beliefs` of the rows, by what the crowd believes of all `[N, C]`."""
    priors = np.maximum(probas.mean(axis=0), LEAST)
    return informed_beliefs(probas[rows] / priors, probabilities)


def _simulated_difference(
    crowd: Annotations,
    probas: NDArray[np.float64],
    errors: NDArray[np.float64],
    rows: NDArray[np.int64],
    probabilities: NDArray[Any],
    rng: np.random.Generator,
) -> dict[str, float]:
    """Draws classes from what is believed and labels (of the same instances by the same annotators)
    from the fitted model; returns the scores without truth minus the scores with it.

    Args:
        probas: `[N, C]` what is believed of all instances.
        errors: `[R, C, C]` of the annotators.
        rows, probabilities: which were predicted, and what.
    """
    truth = _draw(probas, rng)
    labels = _draw(errors[crowd.annotators, truth[crowd.instances]], rng)
    drawn = Annotations(
        crowd.instances,
        crowd.annotators,
        labels.astype(np.int32),
        num_instances=crowd.num_instances,
        annotator_names=crowd.annotator_names,
        class_names=crowd.class_names,
    )
    said = expected_metrics(_beliefs(believe(drawn).probas, rows, probabilities), probabilities)
    known = expected_metrics(np.eye(probas.shape[1])[truth[rows]], probabilities)
    return {name: said[name] - known[name] for name in EXPECTED}
