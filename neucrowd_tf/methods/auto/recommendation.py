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
FEW_LABELS = 3.0
# A model is useful if it surely avoids this share of the most frequent class's errors. Members are
# chosen by the labels that judge the average, which alone gains a little.
SLIGHT = 0.05
# It is not useful if it avoids no such share, and surely less than this one.
MUCH = 0.35
UNDECIDED = (
    "Whether it is better than the most frequent class is undecided: the difference in accuracy is"
    " {}, 95% interval. More gold labels (--gold) or labels per item decide it."
)


def recommend(
    held_out: Mapping[str, Floats],
    selected: Selected,
    weights: Sequence[float],
    fit: Calibration,
    evidence: Evidence,
    judged: Judgement,
    reasons: Mapping[str, str],
    target: str,
) -> Fields:
    """Returns `Auto.recommendation_`.

    Args:
        held_out: predictions `[N, C]` by candidate.
        selected: the members and their corrections.
        weights: of the members.
        fit: the average's calibrated predictions.
        evidence: the crowd's labels of these instances.
        judged: see `judged_predictions`.
        reasons: why methods were left out.
        target: of `Auto`.
    """
    if len(selected.members) == 1:
        chosen = selected.members[0]
    else:
        chosen = AVERAGE
    everything = dict(held_out) | ({AVERAGE: fit.probabilities} if chosen == AVERAGE else {})
    hits = {name: p.argmax(axis=1) == evidence.consensus for name, p in everything.items()}
    accuracy = judged.accuracy(AVERAGE)
    lead = judged.accuracy(AVERAGE, minus=BASELINE, level=CONFIDENCE)
    above = judged.accuracy(AVERAGE, minus=CONSTANT, level=CONFIDENCE)
    better = "yes" if lead.low > 0 else "no" if lead.high < 0 else "unclear"
    if selected.members == [BASELINE]:
        better = "no"
    checked = int((judged.gold >= 0).sum())
    sentences = [
        sentence(chosen, selected.members, accuracy, checked, balanced=target == "balanced"),
        f"Better than majority vote with logistic regression ({BASELINE}): {better}.",
    ]
    errors = 1 - judged.accuracy(CONSTANT).value
    useful = usefulness(above, errors)
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
        "target": target,
        "temperature": fit.temperature,
        "text": " ".join([*sentences, *advice(evidence, target)]),
        "methods": [
            *({"method": name, "score": float(agrees.mean())} for name, agrees in hits.items()),
            *({"method": name, "score": None, "reason": why} for name, why in reasons.items()),
        ],
    }


def usefulness(above: Estimate, errors: float) -> bool | None:
    """Returns whether a model is useful; None if its interval decides neither.

    Args:
        above: by how much the model is right more often than the most frequent class.
        errors: how often the most frequent class is wrong.
    """
    if above.low > SLIGHT * errors:
        return True
    none = above.value <= SLIGHT * errors and above.high <= MUCH * errors
    if none:
        return False
    return None


def judged_predictions(
    crowd: Annotations,
    rows: Indices,
    fit: Calibration,
    baseline: Floats,
    gold: Indices,
    *,
    balanced: bool = False,
    scale: Scale = "nominal",
) -> Judgement:
    """Judges the average, the baseline and the commonest class by the crowd and gold labels.

    Args:
        crowd: the annotations of all instances.
        rows: `[M]` the instances with held-out predictions.
        fit: the average's predictions.
        baseline: `[M, C]` those of the baseline.
        gold: class codes of all instances, -1 if unknown.
        balanced: whether all classes count equally.
        scale: of the classes.
    """
    certainty = certainty_without_gold(crowd, gold, scale=scale)
    model = fit.probabilities
    shares = certainty.probas[rows].mean(axis=0)
    every = {AVERAGE: model, BASELINE: baseline, CONSTANT: np.tile(shares, (len(rows), 1))}
    predicted = {name: decided(probas, scale) for name, probas in every.items()}
    return judge(certainty, rows, model, predicted, gold[rows], balanced=balanced)


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
    if balanced:
        measure = "balanced accuracy"
    else:
        measure = "accuracy"
    if checked >= LEAST_GOLD:
        basis = f"{checked} gold labels"
    else:
        basis = "expected, without gold labels"
    return (
        f"Recommended: {chosen}. Its {measure} on items that it has not seen is {shown(accuracy)}"
        f" (80% interval; {basis})."
    )


def advice(evidence: Evidence, target: str) -> list[str]:
    """Returns sentences on what could make the choice more certain."""
    sentences = []
    each = evidence.weights.sum() / len(evidence.consensus)
    if each < FEW_LABELS:
        sentences.append(f"More labels per item (now {each:.1f}) would make the choice surer.")
    ratio = imbalance_ratio(np.bincount(evidence.consensus, minlength=evidence.num_classes))
    if ratio > IMBALANCED and target == "as_trained":
        sentences.append(
            f"The most frequent class is {ratio:.0f} times the rarest. If classes will be equally"
            " frequent later, use --hparam target=balanced."
        )
    return sentences
