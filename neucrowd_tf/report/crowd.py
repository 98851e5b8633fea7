"""The page's sections on the crowd: agreement, annotators, labels to collect, doubtful items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from neucrowd_tf.annotations import Annotations, statistics
from neucrowd_tf.certainty import skills as verdicts
from neucrowd_tf.certainty.coefficients import Scale
from neucrowd_tf.certainty.inference import Inference
from neucrowd_tf.certainty.models import compare_models
from neucrowd_tf.evaluation.agreement import (
    LEAST_OVERLAP,
    MANY_SHARED,
    Pair,
    agreement,
    model_codes,
)
from neucrowd_tf.evaluation.annotators import annotators_csv
from neucrowd_tf.evaluation.consensus import consensus_method, inferred
from neucrowd_tf.io.tables.writing import number_cell, text_cell, to_csv
from neucrowd_tf.labelling.belief import belief_of
from neucrowd_tf.labelling.plan import REACHED, make_plan, reason, rise
from neucrowd_tf.report.pictures import Page, heatmap
from neucrowd_tf.report.results import ModelResults
from neucrowd_tf.report.text import csv_link, percent, shown

MOST_ANNOTATORS = 200
MOST_ITEMS = 60
MOST_IN_FILE = 5_000
MOST_PAIRS = 8
# Of the labels to collect: items x annotators x classes x classes, and labels.
MOST_PLANNED, MOST_REQUESTS = 30_000_000, 500
MANY_CLASSES = 30
# Why there is no verdict on an annotator.
REASONS = {
    verdicts.ALONE_NOTE: "nobody else labelled the same items",
    verdicts.FEW_NOTE: f"fewer than {verdicts.FEW_LABELS} labels on items that others labelled too",
    verdicts.ONE_CLASS_NOTE: "all of the annotator's items have one consensus class",
    verdicts.CHANCE_NOTE: "labels hardly depend on what others say: check some with gold labels",
    verdicts.WEAK_NOTE: "the consensus itself may be little better than chance",
}
# Statistics that vote counts do not have: their columns are places in a count, not annotators.
_OF_ANNOTATORS = (
    *("num_annotators", "annotations_per_annotator"),
    *("sparsity", "mean_annotator_accuracy"),
)
_STATISTICS = {
    "num_instances": "items",
    "num_annotators": "annotators",
    "num_classes": "classes",
    "num_annotations": "labels",
    "unannotated": "items without a label",
    "annotations_per_instance": "labels per item",
    "annotations_per_annotator": "labels per annotator",
    "sparsity": "sparsity: share of missing labels",
    "kappa": "Fleiss' kappa",
    "alpha": "Krippendorff's alpha",
    "imbalance_ratio": "imbalance of the labels: largest to smallest class",
    "class_ratio": "share of the second class, by majority vote",
    "truth_imbalance_ratio": "imbalance of the true labels",
    "majority_accuracy": "accuracy of the majority vote",
    "mean_annotator_accuracy": "mean accuracy of annotators",
}


def rank_by_doubt(inference: Inference, model: NDArray[np.float64] | None = None) -> pd.DataFrame:
    """Ranks the labelled items without gold labels by how doubtful their consensus label is.

    The measures (the label's probability, and a model's) have different scales, so their ranks are
    averaged. Equal scores are ordered by the share of votes, the lowest first.

    Args:
        inference: of N items.
        model: `[N, C]` a model's probabilities of the same items, NaN if not predicted, or None.

    Returns:
        one row per item, the most doubtful first, with the columns
        - rows: its position;
        - votes: its number of labels; share: the share of the consensus label;
        - probability: of the consensus label;
        - disagreement: one minus the model's probability of that label; only with a model;
        - score: the mean of the measures' ranks, from 0 to 1.
    """
    crowd = inference.crowd
    rows = np.flatnonzero(crowd.annotated & (inference.gold < 0))
    counts, labels = inference.certainty.votes[rows], inference.labels[rows]
    votes = counts.sum(axis=1)
    table = pd.DataFrame({"rows": rows, "votes": votes})
    table["share"] = counts[np.arange(len(rows)), labels] / votes
    table["probability"] = inference.probas[rows, labels]
    measures = 1.0 - table[["probability"]]
    if model is not None and len(model) == crowd.num_instances:
        table["disagreement"] = measures["disagreement"] = 1.0 - model[rows, labels]
    ranks = measures.fillna(measures.median()).fillna(0.0).rank()  # from 1, equal ones share theirs
    table["score"] = (ranks - 1).mean(axis=1) / max(1, len(rows) - 1)
    return table.sort_values(["score", "share"], ascending=[False, True], kind="stable")


# --------------------------------------------------------------------------- sections


def crowd_sections(
    annotations: Annotations,
    truth: NDArray[np.int64] | None,
    model: ModelResults | None,
    page: Page,
    models: Sequence[str] = (),
    gold: NDArray[np.int64] | None = None,
    scale: Scale = "nominal",
) -> dict[str, Any]:
    """Returns the template's values for a crowd.

    Args:
        annotations: of N items.
        truth: `[N]` class codes, -1 if unknown, or None.
        model: a run's results, or None.
        page: collects what is missing.
        models: names of annotators that are models.
        gold: `[N]` class codes, -1 if unknown, or None.
        scale: of the classes, for the coefficients of agreement.
    """
    described = statistics.describe(annotations, truth)
    inference = inferred(annotations, gold)
    agrees = ranked = requests = None
    if annotations.has_identities:
        agrees = _agreement(annotations, models, scale)
        described |= {name: agrees[name].value for name in ("kappa", "alpha")}
        requests = _requests(inference, models, page)
        ranked = _annotators(inference, truth, model, page)
    else:
        described = {name: value for name, value in described.items() if name not in _OF_ANNOTATORS}
        page.missing.append(
            "Annotators are not ranked, because the data has vote counts without annotators."
        )
    accuracy = inference.certainty.accuracy()
    return {
        "facts": [
            (label, described[name], name)
            for name, label in _STATISTICS.items()
            if name in described
        ],
        "stats": described,
        "consensus": {
            "method": consensus_method(annotations).replace("_", " "),
            "accuracy": accuracy,
            "lines": inference.lines(),
            "gold": int((inference.gold >= 0).sum()),
        },
        "pictures": _pictures(annotations, described, page),
        "annotators": ranked,
        "agreement": agrees,
        "relabelling": requests,
        "items": _items(inference, truth, model, page),
    }


def _pictures(
    annotations: Annotations, described: Mapping[str, Any], page: Page
) -> list[dict[str, str]]:
    """Returns the classes' shares, and the numbers of labels by item and by annotator."""
    classes = [shown(name) for name in annotations.class_names.tolist()]
    shares = {"majority vote": described["class_shares"]}
    if "truth_class_shares" in described:
        shares["true labels"] = described["truth_class_shares"]
    votes = annotations.vote_counts().sum(axis=1)
    pictures = [
        *page.draw("Share of items by class", "bars", classes, shares, "share of items"),
        *page.draw("Labels per item", "histogram", votes, "labels", "items"),
    ]
    if annotations.has_identities:
        labels = annotations.labels_per_annotator()
        pictures += page.draw("Labels per annotator", "histogram", labels, "labels", "annotators")
    return pictures


