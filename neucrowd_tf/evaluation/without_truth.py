"""Expected scores of predictions without true labels, and their intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp, softmax

from neucrowd_tf.aggregation.base import Codes
from neucrowd_tf.aggregation.families import PEOPLE, Sources
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.certainty import Certainty, Estimate
from neucrowd_tf.certainty.estimate import LEVEL
from neucrowd_tf.certainty.prediction_powered import (
    prediction_powered_mean,
    prediction_powered_share,
)
from neucrowd_tf.declare.picking import mapped
from neucrowd_tf.declare.types import Array, Fields, Floats
from neucrowd_tf.evaluation.cached_consensus import certainty_without_gold
from neucrowd_tf.evaluation.metrics import (
    calibration_error,
    check_predictions,
    classification_metrics,
)

BASIS = "expected by the crowd"
NO_TRUTH = "No true labels are available."
MEANING = (
    f"{NO_TRUTH} Accuracy, log loss, Brier score and calibration error are"
    " expected values: the calibrated probabilities of the crowd's consensus are combined with the"
    " predictions. The other figures compare predictions with the crowd's most probable classes."
    " The accuracy's 80% interval allows for mistakes that annotators share, which cannot be seen"
    " without gold labels."
)
GOLD_MEANING = (
    "The figures combine {} gold labels of these items with the crowd's labels. The accuracy's 80%"
    " interval is valid if the items with gold labels were drawn at random."
)
LEAST_GOLD = 20  # labels from which the accuracy is measured by them
LEAST = 1e-6  # a prediction's smallest probability
PENALTY = 0.5
SHIFTS = 24  # draws of the crowd's shift, and of the predictions' weight for each
WEIGHTS = 4
# The largest weight of the predictions as evidence. At 0 the model is as likely to be right as any
# where it contradicts the crowd: it has learned the mistakes that annotators share. At 1 its
# mistakes are independent of the crowd's. More than 1 is for crowds without shared mistakes, whose
# recalibrated probabilities are too low (results/without_truth.csv).
LARGEST_WEIGHT = 1.4
MOST_FITTED = 5_000  # rows that the predictions' temperature is fitted to


def expected_metrics(posterior: Floats, probabilities: Array) -> dict[str, float]:
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


def scaled_predictions(likelihoods: Floats, probabilities: Array) -> Floats:
    """Returns `[M, C]` log probabilities of the classes given predictions, scaled to the crowd.

    g(p) = softmax(t log p + b), with t and b by maximum likelihood of the crowd's labels,
    sum_i log sum_c P(labels_i | c) g(p_i)_c, shrunk a little to 1 and 0.

    Args:
        likelihoods: `[M, C]` of each row's labels for each class, up to a factor per row.
        probabilities: `[M, C]` predictions of a model that has not seen these labels.
    """
    size = likelihoods.shape[1]
    every = slice(None, None, -(-len(likelihoods) // MOST_FITTED))
    logs = np.log(np.clip(np.asarray(probabilities, dtype=np.float64), LEAST, 1.0))
    log_likelihoods = np.log(np.clip(likelihoods[every], 1e-300, None))
    fitted_logs = logs[every]

    def shares(values: Floats, rows: Floats) -> Floats:
        return log_softmax(np.exp(values[0]) * rows + values[1:], axis=1)

    def loss(values: Floats) -> tuple[float, Floats]:
        model = shares(values, fitted_logs)
        joint = logsumexp(log_likelihoods + model, axis=1)
        pull = np.exp(log_likelihoods + model - joint[:, None]) - np.exp(model)
        slope = np.array([np.exp(values[0]) * (pull * fitted_logs).sum(), *pull.sum(axis=0)])
        value = float(-joint.sum() + PENALTY * (values**2).sum())
        return value, -slope + 2 * PENALTY * values

    bounds = [(-3.0, 3.0), *[(-10.0, 10.0)] * size]
    best = minimize(loss, np.zeros(size + 1), jac=True, method="L-BFGS-B", bounds=bounds)
    return shares(best.x, logs)


def posteriors(certainty: Certainty, rows: Codes, probabilities: Array) -> Iterator[Floats]:
    """Yields `[M, C]` probabilities of the true classes, given labels and predictions.

    Each follows from a draw of the crowd's shift and of the weight w of the predictions:
    P(c | labels) (g(p)_c / P(c))^w, see `scaled_predictions`.

    Args:
        certainty: of the crowd's consensus.
        rows: `[M]` the predicted instances.
        probabilities: `[M, C]` predictions of a model that has not seen these labels.
    """
    unlabelled = (certainty.votes[rows].sum(axis=1) == 0) & (certainty.gold[rows] < 0)
    for draw, shift in enumerate(certainty.shifts[:SHIFTS]):
        crowd = certainty.spread(certainty.right(shift))[rows]
        shares = np.ones(crowd.shape[1])
        if not unlabelled.all():
            shares = crowd[~unlabelled].mean(axis=0)
        prior = np.maximum(shares / shares.sum(), LEAST)
        crowd[unlabelled] = prior
        evidence = scaled_predictions(crowd / prior, probabilities) - np.log(prior)
        logs = np.log(np.maximum(crowd, 1e-12))
        for block in range(WEIGHTS):
            # Each shift has a weight in each quarter of the range.
            weight = LARGEST_WEIGHT * (block + (7 * draw % SHIFTS + 0.5) / SHIFTS) / WEIGHTS
            # Instances without labels have the predictions alone.
            weights = np.where(unlabelled, 1.0, weight)[:, None]
            yield softmax(logs + weights * evidence, axis=1)


@dataclasses.dataclass(frozen=True, eq=False)
class Judgement:
    """What a crowd and a model's held-out predictions say about the true classes.

    Attributes:
        posterior: `[M, C]` the mean over draws; gold labels are certain.
        gold: `[M]` class codes, -1 if unknown.
        predicted: by name, `[M]` class codes that are judged.
        draws: by name, the drawn shares of right predictions.
        blind: `[M, C]` the mean without gold labels of these instances.
        balanced: whether shares are means over classes.
        least: the accuracy that predictions may have at worst, see `Certainty`: a model that
            follows the labels of opposed groups is right no more surely than these are.
    """

    posterior: Floats
    gold: Codes
    predicted: Mapping[str, Codes]
    draws: Mapping[str, Floats]
    blind: Floats
    balanced: bool = False
    least: float = 1.0

    def distance(self, name: str) -> float:
        """Returns the expected distance in classes of predictions from the true classes."""
        codes = np.arange(self.posterior.shape[1])
        away = np.abs(codes - self.predicted[name][:, None])
        return float((self.posterior * away).sum(axis=1).mean())

    def accuracy(self, name: str, minus: str | None = None, level: float = LEVEL) -> Estimate:
        """Returns the share of right predictions, or by how much it is above another's.

        From `LEAST_GOLD` gold labels on, it is prediction-powered.

        Args:
            name: of the predictions.
            minus: of those to compare with.
            level: of the interval.
        """
        rows = np.arange(len(self.gold))
        checked = self.gold >= 0
        draws = self.draws[name]
        blind = self.blind[rows, self.predicted[name]]
        right = (self.predicted[name] == self.gold).astype(np.float64)
        if minus is not None:
            draws = draws - self.draws[minus]
            blind = blind - self.blind[rows, self.predicted[minus]]
            right = right - (self.predicted[minus] == self.gold)
        if checked.sum() >= LEAST_GOLD and not self.balanced:
            parts = (right[checked], blind[checked], blind[~checked])
            if minus is None:
                return prediction_powered_share(*parts, level=level)
            if np.ptp(right[checked]) > 0:  # otherwise the estimate's variance would be 0
                estimate = prediction_powered_mean(*parts, level=level)
                return Estimate(*np.clip(estimate, -1.0, 1.0).tolist())
        estimate = Estimate.of(float(draws.mean()), draws, level)
        if minus is not None:
            return estimate
        return estimate._replace(low=min(estimate.low, self.least))


def judge(
    certainty: Certainty,
    rows: Codes,
    probabilities: Array,
    predicted: Mapping[str, Codes] | None = None,
    gold: Codes | None = None,
    *,
    balanced: bool = False,
) -> Judgement:
    """Judges predictions by the crowd and by held-out probabilities of a model.

    Args:
        certainty, rows, probabilities: see `posteriors`.
        predicted: by name, `[M]` class codes; by default "model", those of the probabilities.
        gold: `[M]` class codes, -1 if unknown.
        balanced: whether accuracies are means over the classes.
    """
    predicted = predicted or {"model": probabilities.argmax(axis=1)}
    if gold is None:
        gold = np.full(len(rows), -1, dtype=np.int64)
    drawn: dict[str, list[float]] = {name: [] for name in predicted}
    blind: Floats = np.zeros(probabilities.shape)
    rng = np.random.default_rng(3)
    places = np.arange(len(rows))
    for posterior in posteriors(certainty, rows, probabilities):
        blind += posterior / (SHIFTS * WEIGHTS)
        scale = np.ones(probabilities.shape[-1])
        if balanced:
            scale /= len(scale) * np.maximum(posterior.mean(axis=0), 1.0 / len(rows))
        # One draw of the true classes serves all names, whose accuracies are compared.
        sums = posterior.cumsum(axis=1)
        true = (rng.random((len(rows), 1)) * sums[:, -1:] > sums).sum(axis=1)
        for name, codes in predicted.items():
            drawn[name].append(float((scale[codes] * (codes[places] == true)).mean()))
    posterior = np.where((gold >= 0)[:, None], np.eye(blind.shape[1])[gold], blind)
    draws = mapped(np.array, drawn)
    return Judgement(posterior, gold, predicted, draws, blind, balanced, certainty.least)


def joint_probas(
    certainty: Certainty, rows: Codes, probabilities: Array, gold: Codes | None = None
) -> Floats:
    """Returns `[M, C]` probabilities of the labels that crowd and predictions together infer.

    Only true labels show whether a model repeats its annotators' mistakes. If it does, crowd and
    model are two opinions, and their mean is used. If it errs independently, the posterior of
    `judge` is used. The result weighs both cases by 0.5, or by their posterior probabilities with
    gold labels. Items without labels get the posterior of `judge`.

    Args:
        certainty, rows, probabilities: see `posteriors`.
        gold: `[M]` class codes, -1 if unknown.

    References:
        Stone (1961), The opinion pool; Hoeting et al. (1999), Bayesian model averaging: a tutorial.
    """
    independent = judge(certainty, rows, probabilities).posterior
    labelled = certainty.votes[rows].sum(axis=1) > 0
    dependent = independent.copy()
    dependent[labelled] = ((certainty.probas[rows] + probabilities) / 2)[labelled]
    share = 0.5
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        ratios = np.maximum(independent, LEAST) / np.maximum(dependent, LEAST)
        share = float(expit(np.log(ratios[known, gold[known]]).sum()))
    return share * independent + (1 - share) * dependent


def score_without_truth(
    crowd: Annotations,
    rows: Codes,
    probabilities: Array,
    *,
    gold: Codes | None = None,
    class_names: Array | None = None,
    sources: Sources = PEOPLE,
) -> tuple[Fields, Floats]:
    """Scores predictions of instances whose labels the predictor has not seen.

    Args:
        crowd: with identities. Labels of instances outside `rows` show how reliable each
            annotator is, too.
        rows: `[M]` the predicted instances; each needs a label.
        probabilities: `[M, C]`.
        gold: `[N]` class codes, -1 if unknown.
        class_names: `[C]` names for `per_class`.
        sources: which annotators are models, or count once.

    Returns:
        The metrics of `classification_metrics` and the posterior `[M, C]`. Accuracy, log loss,
        Brier score and calibration error are expected values, the others are against the most
        probable class. `accuracy_low` and `accuracy_high` are the accuracy's 80% interval.
    """
    certainty = certainty_without_gold(crowd, gold, sources)
    checked = None if gold is None else gold[rows]
    judgement = judge(certainty, rows, probabilities, gold=checked)
    accuracy = judgement.accuracy("model")
    metrics = classification_metrics(
        judgement.posterior.argmax(axis=1), probabilities, class_names=class_names
    )
    metrics |= expected_metrics(judgement.posterior, probabilities)
    named = ("accuracy", "accuracy_low", "accuracy_high")
    return metrics | dict(zip(named, accuracy, strict=True)), judgement.posterior
