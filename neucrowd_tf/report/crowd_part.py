"""The page's part on the crowd: statistics, annotators ranked, instances by doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.annotations import Annotations, statistics
from neucrowd_tf.evaluation.agreement import MANY_SHARED, Pair, agreement, model_codes
from neucrowd_tf.evaluation.annotators import REVERSED, SPAM, annotators_csv, flagged_ranking
from neucrowd_tf.io.tables.writing import number_cell, text_cell, to_csv
from neucrowd_tf.labelling.belief import believe
from neucrowd_tf.labelling.plan import make_plan, reason
from neucrowd_tf.report import crowd
from neucrowd_tf.report.heatmap import heatmap
from neucrowd_tf.report.pictures import Page
from neucrowd_tf.report.results import ModelResults
from neucrowd_tf.report.text import csv_link, percent, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_ANNOTATORS = 200
MOST_INSTANCES = 60
MOST_RELABELLED = 100_000
LARGEST_DOWNLOAD = 600_000
MOST_PAIRS = 8
# Of the list of whom to ask: instances x annotators x classes x classes, and labels to ask for.
MOST_PLANNED, MOST_REQUESTS = 30_000_000, 500
SUSPECT = (SPAM, REVERSED)
# What the columns of counts of votes would say: they are places in a count, and no annotators.
_OF_ANNOTATORS = (
    "num_annotators",
    "annotations_per_annotator",
    "sparsity",
    "mean_annotator_accuracy",
)

_STATISTICS = {
    "num_instances": "instances",
    "num_annotators": "annotators",
    "num_classes": "classes",
    "num_annotations": "labels",
    "unannotated": "instances without a label",
    "annotations_per_instance": "labels an instance",
    "annotations_per_annotator": "labels an annotator",
    "sparsity": "sparsity: empty cells",
    "kappa": "Fleiss' kappa",
    "alpha": "Krippendorff's alpha",
    "imbalance_ratio": "imbalance R of the labels: largest to smallest class",
    "class_ratio": "share of the second class, by majority vote",
    "truth_imbalance_ratio": "imbalance R of the truth",
    "majority_accuracy": "accuracy of the majority vote",
    "mean_annotator_accuracy": "accuracy of annotators, mean",
}


def crowd_part(
    annotations: Annotations,
    truth: NDArray[np.int64] | None,
    model: ModelResults | None,
    page: Page,
    models: Sequence[str] = (),
) -> dict[str, Any]:
    """Returns what the template shows of a crowd.

    Args:
        models: names of annotators that are models.
    """
    described = statistics.describe(annotations, truth)
    known = annotations.has_identities
    agrees = _agreement(annotations, models) if known else None
    if agrees is not None:
        described |= {name: agrees[name] for name in ("kappa", "alpha")}
    else:
        described = {name: value for name, value in described.items() if name not in _OF_ANNOTATORS}
        page.missing.append(
            "Annotators are not ranked: the data holds vote counts, and it is not known who voted."
        )
    agreed = crowd.consensus(annotations)
    ranked = _annotators(annotations, agreed, truth, model, page) if known else None
    return {
        "facts": [
            (label, described[name], name)
            for name, label in _STATISTICS.items()
            if name in described
        ],
        "stats": described,
        "consensus": agreed.method,
        "pictures": _pictures(annotations, described, page),
        "annotators": ranked,
        "agreement": agrees,
        "relabelling": _relabelling(annotations, models, page) if known else None,
        "instances": _instances(annotations, agreed, truth, model, page),
        "truth_known": truth is not None and bool((truth >= 0).any()),
    }


def _pictures(
    annotations: Annotations, described: Mapping[str, Any], page: Page
) -> list[dict[str, str]]:
    """Returns the classes' shares, and labels an instance and an annotator."""
    classes = [shown(name) for name in annotations.class_names.tolist()]
    shares = {"majority vote": described["class_shares"]}
    if "truth_class_shares" in described:
        shares["truth"] = described["truth_class_shares"]
    votes = statistics.annotations_per_instance(annotations)
    pictures = [
        *page.draw("Classes by share of instances", "bars", classes, shares, "share of instances"),
        *page.draw("Labels an instance", "histogram", votes, "labels", "instances"),
    ]
    if annotations.has_identities:
        given = annotations.labels_per_annotator()
        pictures += page.draw("Labels an annotator", "histogram", given, "labels", "annotators")
    return pictures


