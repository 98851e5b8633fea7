"""What is recommended, how sure that is, and what would make it surer: as figures and as words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from neucrowd_tf.annotations.statistics import imbalance_ratio
from neucrowd_tf.choice.average import mean_logits
from neucrowd_tf.choice.calibration import Calibration
from neucrowd_tf.choice.candidates import BASELINE
from neucrowd_tf.choice.criteria import Evidence
from neucrowd_tf.choice.ranking import (
    CONFIDENCE,
    LEAST_KNOWN,
    Known,
    Ranked,
    paired_interval,
    rank,
    shifted,
)

Array = NDArray[np.float64]
AVERAGE = "average"
# Where the commonest class is so many times the rarest, the target may change the choice.
IMBALANCED = 3.0
FEW_LABELS = 3.0


def recommend(
    held_out: Mapping[str, Array],
    ranked: Ranked,
    shares: Sequence[float],
    fit: Calibration,
    evidence: Evidence,
    known: Known,
    reasons: Mapping[str, str],
    folds: int,
    target: str,
) -> dict[str, Any]:
    """Returns `Auto.recommendation_`."""
    chosen = ranked.kept[0] if len(ranked.kept) == 1 else AVERAGE
    everything = dict(held_out) | ({AVERAGE: fit.probabilities} if chosen == AVERAGE else {})
    baseline = everything[BASELINE].argmax(axis=1) == evidence.consensus
    rows: list[dict[str, Any]] = []
    for name, probabilities in everything.items():
        row = _scores(name, probabilities, evidence.consensus)
        row["averaged"] = name in ranked.kept
        compared: tuple[Any, Any, Any] = (None, None, None)
        if name != BASELINE:
            right = probabilities.argmax(axis=1) == evidence.consensus
            compared = paired_interval(right, baseline, folds, len(everything) - 1)
        row |= dict(zip(("difference", "low", "high"), compared, strict=True))
        row["more_than_noise"] = None if compared[1] is None else bool(compared[1] > 0)
        row |= {criterion: by_name.get(name) for criterion, by_name in ranked.scores.items()}
        rows.append(row)
    best = next(row for row in rows if row["method"] == chosen)
    picked = {key: best[key] for key in ("method", "difference", "low", "high", "more_than_noise")}
    by_truth = by_known(ranked, shares, known, folds)
    return {
        **picked,
        "members": list(ranked.kept),
        "weights": list(shares),
        "target": target,
        "by_known_labels": by_truth,
        "calibration": {
            "temperature": fit.temperature,
            "expected_calibration_error_before": fit.before,
            "expected_calibration_error_after": fit.after,
            "against": fit.against,
        },
        "text": " ".join(
            [
                sentence(best, ranked.kept, len(rows), folds),
                *advice(held_out, ranked, evidence, known, by_truth, target),
            ]
        ),
        "methods": [
            *rows,
            *({"method": name, "score": None, "reason": why} for name, why in reasons.items()),
        ],
    }


def by_known(
    ranked: Ranked, shares: Sequence[float], known: Known, folds: int
) -> dict[str, float] | None:
    """Returns how often what is recommended is right by the labels known to be true, Wilson's
    interval of that, and how far it is above the baseline, paired, with the interval of this; None
    where fewer than thirty are known.
    """
    if len(known.labels) < LEAST_KNOWN:
        return None
    seen = [shifted(known.predictions[name], ranked.corrections[name]) for name in ranked.kept]
    right = mean_logits(seen, shares).argmax(axis=1) == known.labels
    baseline = known.predictions[BASELINE].argmax(axis=1) == known.labels
    count = len(known.labels)
    interval = binomtest(int(right.sum()), count).proportion_ci(CONFIDENCE, "wilson")
    difference, low, high = paired_interval(right, baseline, folds)
    return {
        "labels": count,
        "right": float(right.mean()),
        "right_low": float(interval.low),
        "right_high": float(interval.high),
        "baseline_right": float(baseline.mean()),
        "difference": difference,
        "difference_low": low,
        "difference_high": high,
    }


def _scores(name: str, probabilities: Array, consensus: NDArray[np.int64]) -> dict[str, Any]:
    """Returns what a candidate's held-out predictions score against the consensus."""
    from neucrowd_tf.metrics import classification_metrics

    scaled = probabilities / probabilities.sum(axis=1, keepdims=True)
    metrics = classification_metrics(consensus, scaled)
    return {
        "method": name,
        "score": metrics["accuracy"],
        "balanced_accuracy": metrics["balanced_accuracy"],
        "log_loss": metrics["log_loss"],
    }


def sentence(best: Mapping[str, Any], kept: list[str], tried: int, folds: int) -> str:
    """Returns what is recommended and how sure that is."""
    what = best["method"]
    if what == AVERAGE:
        what = f"the average of {', '.join(kept)}"
    head = (
        f"{what} is recommended: in {folds}-fold cross-validation against consensus labels its"
        f" accuracy is {best['score']:.3f}"
    )
    if best["difference"] is None:
        rivals = "nothing else could be tried" if tried == 1 else "none of the others is better"
        return f"{head}, and {rivals}. It is majority vote with logistic regression."
    points = [100 * float(best[name]) for name in ("difference", "low", "high")]
    noise = (
        "more than noise"
        if best["more_than_noise"]
        else f"no more than noise: the crowd's labels do not tell it from {BASELINE}, nor show"
        " mistakes that annotators share"
    )
    count = "one comparison" if tried == 2 else f"{tried - 1} comparisons together"
    interval = f"95 % interval {points[1]:.1f} to {points[2]:.1f} points, for {count}"
    return (
        f"{head}, {points[0]:.1f} points above majority vote with logistic regression ({interval}),"
        f" which is {noise}."
    )


def advice(
    held_out: Mapping[str, Array],
    ranked: Ranked,
    evidence: Evidence,
    known: Known,
    by_truth: Mapping[str, float] | None,
    target: str,
) -> list[str]:
    """Returns sentences on what the truth says, and on what would make the choice surer."""
    said = []
    if by_truth is None:
        said.append(
            "Gold labels of 50 tasks (--gold) would tell how often it is right, to within 14 points"
            f" at worst, and how it compares with {BASELINE}."
        )
    else:
        points = {name: 100 * value for name, value in by_truth.items()}
        above = (
            f", {points['difference']:.1f} points ({points['difference_low']:.1f} to"
            f" {points['difference_high']:.1f}) above {BASELINE}"
        )
        said.append(
            f"By {by_truth['labels']} labels known to be true it is right in"
            f" {points['right']:.0f} % of cases (95 % interval {points['right_low']:.0f} to"
            f" {points['right_high']:.0f}){above if ranked.kept != [BASELINE] else ''}."
        )
    each = evidence.weights.sum() / evidence.num_instances
    if each < FEW_LABELS:
        said.append(f"More labels an instance (now {each:.1f}) would make the choice surer.")
    ratio = imbalance_ratio(np.bincount(evidence.consensus, minlength=evidence.num_classes))
    if ratio > IMBALANCED:
        other = rank(held_out, evidence, known, balanced=target == "as_trained")
        if set(other.kept) != set(ranked.kept):
            flag = "balanced" if target == "as_trained" else "as_trained"
            how = "equally often" if target == "as_trained" else "as often as in training"
            said.append(
                f"The commonest class is {ratio:.0f} times the rarest; if classes will be met"
                f" {how}, use --target={flag}: it chooses {', '.join(other.kept)}."
            )
    return said
