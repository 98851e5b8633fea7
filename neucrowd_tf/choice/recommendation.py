"""The recommendation of `auto` as figures and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.annotations.statistics import imbalance_ratio
from neucrowd_tf.choice.average import mean_logits
from neucrowd_tf.choice.candidates import BASELINE
from neucrowd_tf.choice.evidence import Evidence
from neucrowd_tf.choice.pooling import Calibration
from neucrowd_tf.choice.ranking import (
    CONFIDENCE,
    LEAST_GOLD,
    Gold,
    Ranked,
    held_out_interval,
    shifted,
)
from neucrowd_tf.evaluation.intervals import Interval, wilson_interval
from neucrowd_tf.metrics import classification_metrics

Array = NDArray[np.float64]
AVERAGE = "average"
# If the commonest class is this many times the rarest, the target may matter.
IMBALANCED = 3.0
FEW_LABELS = 3.0


def recommend(
    held_out: Mapping[str, Array],
    ranked: Ranked,
    weights: Sequence[float],
    fit: Calibration,
    evidence: Evidence,
    gold: Gold,
    reasons: Mapping[str, str],
    folds: int,
    target: str,
) -> dict[str, Any]:
    """Returns `Auto.recommendation_`."""
    chosen = ranked.members[0] if len(ranked.members) == 1 else AVERAGE
    everything = dict(held_out) | ({AVERAGE: fit.probabilities} if chosen == AVERAGE else {})
    baseline = everything[BASELINE].argmax(axis=1) == evidence.consensus
    rows: list[dict[str, Any]] = []
    for name, probabilities in everything.items():
        scaled = probabilities / probabilities.sum(axis=1, keepdims=True)
        metrics = classification_metrics(evidence.consensus, scaled)
        row = {"method": name, "score": metrics["accuracy"]}
        row |= {metric: metrics[metric] for metric in ("balanced_accuracy", "log_loss")}
        row["averaged"] = name in ranked.members
        row |= dict.fromkeys(("difference", "low", "high", "more_than_noise"))
        if name != BASELINE:
            agrees = probabilities.argmax(axis=1) == evidence.consensus
            gain = held_out_interval(agrees, baseline, folds, len(everything) - 1)
            row |= {"difference": gain.estimate, "low": gain.low, "high": gain.high}
            row["more_than_noise"] = bool(gain.low > 0)
        row |= {criterion: by_name.get(name) for criterion, by_name in ranked.scores.items()}
        rows.append(row)
    best = next(row for row in rows if row["method"] == chosen)
    picked = {key: best[key] for key in ("method", "difference", "low", "high", "more_than_noise")}
    by_gold = score_by_gold(ranked, weights, gold, folds)
    sentences = [
        sentence(best, ranked.members, len(rows), folds),
        gold_sentence(
            by_gold, ranked.members, validation=len(gold.labels) > int((gold.rows >= 0).sum())
        ),
        *advice(evidence, target),
    ]
    return {
        **picked,
        "members": list(ranked.members),
        "weights": list(weights),
        "target": target,
        "by_known_labels": by_gold,
        "calibration": {
            "temperature": fit.temperature,
            "expected_calibration_error_before": fit.before,
            "expected_calibration_error_after": fit.after,
            "against": fit.against,
        },
        "text": " ".join(sentences),
        "methods": [
            *rows,
            *({"method": name, "score": None, "reason": why} for name, why in reasons.items()),
        ],
    }


def score_by_gold(
    ranked: Ranked, weights: Sequence[float], gold: Gold, folds: int
) -> dict[str, float] | None:
    """Returns the recommended method's accuracy on true labels; None for fewer than thirty.

    `right` has Wilson's interval. `difference` is paired with the baseline and has its interval.
    """
    count = len(gold.labels)
    if count < LEAST_GOLD:
        return None
    tested = [shifted(gold.predictions[name], ranked.corrections[name]) for name in ranked.members]
    right = mean_logits(tested, weights).argmax(axis=1) == gold.labels
    baseline = gold.predictions[BASELINE].argmax(axis=1) == gold.labels
    low, high = wilson_interval(right.sum(), count, CONFIDENCE)
    gain = held_out_interval(right, baseline, folds)
    return {
        "labels": count,
        "right": float(right.mean()),
        "right_low": float(low),
        "right_high": float(high),
        "baseline_right": float(baseline.mean()),
        "difference": gain.estimate,
        "difference_low": gain.low,
        "difference_high": gain.high,
    }


def _points(difference: Interval) -> str:
    """Returns a difference of shares in points with its interval."""
    estimate, low, high = (100 * v for v in (difference.estimate, difference.low, difference.high))
    return f"{estimate:+.1f} points [{low:+.1f}, {high:+.1f}]"


def sentence(best: Mapping[str, Any], members: list[str], tried: int, folds: int) -> str:
    """Returns the recommendation and its difference from the baseline."""
    chosen = best["method"]
    if chosen == AVERAGE:
        chosen = f"the average of {', '.join(members)}"
    agreement = (
        f"Its held-out predictions agree with the consensus labels on {100 * best['score']:.1f}% of"
        f" the items ({folds}-fold cross-validation)"
    )
    if best["difference"] is None:
        others = "No other method could be tried." if tried == 1 else "No other method is better."
        return (
            f"Recommended: {chosen}, majority vote with logistic regression. {others} {agreement}."
        )
    gain = _points(Interval(best["difference"], best["low"], best["high"]))
    count = "one comparison" if tried == 2 else f"{tried - 1} comparisons together"
    noise = (
        "The interval does not include 0, so the difference is more than noise."
        if best["more_than_noise"]
        else f"The interval includes 0: the crowd's labels cannot tell whether it is better than"
        f" {BASELINE}."
    )
    return (
        f"Recommended: {chosen}. {agreement}, which is {gain} compared with majority vote with"
        f" logistic regression ({BASELINE}; 95% interval for {count}). {noise} Agreement is not"
        " accuracy: the consensus has the mistakes that annotators share."
    )


def gold_sentence(
    by_gold: Mapping[str, float] | None, members: list[str], *, validation: bool = False
) -> str:
    """Returns the accuracy on gold labels, or the advice to provide some.

    Args:
        by_gold: see `score_by_gold`.
        members: of the average.
        validation: whether some labels are of validation data, which may be majority votes.
    """
    if by_gold is None:
        return (
            "Gold labels of 50 items (--gold) would show its accuracy to within 14 points, and a"
            f" fair comparison with {BASELINE}."
        )
    count, share = by_gold["labels"], 100 * by_gold["right"]
    interval = f"[{100 * by_gold['right_low']:.0f}%, {100 * by_gold['right_high']:.0f}%]"
    text = (
        f"It agrees with {share:.0f}% {interval} of the {count} gold and validation labels"
        if validation
        else f"On {count} gold labels its accuracy is {share:.0f}% {interval}"
    )
    if members == [BASELINE]:
        return f"{text}."
    bounds = (by_gold[name] for name in ("difference", "difference_low", "difference_high"))
    return f"{text}, {_points(Interval(*bounds))} compared with {BASELINE}."


def advice(evidence: Evidence, target: str) -> list[str]:
    """Returns sentences on what could make the choice more certain."""
    sentences = []
    each = evidence.weights.sum() / len(evidence.consensus)
    if each < FEW_LABELS:
        sentences.append(f"More labels per item (now {each:.1f}) would make the choice surer.")
    ratio = imbalance_ratio(np.bincount(evidence.consensus, minlength=evidence.num_classes))
    if ratio > IMBALANCED and target == "as_trained":
        sentences.append(
            f"The commonest class is {ratio:.0f} times the rarest. If classes will be equally"
            " frequent later, use --target=balanced."
        )
    return sentences