def _annotators(
    inference: Inference, truth: NDArray[np.int64] | None, model: ModelResults | None, page: Page
) -> dict[str, Any]:
    """Returns the annotators: the unreliable ones, then the others from the most skilled on."""
    crowd, skills = inference.crowd, inference.skills
    if skills is None:
        raise ValueError("a crowd with identities has skills")
    suspect = skills.note == verdicts.UNRELIABLE_NOTE
    skill = np.nan_to_num(skills.skill, nan=-1.0)  # without labels: last
    order = np.lexsort((np.where(suspect, skill, -skill), ~suspect))
    download = None
    if page.downloads:  # the run's annotators.csv, or the same table without a model
        text = None if model is None else model.annotators
        download = csv_link(annotators_csv(inference) if text is None else text)
    noted, names = skills.note.tolist(), crowd.annotator_names.tolist()
    return {
        "rows": _annotator_rows(inference, skills, truth, order[:MOST_ANNOTATORS]),
        "total": len(order),
        "left_out": max(0, len(order) - MOST_ANNOTATORS),
        "flagged": int(suspect.sum()),
        "suspects": [names[code] for code in order[: min(20, int(suspect.sum()))]],
        "verdict": verdicts.UNRELIABLE_NOTE,
        "reasons": [
            (note, why, noted.count(note)) for note, why in REASONS.items() if note in noted
        ],
        "classes": [shown(name, 24) for name in crowd.class_names.tolist()],
        "has_actual": truth is not None,
        "average": skills.average,
        "download": download,
    }


