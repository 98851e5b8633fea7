"""The page's sections on the crowd: agreement, annotators, labels to collect, doubtful items."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

import numpy as np

from neucrowd_tf.aggregation.base import labelled_rows
from neucrowd_tf.aggregation.families import PEOPLE, Sources
from neucrowd_tf.annotations import Annotations, agreement, statistics
from neucrowd_tf.certainty import skills as verdicts
from neucrowd_tf.certainty.agreement_intervals import agreement_intervals, titles
from neucrowd_tf.certainty.drift import Change, changes
from neucrowd_tf.certainty.estimate import NOTHING, Estimate
from neucrowd_tf.certainty.inference import Inference
from neucrowd_tf.certainty.inference import shown as interval
from neucrowd_tf.certainty.judges import judges
from neucrowd_tf.certainty.labelling.belief import belief_of
from neucrowd_tf.certainty.labelling.plan import REACHED, accuracy_after, make_plan, reason
from neucrowd_tf.certainty.models import compare_models
from neucrowd_tf.declare.picking import attributes_of, mapped
from neucrowd_tf.declare.types import Fields, Floats, Indices, Mask
from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.agreement_tables import MANY_SHARED, pairs, people_only
from neucrowd_tf.evaluation.cached_consensus import consensus_method, inferred
from neucrowd_tf.evaluation.report.text import percent, polyline, shown
from neucrowd_tf.io.values import numbers_of
from neucrowd_tf.names import among

# Agreement on fewer items than this is shown, but not judged.
LEAST_OVERLAP = 30
MOST_ANNOTATORS = 200  # in the tables
MOST_PAIRS = 8
MOST_POINTS = 200  # of the plot of annotators
MOST_CHARTS = 24
MOST_ITEMS = 60
# Of the labels to collect: items x annotators x classes x classes, and labels.
MOST_PLANNED = 30_000_000
MOST_REQUESTS = 500
# Annotators' shares of right labels are shown by class for so many classes.
MOST_CLASSES = 12
# What points of the plot of annotators are.
KINDS = ("an annotator", "a model", "unreliable")
# Why there is no verdict on an annotator.
REASONS = {
    verdicts.ALONE_NOTE: "no other annotator labelled the same items",
    verdicts.FEW_NOTE: f"fewer than {verdicts.FEW_LABELS} labels on items that others labelled too",
    verdicts.ONE_CLASS_NOTE: "all of the annotator's items have one consensus class",
    verdicts.CHANCE_NOTE: "labels hardly depend on others' labels; check some with gold labels",
    verdicts.OPPOSED_NOTE: "there are two groups, and labels do not show which is right",
    verdicts.WEAK_NOTE: "the consensus may be little better than chance",
}


def crowd_sections(
    annotations: Annotations,
    sources: Sources = PEOPLE,
    gold: Indices | None = None,
    scale: agreement.Scale = "nominal",
    texts: Mapping[str, str] | None = None,
    times: Floats | None = None,
) -> Fields:
    """Returns the template's values for a crowd.

    Args:
        annotations: of N items.
        sources: which annotators are models, or count once.
        gold: `[N]` class codes, -1 if unknown, or None.
        scale: of the classes, for the coefficients of agreement.
        texts: what was labelled, by the name of the instance.
        times: `[A]` seconds since 1970 of each label, or None.
    """
    described = statistics.describe(annotations)
    inference = inferred(annotations, gold, sources, scale)
    models = list(sources.models)
    values: Fields = {"annotators": None, "relabelling": None, "models": None}
    if annotations.has_identities:
        people = ~np.isin(annotations.annotator_names.astype(str), models)
        values["relabelling"] = _requests(inference, people)
        values["annotators"] = _annotators(inference, changes(inference, times), ~people)
        if models:
            values["models"] = _models(inference, models)
    classes = map(shown, annotations.class_names.tolist())
    return values | {
        "stats": described,
        "shares": list(zip(classes, described["class_shares"], strict=True)),
        "consensus": {
            "method": consensus_method(annotations, scale).replace("_", " "),
            "accuracy": inference.accuracy,
            "without_gold": inference.estimates is not None,
            "lines": inference.lines(),
            "gold": int((inference.gold >= 0).sum()),
        },
        "agreement": _agreement(annotations, models, scale),
        "items": _items(inference),
        "texts": texts or {},
    }


def _agreement(annotations: Annotations, models: Sequence[str], scale: agreement.Scale) -> Fields:
    """Returns the agreement of people, also by pairs."""
    numbers = numbers_of(annotations.class_names.tolist())
    if scale == "interval" and numbers is None:
        raise DataError("--scale=interval: a class is not a number. Use --scale=ordinal.")
    crowd = people_only(annotations, models)
    counts = crowd.vote_counts()
    overlap = int((counts.sum(axis=1) > 1).sum())
    measured = dict.fromkeys(agreement.COEFFICIENTS, NOTHING)
    if overlap:
        measured = agreement_intervals(counts, scale, numbers)
    compared = pairs(crowd) if annotations.has_identities else []
    names = annotations.annotator_names.tolist()
    classes = _short_classes(annotations)
    by_class = zip(
        classes, counts.sum(axis=0).tolist(), agreement.class_agreement(counts), strict=True
    )
    return {
        "overlap": overlap,
        "least_overlap": LEAST_OVERLAP,
        "kappa": measured["fleiss"],
        "coefficients": [(text, measured[name]) for name, text in titles(scale).items()],
        "scale": scale,
        "order": " < ".join(classes) if scale != "nominal" else "",
        "by_class": list(by_class)[:MOST_CLASSES] if len(classes) > 1 else [],
        "unanimous": int((agreement.item_agreement(counts) == 1).sum()),
        "numbers": scale == "nominal" and annotations.num_classes > 2 and numbers is not None,
        "least": [(names[p.first], names[p.second], *p[2:]) for p in compared[:MOST_PAIRS]],
        "pairs": len(compared),
        "many": MANY_SHARED,
        "models": [name for name in names if str(name) in models],
    }


def _models(inference: Inference, models: Sequence[str]) -> Fields:
    """Returns how each model compares with people and gold labels, and what its label is worth."""
    crowd = inference.crowd
    people = inference.people
    labels = None
    probas = None
    if people:
        labels = people.labels
        probas = people.model.probas_
    compared, lines = compare_models(crowd, models, labels)
    worths = {worth.annotator: worth for worth in compared}
    votes = people_only(crowd, models).vote_counts().sum(axis=1)
    rows = []
    for judge in judges(crowd, models, probas, inference.gold):
        name = crowd.annotator_names[judge.annotator]
        rows.append((name, judge, worths[judge.annotator]))
    return {
        "rows": rows,
        "judged": any(judge.items for _, judge, _ in rows),
        "lines": lines,
        "people": bool(votes.any()),
        "one_person": votes.max(initial=0) == 1,
        "classes": _short_classes(crowd)[:MOST_CLASSES],
    }


def _short_classes(crowd: Annotations) -> list[str]:
    return [shown(name, 24) for name in crowd.class_names.tolist()]


def _requests(inference: Inference, people: Mask) -> Fields | None:
    """Returns the labels to collect next and the annotators to ask; None for a large crowd."""
    crowd = inference.crowd
    if crowd.num_instances * crowd.num_annotators * crowd.num_classes**2 > MOST_PLANNED:
        return None
    belief = belief_of(crowd, inference.probas, people)
    budget = int(np.clip(crowd.num_annotations // 10, 10, MOST_REQUESTS))
    plan = make_plan(crowd, belief, budget, free=people)
    votes = crowd.vote_counts()
    rows = []
    for ask in plan[:MOST_ITEMS]:
        names = (crowd.instance_names[ask.task], crowd.annotator_names[ask.annotator])
        rows.append((*names, REACHED[0] * ask.gain, reason(crowd, belief, votes, ask)))
    labelled = labelled_rows(crowd, inference.gold).sum()
    now = inference.certainty.accuracy()
    gains = np.array([ask.gain for ask in plan])
    then = Estimate(*accuracy_after(now, gains, int(labelled)))
    return {"rows": rows, "total": len(plan), "now": interval(now), "then": interval(then)}


def _drawn(change: Change, name: object) -> Fields:
    """Returns the drawing of a change: shares of neighbouring labels, and the two rates."""
    total = len(change.agrees)
    parts = np.array_split(change.agrees, min(20, total // 5))
    sizes = np.array(list(map(len, parts)))
    before, after = change.rates
    means = (np.cumsum(sizes) - sizes / 2, np.array(list(map(np.mean, parts))))
    rates = (
        np.array([0, change.num_before, change.num_before, total]),
        np.repeat([before, after], 2),
    )
    drawings = {f"mean of {sizes[0]:,} labels": means, "before and after": rates}
    lines = []
    for label, (places, shares) in drawings.items():
        points = polyline(400 * places / total, 150 - 150 * shares)
        lines.append({"label": label, "points": points})
    return {"title": change.line(shown(name)), "total": total, "lines": lines}


def _plot(skills: verdicts.Skills, chance: float, models: Mask, names: Sequence[object]) -> Fields:
    """Returns the drawing of annotators with labels, from the highest skill to the lowest.

    Args:
        skills: of all annotators.
        chance: the accuracy of random labels.
        models: `[R]` which annotators are models.
        names: of all annotators.
    """
    order = np.argsort(-skills.skill, kind="stable")
    order = order[np.isfinite(skills.skill[order])]
    if len(order) > MOST_POINTS:  # as many from each part of the order
        order = order[np.linspace(0, len(order) - 1, MOST_POINTS).astype(int)]
    kinds = np.where(models, KINDS[1], KINDS[0])
    kinds = np.where(skills.note == verdicts.UNRELIABLE_NOTE, KINDS[2], kinds)
    step = 400 / max(len(order), 1)
    points = []
    for place, code in enumerate(order.tolist()):
        point: Fields = {"name": shown(names[code]), "kind": kinds[code]}
        point["x"] = round((place + 0.5) * step, 1)
        for name, shares in (("y", skills.skill), ("top", skills.high), ("bottom", skills.low)):
            point[name] = _height(shares[code])
        points.append(point)
    return {
        "points": points,
        "kinds": among(KINDS, kinds[order]),
        "mean": _height(skills.average),
        "chance": _height(chance),
    }


def _height(share: float) -> float:
    """Returns where a share stands in a drawing, from 150 for 0 to 0 for 1."""
    return round(150 - 150 * float(share), 1)


def _annotators(inference: Inference, changed: Sequence[Change], models: Mask) -> Fields:
    """Returns the annotators: the unreliable ones, then the others from the most skilled on.

    Args:
        inference: of the labels.
        changed: annotators whose accuracy changed.
        models: `[R]` which annotators are models.
    """
    crowd = inference.crowd
    skills = inference.skills
    if skills is None:
        raise ValueError("a crowd with identities has skills")
    suspect = skills.note == verdicts.UNRELIABLE_NOTE
    skill = np.nan_to_num(skills.skill, nan=-1.0)  # not known: last
    order = np.lexsort((np.where(suspect, skill, -skill), ~suspect))
    labels = np.where(labelled_rows(crowd, inference.gold), inference.labels, -1)
    counts = statistics.annotator_confusion(crowd, labels).astype(np.float64)
    with np.errstate(invalid="ignore"):
        recalls = np.einsum("rcc->rc", counts) / counts.sum(axis=2)
    columns = {
        "annotator": crowd.annotator_names,
        "num_labels": crowd.labels_per_annotator(),
        **attributes_of(skills, ("skill", "low", "high", "note")),
        "agreement": statistics.leave_one_out_agreement(crowd),
    }
    rows = []
    changes_of = {change.annotator: change.note for change in changed}
    for code in order[:MOST_ANNOTATORS].tolist():
        row = mapped(operator.itemgetter(code), columns)
        by_class = zip(_short_classes(crowd)[:MOST_CLASSES], recalls[code], strict=False)
        row["change"] = changes_of.get(code, "")
        row["recalls"] = ", ".join(f"{name} {percent(recall)}" for name, recall in by_class)
        rows.append(row)
    noted = skills.note.tolist()
    reasons = []
    for note, why in REASONS.items():
        if note in noted:
            reasons.append((note, why, noted.count(note)))
    names = crowd.annotator_names.tolist()
    return {
        "rows": rows,
        "total": len(order),
        "left_out": max(0, len(order) - MOST_ANNOTATORS),
        "flagged": int(suspect.sum()),
        "suspects": crowd.annotator_names[order[: min(20, int(suspect.sum()))]].tolist(),
        "verdict": verdicts.UNRELIABLE_NOTE,
        "reasons": reasons,
        "average": skills.average,
        "plot": _plot(skills, 1 / crowd.num_classes, models, names),
        "detectable": _detectable(inference),
        "changes": [_drawn(change, names[change.annotator]) for change in changed[:MOST_CHARTS]],
    }


def _detectable(inference: Inference) -> int:
    """Returns for how many annotators the verdict would be likely if they labelled at random."""
    if inference.opposed is not None or inference.crowd.num_classes < 2:
        return 0
    return int(verdicts.random_labels_show(inference.crowd, inference.certainty).sum())


def _items(inference: Inference) -> Fields:
    """Returns the labelled items without gold labels, the least certain consensus label first."""
    crowd = inference.crowd
    labels = inference.labels
    counts = crowd.vote_counts()
    rows = np.flatnonzero(crowd.annotated & (inference.gold < 0))
    probability = inference.probas[rows, labels[rows]]
    share = counts[rows, labels[rows]] / counts[rows].sum(axis=1)
    classes = _short_classes(crowd)
    items = []
    for index in np.lexsort((share, probability))[:MOST_ITEMS].tolist():
        row = rows[index]
        commonest = np.argsort(-counts[row], kind="stable")[:4]
        item = {
            "task": crowd.instance_names[row],
            "consensus": crowd.class_names[labels[row]],
            "labels": [
                (classes[code], counts[row, code]) for code in commonest if counts[row, code]
            ],
            "probability": probability[index],
            "tied": inference.certainty.num_tied[row],
        }
        items.append(item)
    return {"rows": items, "total": len(rows), "wrong": float((1.0 - probability).sum())}