def _annotators(
    annotations: Annotations,
    agreed: crowd.Consensus,
    truth: NDArray[np.int64] | None,
    model: ModelResults | None,
    page: Page,
) -> dict[str, Any]:
    table = flagged_ranking(annotations)
    table = table.iloc[np.argsort(~table["flag"].isin(SUSPECT).to_numpy(), kind="stable")]
    codes = table.index.to_numpy()
    names = annotations.annotator_names.tolist()
    counts = statistics.annotator_confusion(annotations, agreed.labels)[codes].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = counts / counts.sum(axis=2, keepdims=True)
    actual = None if truth is None else statistics.annotator_accuracy(annotations, truth)[0][codes]
    classes = [shown(name, 24) for name in annotations.class_names.tolist()]
    small = len(classes) <= 30
    rows = []
    for place, record in enumerate(table.to_dict("records")):
        recalls = zip(classes, np.diagonal(shares[place]), strict=True)
        rows.append(
            {
                **record,
                "annotator": names[codes[place]],
                "heatmap": heatmap(shares[place]) if small else None,
                "recalls": ", ".join(f"{name} {percent(share)}" for name, share in recalls),
                "actual": None if actual is None else actual[place],
            }
        )
    flagged = [row for row in rows if row["flag"] in SUSPECT]
    kept = rows if len(rows) <= MOST_ANNOTATORS else [*rows[:160], *rows[160 - MOST_ANNOTATORS :]]
    return {
        "rows": kept,
        "total": len(rows),
        "left_out": len(rows) - len(kept),
        "cut": 160,
        "flagged": len(flagged),
        "suspects": [row["annotator"] for row in flagged[::-1][:20]],
        "classes": classes,
        "has_actual": actual is not None,
        "chance": 1.0 / max(1, annotations.num_classes),
        "download": _annotator_csv(annotations, model) if page.downloads else None,
    }


def _annotator_csv(annotations: Annotations, model: ModelResults | None) -> str | None:
    """Returns the run's annotators.csv, or the same table without a model, as a link."""
    text = None if model is None else model.annotators
    text = annotators_csv(annotations) if text is None else text
    return csv_link(text) if len(text.encode("utf-8", "replace")) <= LARGEST_DOWNLOAD else None


def _agreement(annotations: Annotations, models: Sequence[str]) -> dict[str, Any]:
    """Returns how far people agree, by pairs too, and models apart."""
    found = agreement(annotations, models)
    names = annotations.annotator_names.tolist()

    def told(some: Sequence[Pair]) -> list[tuple[Any, Any, int, float, float]]:
        return [(names[p.first], names[p.second], p.shared, p.same, p.kappa) for p in some]

    least = found.pairs[:MOST_PAIRS]
    most = found.pairs[max(len(least), len(found.pairs) - MOST_PAIRS) :][::-1]
    return {
        "kappa": found.kappa,
        "alpha": found.alpha,
        "words": _in_words(found.kappa),
        "least": told(least),
        "most": told(most),
        "pairs": len(found.pairs),
        "many": MANY_SHARED,
        "models": [(names[m.first], m.shared, m.same, m.kappa) for m in found.models],
    }


