"""What is recommended, how sure that is, and what would make it surer: as figures and as words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.annotations.statistics import imbalance_ratio
from neucrowd_tf.choice.calibration import Calibration
from neucrowd_tf.choice.candidates import BASELINE
from neucrowd_tf.choice.criteria import Evidence
from neucrowd_tf.choice.ranking import LEAST_KNOWN, Known, Ranked, paired_interval, rank

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
    return {
        **picked,
        "members": list(ranked.kept),
        "weights": list(shares),
        "target": target,
        "calibration": {
            "temperature": fit.temperature,
            "expected_calibration_error_before": fit.before,
            "expected_calibration_error_after": fit.after,
            "against": fit.against,
        },
        "text": " ".join(
            [
                sentence(best, ranked.kept, len(rows), folds),
                *advice(held_out, ranked, evidence, known, target),
            ]
        ),
        "methods": [
            *rows,
            *({"method": name, "score": None, "reason": why} for name, why in reasons.items()),
        ],
    }


def _scores(name: str, probabilities: Array, consensus: NDArray[np.int64]) -> dict[str, Any]:
    """Returns what a candidate's held-out predictions score against the consensus."""
    from neucrowd_tf.metrics import classification_metrics

    scaled = probabilities / probabilities.sum(axis=1, keepdims=True)
    metrics = classification_metrics(consensus, scaled, calibration=False)
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
        else f"no more than noise: the simpler {BASELINE} may serve as well"
    )
    count = "one comparison" if tried == 2 else f"{tried - 1} comparisons together"
    interval = f"95 % interval {points[1]:.1f} to {points[2]:.1f} points, for {count}"
    return (
        f"{head}, {points[0]:.1f} points above majority vote with logistic regression ({interval}),"
        f" which is {noise}."
    )


def advice(
    held_out: Mapping[str, Array], ranked: Ranked, evidence: Evidence, known: Known, target: str
) -> list[str]:
    """Returns sentences on what would make the choice surer."""
    said = []
    if len(known.labels) < LEAST_KNOWN:
        said.append(
            "Gold labels of 50 tasks (--gold) would tell how often it is right to 14 points or"
            " better."
        )
    else:
        hits = known.predictions[ranked.kept[0]].argmax(axis=1) == known.labels
        said.append(
            f"By {len(known.labels)} labels known to be true {ranked.kept[0]} is right in"
            f" {100 * hits.mean():.0f} % of cases."
        )
    each = evidence.weights.sum() / evidence.num_instances
    if each < FEW_LABELS:
        said.append(f"So would more labels an instance (now {each:.1f}).")
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