def _annotator_rows(
    inference: Inference,
    skills: verdicts.Skills,
    truth: NDArray[np.int64] | None,
    codes: NDArray[np.int64],
) -> list[dict[str, Any]]:
    """Returns a row for each of these annotators."""
    crowd = inference.crowd
    labels = np.where(crowd.annotated | (inference.gold >= 0), inference.labels, -1)
    counts = statistics.annotator_confusion(crowd, labels)[codes].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = counts / counts.sum(axis=2, keepdims=True)
    classes = [shown(name, 24) for name in crowd.class_names.tolist()]
    columns = {
        "annotator": crowd.annotator_names,
        "rank": np.argsort(np.argsort(-np.nan_to_num(skills.skill, nan=-1.0), kind="stable")) + 1,
        "num_labels": crowd.labels_per_annotator(),
        **{name: getattr(skills, name) for name in ("skill", "low", "high", "note")},
        "agreement": statistics.leave_one_out_agreement(crowd),
        "actual": [None] * crowd.num_annotators
        if truth is None
        else statistics.annotator_accuracy(crowd, truth)[0],
    }
    rows = []
    for code, share in zip(codes.tolist(), shares, strict=True):
        recalls = zip(classes, np.diagonal(share), strict=True)
        row = {name: values[code] for name, values in columns.items()}
        row["recalls"] = ", ".join(f"{name} {percent(recall)}" for name, recall in recalls)
        row["heatmap"] = heatmap(share) if len(classes) <= MANY_CLASSES else None
        rows.append(row)
    return rows


def _agreement(annotations: Annotations, models: Sequence[str], scale: Scale) -> dict[str, Any]:
    """Returns the agreement of people, also by pairs, and of models with them."""
    measured = agreement(annotations, models, scale)
    names = annotations.annotator_names.tolist()

    def rows(pairs: Sequence[Pair]) -> list[tuple[Any, Any, int, float, float]]:
        return [(names[p.first], names[p.second], p.shared, p.same, p.kappa) for p in pairs]

    least = measured.pairs[:MOST_PAIRS]
    most = measured.pairs[max(len(least), len(measured.pairs) - MOST_PAIRS) :][::-1]
    _, lines = compare_models(annotations, models, lambda people: inferred(people).labels)
    gwet = "Gwet's AC1" if scale == "nominal" else "Gwet's AC2"
    titles = {"fleiss": "Fleiss' kappa", "krippendorff": "Krippendorff's alpha", "gwet": gwet}
    return {
        "overlap": measured.overlap,
        "enough": measured.enough,
        "least_overlap": LEAST_OVERLAP,
        "kappa": measured.coefficients["fleiss"],
        "alpha": measured.coefficients["krippendorff"],
        "coefficients": [(text, measured.coefficients[name]) for name, text in titles.items()],
        "scale": scale,
        "numbers": scale == "nominal" and annotations.num_classes > 2 and measured.numbers,
        "words": in_words(measured.coefficients["fleiss"].value),
        "least": rows(least),
        "most": rows(most),
        "pairs": len(measured.pairs),
        "many": MANY_SHARED,
        "models": rows(measured.models),
        "model_lines": lines,
    }


