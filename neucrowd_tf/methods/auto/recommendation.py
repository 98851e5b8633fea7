"""The recommendation of `auto` as figures and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.agreement import Scale
from neucrowd_tf.annotations.statistics import imbalance_ratio
from neucrowd_tf.annotations.votes import decided
from neucrowd_tf.certainty import Estimate
from neucrowd_tf.certainty.inference import shown
from neucrowd_tf.declare.types import Fields, Floats, Indices
from neucrowd_tf.evaluation.cached_consensus import certainty_without_gold
from neucrowd_tf.evaluation.without_truth import LEAST_GOLD, Judgement, judge
from neucrowd_tf.methods.auto.candidate_selection import CONFIDENCE, Selected
from neucrowd_tf.methods.auto.candidates import BASELINE
from neucrowd_tf.methods.auto.evidence import Evidence
from neucrowd_tf.methods.auto.pooling import Calibration

AVERAGE = "average"
CONSTANT = "commonest class"
GOLD_ADVICE = "Gold labels of 50 random items (--gold) would narrow this interval."
# If the most frequent class is this many times the rarest, the target may matter.
IMBALANCED = 3.0
FEW_LABELS = 3.0  # per item
# A model is useful if it certainly avoids this share of the most frequent class's errors. Less may
# be due to the choice of members, because the labels that choose them also judge the average.
SLIGHT = 0.05
# It is not useful if it avoids at most `SLIGHT`, and certainly at most this share.
MUCH = 0.35
UNDECIDED = (
    "Whether it is better than the most frequent class is undecided: the difference in accuracy is"
    " {}, 95% interval. More gold labels (--gold) or labels per item decide it."
)


def recommend(
    held_out: Mapping[str, Floats],
    selected: Selected,
    weights: Sequence[float],
    calibration: Calibration,
    evidence: Evidence,
    judgement: Judgement,
    reasons: Mapping[str, str],
) -> Fields:
    """Returns `Auto.recommendation_` as far as it follows from held-out predictions.

    Args:
        held_out: predictions `[N, C]` by candidate.
        selected: the members and their corrections.
        weights: of the members.
        calibration: the average's calibrated predictions.
        evidence: the crowd's labels of these instances.
        judgement: see `judged_predictions`.
        reasons: why methods were left out.
    """
    chosen = selected.members[0]
    predictions = dict(held_out)
    if len(selected.members) > 1:
        chosen = AVERAGE
        predictions[AVERAGE] = calibration.probabilities
    accuracy = judgement.accuracy(AVERAGE)
    lead = judgement.accuracy(AVERAGE, minus=BASELINE, level=CONFIDENCE)
    above = judgement.accuracy(AVERAGE, minus=CONSTANT, level=CONFIDENCE)
    better = "unclear"
    if lead.high < 0 or selected.members == [BASELINE]:
        better = "no"
    elif lead.low > 0:
        better = "yes"
    checked = int((judgement.gold >= 0).sum())
    sentences = [
        sentence(chosen, selected.members, accuracy, checked, balanced=selected.balanced),
        f"Better than majority vote with logistic regression ({BASELINE}): {better}.",
    ]
    useful = usefulness(above, 1 - judgement.accuracy(CONSTANT).value)
    if useful is False:
        sentences.append("It is no better than the most frequent class: do not use this model.")
    elif useful is None:
        sentences.append(UNDECIDED.format(shown(above)))
    if checked < LEAST_GOLD:
        sentences.append(GOLD_ADVICE)
    return {
        "method": chosen,
        "accuracy": accuracy._asdict(),
        "difference": lead.value,
        "low": lead.low,
        "high": lead.high,
        "better_than_majority_vote": better,
        "better_than_commonest_class": useful,
        "gold_labels": checked,
        "members": list(selected.members),
        "weights": list(weights),
        "temperature": calibration.temperature,
        "text": " ".join([*sentences, *advice(evidence, balanced=selected.balanced)]),
        "methods": _scores(predictions, evidence.consensus, reasons),
    }


def _scores(
    predictions: Mapping[str, Floats], consensus: Indices, reasons: Mapping[str, str]
) -> list[Fields]:
    """Returns a row per method: its agreement with the consensus, or why it was left out."""
    rows: list[Fields] = []
    for name, probabilities in predictions.items():
        agrees = probabilities.argmax(axis=1) == consensus
        rows.append({"method": name, "score": float(agrees.mean())})
    for name, reason in reasons.items():
        rows.append({"method": name, "score": None, "reason": reason})
    return rows


def usefulness(above: Estimate, errors: float) -> bool | None:
    """Returns whether a model is useful; None if its interval decides neither.

    Args:
        above: by how much the model is right more often than the most frequent class.
        errors: how often the most frequent class is wrong.
    """
    if above.low > SLIGHT * errors:
        return True
    if above.value <= SLIGHT * errors and above.high <= MUCH * errors:
        return False
    return None


def judged_predictions(
    crowd: Annotations,
    rows: Indices,
    average: Floats,
    baseline: Floats,
    gold: Indices,
    *,
    balanced: bool,
    scale: Scale,
) -> Judgement:
    """Judges the average, the baseline and the most frequent class by the crowd and gold labels.

    Args:
        crowd: the annotations of all instances.
        rows: `[M]` the instances with held-out predictions.
        average, baseline: `[M, C]` their predictions.
        gold: class codes of all instances, -1 if unknown.
        balanced: whether all classes count equally.
        scale: of the classes.
    """
    certainty = certainty_without_gold(crowd, gold, scale=scale)
    shares = certainty.probas[rows].mean(axis=0)
    predicted = {
        AVERAGE: decided(average, scale),
        BASELINE: decided(baseline, scale),
        CONSTANT: decided(np.tile(shares, (len(rows), 1)), scale),
    }
    return judge(certainty, rows, average, predicted, gold[rows], balanced=balanced)


def sentence(
    chosen: str, members: Sequence[str], accuracy: Estimate, checked: int, *, balanced: bool = False
) -> str:
    """Returns the recommendation with its accuracy.

    Args:
        chosen: a candidate, or `AVERAGE`.
        members: of the average.
        accuracy: of the held-out predictions.
        checked: number of gold labels.
        balanced: whether it is the mean over classes.
    """
    if chosen == AVERAGE:
        chosen = f"the average of {', '.join(members)}"
    measure = "accuracy"
    if balanced:
        measure = "balanced accuracy"
    basis = "expected, without gold labels"
    if checked >= LEAST_GOLD:
        basis = f"{checked} gold labels"
    return (
        f"Recommended: {chosen}. Its {measure} on items that it has not seen is {shown(accuracy)}"
        f" (80% interval; {basis})."
    )


def advice(evidence: Evidence, *, balanced: bool) -> list[str]:
    """Returns sentences on what could make the choice more certain."""
    sentences = []
    labels_per_item = evidence.weights.sum() / len(evidence.consensus)
    if labels_per_item < FEW_LABELS:
        sentences.append(
            f"More labels per item (now {labels_per_item:.1f}) would make the choice surer."
        )
    ratio = imbalance_ratio(np.bincount(evidence.consensus, minlength=evidence.num_classes))
    if ratio > IMBALANCED and not balanced:
        sentences.append(
            f"The most frequent class is {ratio:.0f} times the rarest. If classes will be equally"
            " frequent later, use --hparam target=balanced."
        )
    return sentences