def _in_words(kappa: float) -> str:
    """Returns what a kappa is called (Landis and Koch, 1977), said as a sentence's end."""
    if np.isnan(kappa):
        return "cannot be measured, as too few items have two labels"
    names = ((0.0, "poor"), (0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"))
    return f"is {next((word for limit, word in names if kappa <= limit), 'almost perfect')}"


def _relabelling(
    annotations: Annotations, models: Sequence[str], page: Page
) -> dict[str, Any] | None:
    """Returns which labels to ask whom for next."""
    size = annotations.num_instances * annotations.num_annotators * annotations.num_classes**2
    if size > MOST_PLANNED:
        page.missing.append(
            "The list of whom to ask again is left out, as the crowd is large: neucrowd relabel"
            " makes it."
        )
        return None
    people = np.ones(annotations.num_annotators, dtype=bool)
    people[model_codes(annotations, models)] = False
    belief = believe(annotations, people=people)
    budget = int(np.clip(annotations.num_annotations // 10, 10, MOST_REQUESTS))
    plan = make_plan(annotations, belief, budget, free=people)
    tasks, names = annotations.instance_names.tolist(), annotations.annotator_names.tolist()
    counts = (annotations.vote_counts(), annotations.labels_per_annotator())
    rows = [
        (tasks[one.task], names[one.annotator], one.gain, reason(annotations, belief, *counts, one))
        for one in plan[:MOST_INSTANCES]
    ]
    now = float(belief.probas[annotations.annotated].max(axis=1).mean())
    gained = sum(one.gain for one in plan) / max(1, int(annotations.annotated.sum()))
    return {"rows": rows, "total": len(plan), "now": now, "then": now + gained}


def _download(header: Sequence[str], rows: list[list[str]]) -> str | None:
    """Returns a CSV as a link, of so many rows as stay within the size; None where there are
    none."""
    while rows:
        text = to_csv(header, rows)
        if len(text.encode("utf-8", "replace")) <= LARGEST_DOWNLOAD:
            return csv_link(text)
        rows = rows[: len(rows) // 2]
    return None


def _instances(
    annotations: Annotations,
    agreed: crowd.Consensus,
    truth: NDArray[np.int64] | None,
    model: ModelResults | None,
    page: Page,
) -> dict[str, Any]:
    difficulty = crowd.difficulties(annotations)
    if difficulty is None and annotations.has_identities:
        page.missing.append(
            f"GLAD's difficulties are left out, as there are more than {crowd.MOST_FOR_GLAD:,}"
            " labels."
        )
    predicted = None if model is None else model.training
    doubts = crowd.rank_by_doubt(annotations, agreed, difficulty, predicted)
    names, counts = annotations.class_names.tolist(), annotations.vote_counts()

    optional = {"difficulty": "GLAD difficulty", "disagreement": "disagreement with the model"}

    def row(doubt: Mapping[Any, Any]) -> dict[str, Any]:
        code = doubt["rows"]
        order = np.argsort(-counts[code], kind="stable")
        given = [(names[c], int(counts[code, c])) for c in order if counts[code, c]]
        said = None if predicted is None else predicted[code]
        return {
            **dict.fromkeys(optional),
            **doubt,
            "task": annotations.instance_names[code],
            "consensus": names[agreed.labels[code]],
            "given": [(shown(name, 24), count) for name, count in given[:4]],
            "predicted": (
                None if said is None or not np.isfinite(said).all() else names[int(said.argmax())]
            ),
            "actual": None if truth is None or truth[code] < 0 else names[truth[code]],
        }

    rows = [row(doubt) for doubt in doubts[:MOST_RELABELLED].to_dict("records")]
    has = {
        name: any(row[name] is not None for row in rows)
        for name in (*optional, "predicted", "actual")
    }
    measures = ["consensus entropy", *(what for name, what in optional.items() if has[name])]
    return {
        "rows": rows[:MOST_INSTANCES],
        "total": len(doubts),
        "in_file": len(rows),
        "has": has,
        "measures": measures,
        "download": _instance_csv(rows, has) if page.downloads else None,
        "doubtful": int((doubts.entropy > 0.5).sum()),
    }


def _instance_csv(rows: Sequence[Mapping[str, Any]], has: Mapping[str, bool]) -> str | None:
    numbers = [
        "score",
        "votes",
        "share",
        "entropy",
        *(name for name in ("difficulty", "disagreement") if has[name]),
    ]
    texts = ["task", "consensus", *(["predicted"] if has["predicted"] else [])]
    cells = [
        [
            *("" if row[name] is None else text_cell(row[name]) for name in texts),
            *(number_cell(row[name]) for name in numbers),
        ]
        for row in rows
    ]
    return _download(
        [*texts, *(f"doubt_{name}" if name == "score" else name for name in numbers)], cells
    )