def in_words(kappa: float) -> str:
    """Returns the name of a kappa by Landis and Koch (1977)."""
    if np.isnan(kappa):
        return "undefined"
    names = ((0.0, "poor"), (0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"))
    return next((word for limit, word in names if kappa <= limit), "almost perfect")


def _requests(inference: Inference, models: Sequence[str], page: Page) -> dict[str, Any] | None:
    """Returns the labels to collect next, and the annotator to ask for each."""
    crowd = inference.crowd
    if crowd.num_instances * crowd.num_annotators * crowd.num_classes**2 > MOST_PLANNED:
        page.missing.append(
            "The list of labels to collect next is left out because the crowd is large. Use"
            " `neucrowd relabel` to write it."
        )
        return None
    people = np.ones(crowd.num_annotators, dtype=bool)
    people[model_codes(crowd, models)] = False
    belief = belief_of(crowd, inference.probas, people)
    budget = int(np.clip(crowd.num_annotations // 10, 10, MOST_REQUESTS))
    plan = make_plan(crowd, belief, budget, free=people)
    tasks, names = crowd.instance_names.tolist(), crowd.annotator_names.tolist()
    grounds = (crowd, belief, inference.certainty.votes, crowd.labels_per_annotator())
    rows = [
        (tasks[one.task], names[one.annotator], REACHED[0] * one.gain, reason(*grounds, one))
        for one in plan[:MOST_ITEMS]
    ]
    now = inference.certainty.accuracy()
    labelled = (crowd.annotated | (inference.gold >= 0)).sum()
    gained = rise(np.array([one.gain for one in plan]), int(labelled))[0]
    return {"rows": rows, "total": len(plan), "now": now.value, "then": now.value + gained}


def _items(
    inference: Inference, truth: NDArray[np.int64] | None, model: ModelResults | None, page: Page
) -> dict[str, Any]:
    predicted = None if model is None else model.training
    doubts, crowd = rank_by_doubt(inference, predicted), inference.crowd
    names, counts = crowd.class_names.tolist(), inference.certainty.votes

    def row(doubt: Mapping[Any, Any]) -> dict[str, Any]:
        code = doubt["rows"]
        order = [c for c in np.argsort(-counts[code], kind="stable") if counts[code, c]]
        model_row = None if predicted is None else predicted[code]
        guess = None
        if model_row is not None and np.isfinite(model_row).all():
            guess = names[int(model_row.argmax())]
        return {
            "disagreement": None,
            **doubt,
            "task": crowd.instance_names[code],
            "consensus": names[inference.labels[code]],
            "labels": [(shown(names[c], 24), int(counts[code, c])) for c in order[:4]],
            "predicted": guess,
            "actual": None if truth is None or truth[code] < 0 else names[truth[code]],
        }

    rows = [row(doubt) for doubt in doubts[:MOST_IN_FILE].to_dict("records")]
    optional = ("disagreement", "predicted", "actual")
    has = {name: any(row[name] is not None for row in rows) for name in optional}
    return {
        "rows": rows[:MOST_ITEMS],
        "total": len(doubts),
        "in_file": len(rows),
        "has": has,
        "download": _items_csv(rows, has) if page.downloads else None,
        "wrong": float((1.0 - doubts.probability).sum()),
    }


def _items_csv(rows: Sequence[Mapping[str, Any]], has: Mapping[str, bool]) -> str | None:
    """Returns the items as a CSV link."""
    numbers = ["score", "votes", "share", "probability"]
    numbers += ["disagreement"] if has["disagreement"] else []
    texts = ["task", "consensus", *(["predicted"] if has["predicted"] else [])]
    header = [*texts, *("doubt_score" if name == "score" else name for name in numbers)]
    cells = [
        [
            *("" if row[name] is None else text_cell(row[name]) for name in texts),
            *(number_cell(row[name]) for name in numbers),
        ]
        for row in rows
    ]
    return csv_link(to_csv(header, cells))
