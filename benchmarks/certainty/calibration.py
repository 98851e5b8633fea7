"""Learns the calibration of inferred labels on public crowds, and measures it on other families."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from benchmarks.certainty.crowds import MODELS, Crowd
from neucrowd_tf.certainty import Calibration, annotator_skills
from neucrowd_tf.certainty import recalibration as learned
from neucrowd_tf.certainty.skills import CHANCE_NOTE, UNRELIABLE_NOTE
from neucrowd_tf.io.files.atomic import write_text

Array = NDArray[Any]
WIDENING = 1.2  # of the shift's spread without gold labels: few families, and unknown relatives
MOST_COUNTED = 400  # instances of a large crowd
GOLD, DRAWS = 50, 5
# How far beyond the sizes of the learned crowds a crowd still counts as alike.
LOOSE = {
    "items": (0.5, 1e9),
    "classes": (1.0, 1.5),
    "labels": (0.75, 10.0),
    "shared": (0.75, 2),
    "agreement": (0.95, 2),
}


@functools.cache
def sample(one: Crowd, model: str) -> tuple[Array, Array, float]:
    """Returns evidence and whether labels are right, of some instances, and the spread's factor."""
    rows = np.random.default_rng(0).permutation(one.rows)[:MOST_COUNTED]
    probas, votes = one.probas[model], one.votes
    right = (probas.argmax(axis=1) == one.truth)[rows].astype(float)
    return learned.evidence(probas, votes)[rows], right, learned.spread_of(votes)


def learn(crowds: Sequence[Crowd], model: str = "consensus") -> Calibration:
    """Returns the calibration of a model on these crowds.

    Each crowd has the weight 1 / its shift's variance / the number of crowds in its family. The
    shifts' covariance is the empirical-Bayes estimate, by EM with Laplace's approximation for each
    crowd.
    """
    members = Counter(one.family for one in crowds)
    evidence, right, spreads = zip(*(sample(one, model) for one in crowds), strict=True)
    shares = 1.0 / np.array([members[one.family] for one in crowds]) / spreads
    shares *= len(members) / shares.sum()
    weights = [np.full(len(y), 300 * w / len(y)) for y, w in zip(right, shares, strict=True)]
    regression = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-8)
    regression.fit(np.concatenate(evidence), np.concatenate(right), np.concatenate(weights))
    coefficients = np.concatenate([regression.intercept_, regression.coef_[0]])
    logits = np.zeros((len(crowds), MOST_COUNTED))
    hits, used = np.zeros_like(logits), np.zeros_like(logits)
    for row, (features, y) in enumerate(zip(evidence, right, strict=True)):
        logits[row, : len(y)] = coefficients[0] + features @ coefficients[1:]
        hits[row, : len(y)], used[row, : len(y)] = y, 1.0
    covariance, factors = np.diag([0.5, 0.05]), np.array(spreads)[:, None, None]
    for _ in range(20):
        shift, error = shifts(logits, hits, used, covariance * factors)
        seconds = (shift[:, :, None] * shift[:, None] + error) / factors
        covariance = np.average(seconds, axis=0, weights=shares)
    return Calibration(coefficients, np.zeros(2), covariance * WIDENING**2, ranges(crowds))


def shifts(logits: Array, hits: Array, used: Array, covariances: Array) -> tuple[Array, Array]:
    """Returns `Calibration.shift_of` for K crowds at once, by Newton's method.

    Args:
        logits, hits, used: `[K, n]`, the last 0 where a crowd has fewer instances.
        covariances: `[K, 2, 2]` of the shifts.
    """
    design = np.stack([used, logits * used], axis=2)
    precision, shift = np.linalg.inv(covariances), np.zeros((len(logits), 2))
    for _ in range(100):
        mean = expit(logits + np.einsum("kni,ki->kn", design, shift))
        slope = np.einsum("kni,kn->ki", design, mean - hits)
        slope += np.einsum("kij,kj->ki", precision, shift)
        weight = (mean * (1 - mean))[:, :, None]
        curvature = design.transpose(0, 2, 1) @ (design * weight) + precision
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        shift -= step / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1.0)
        if np.abs(step).max() < 1e-6:
            break
    return shift, np.linalg.inv(curvature)


@functools.cache
def sizes_of(one: Crowd) -> dict[str, float]:
    """Returns `learned.sizes` of a crowd."""
    return learned.sizes(one.votes)


def ranges(crowds: Sequence[Crowd]) -> dict[str, list[float]]:
    """Returns the ranges of sizes within which the calibration is learned."""
    sizes = pd.DataFrame([sizes_of(one) for one in crowds], dtype=float)
    return {
        name: [round(sizes[name].min() * low, 3), round(sizes[name].max() * high, 3)]
        for name, (low, high) in LOOSE.items()
    }


def figures(one: Crowd, calibration: Calibration) -> dict[str, Any]:
    """Returns a crowd's estimates, with and without gold labels, and the true values."""
    probas, rows, right = one.probas["consensus"], one.rows, one.right()
    certainty = calibration.apply(probas, one.votes)
    expected = certainty.right()[rows]
    bins = np.minimum((expected * 10).astype(int), 9)
    gaps = np.abs(np.bincount(bins, expected - right, minlength=10))
    row = {name: getattr(one, name) for name in ("name", "family", "kind", "thinned")}
    row |= sizes_of(one) | {"true": right.mean()}
    row |= dict(zip(("expected", "low", "high"), certainty.accuracy(rows), strict=True))
    row |= {"calibration_error": gaps.sum() / len(rows), "unlike": len(certainty.notes)}
    row |= {"majority_vote": one.majority_vote()} | annotators(one, certainty)
    errors, inside = [], []
    for draw in range(DRAWS if len(rows) > 2 * GOLD else 0):
        chosen = np.random.default_rng([draw, GOLD]).permutation(rows)
        gold = np.full(len(probas), -1)
        gold[chosen[:GOLD]] = np.where(one.truth < 0, probas.shape[1], one.truth)[chosen[:GOLD]]
        rest = np.sort(chosen[GOLD:])
        estimate = calibration.fitted(probas, one.votes, gold).apply(probas, one.votes)
        low, high = (accuracy := estimate.accuracy(rest)).low, accuracy.high
        true = (probas.argmax(axis=1) == one.truth)[rest].mean()
        errors.append(abs(accuracy.value - true))
        inside.append(low <= true <= high)
    return row | {"gold_error": np.mean(errors or [np.nan]), "gold_in": np.mean(inside or [np.nan])}


def annotators(one: Crowd, certainty: learned.Certainty) -> dict[str, float]:
    """Returns how often annotators' intervals hold, and how right the notes on them are."""
    crowd, judged = one.annotations, annotator_skills(one.annotations, certainty)
    checked = one.truth[crowd.instances] != -1
    hits = checked & (crowd.labels == one.truth[crowd.instances])
    total, right = (
        np.bincount(crowd.annotators, x, minlength=crowd.num_annotators) for x in (checked, hits)
    )
    many = total >= 5
    share = right[many] / total[many]
    bad = share < (1.0 / crowd.num_classes + right.sum() / total.sum()) / 2
    inside = (judged.low[many] <= share) & (share <= judged.high[many])
    row = {"annotators_in": inside.mean() if many.sum() > 2 else np.nan, "bad": bad.sum()}
    for name, note in (("unreliable", UNRELIABLE_NOTE), ("near_chance", CHANCE_NOTE)):
        noted = (judged.note == note)[many]
        row |= {name: noted.sum(), f"{name}_right": (noted & bad).sum()}
    return row


def calibrate(crowds: Sequence[Crowd]) -> pd.DataFrame:
    """Writes the package's coefficients, and returns the figures of families left out."""
    models = {}
    for name in MODELS:
        calibration = learn(crowds, name)
        weights, covariance = calibration.weights.round(6), calibration.covariance.round(6)
        models[name] = {"weights": weights.tolist(), "covariance": covariance.tolist()}
    names = sorted({one.name for one in crowds})
    values = {"models": models, "ranges": ranges(crowds), "crowds": names}
    path = Path(learned.__file__).with_name("recalibration.json")
    write_text(path, json.dumps(values, indent=1) + "\n")
    rows = []
    for family in sorted({one.family for one in crowds}):
        calibration = learn([one for one in crowds if one.family != family])
        rows += [figures(one, calibration) for one in crowds if one.family == family]
    return pd.DataFrame(rows)
