"""The page's sections on the crowd: agreement, annotators, labels to collect, doubtful items."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import entr
from sklearn.exceptions import ConvergenceWarning

from neucrowd_tf.aggregation import DawidSkene, Glad, MajorityVote
from neucrowd_tf.annotations import Annotations, statistics
from neucrowd_tf.evaluation.agreement import (
    LEAST_OVERLAP,
    MANY_SHARED,
    Pair,
    agreement,
    model_codes,
)
from neucrowd_tf.evaluation.annotators import (
    ALONE,
    FEW,
    REVERSED,
    SPAM,
    annotators_csv,
    flagged_ranking,
)
from neucrowd_tf.io.tables.writing import number_cell, text_cell, to_csv
from neucrowd_tf.labelling.belief import believe
from neucrowd_tf.labelling.plan import make_plan, reason
from neucrowd_tf.report.pictures import Page, heatmap
from neucrowd_tf.report.results import ModelResults
from neucrowd_tf.report.text import csv_link, percent, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_FOR_GLAD = 300_000  # labels; GLAD takes seconds from here on
MOST_ANNOTATORS, FIRST_ANNOTATORS = 200, 160
MOST_ITEMS = 60
MOST_IN_FILE = 100_000
LARGEST_DOWNLOAD = 600_000
MOST_PAIRS = 8
# Of the labels to collect: items x annotators x classes x classes, and labels.
MOST_PLANNED, MOST_REQUESTS = 30_000_000, 500
MANY_CLASSES = 30
SUSPECT = (SPAM, REVERSED)
# Statistics that vote counts do not have: their columns are places in a count, not annotators.
_OF_ANNOTATORS = (
    "num_annotators",
    "annotations_per_annotator",
    "sparsity",
    "mean_annotator_accuracy",
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
_OPTIONAL = {"difficulty": "GLAD difficulty", "disagreement": "disagreement with the model"}


# --------------------------------------------------------------------------- consensus and doubt


@dataclasses.dataclass(frozen=True)
class Consensus:
    """Inferred labels.

    Attributes:
        method: "Dawid and Skene", or "majority vote" for vote counts.
        labels: `[N]` class codes, -1 for items without labels.
        probabilities: `[N, C]`.
    """

    method: str
    labels: NDArray[np.int64]
    probabilities: NDArray[np.float64]


def consensus(annotations: Annotations) -> Consensus:
    """Infers one label per item: by Dawid and Skene's EM, or from vote counts by majority."""
    identities = annotations.has_identities
    stage = DawidSkene() if identities else MajorityVote(ties="first")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stage.fit(annotations)
    labels = np.where(annotations.annotated, stage.labels_, -1)
    return Consensus("Dawid and Skene" if identities else "majority vote", labels, stage.probas_)


def difficulties(annotations: Annotations) -> NDArray[np.float64] | None:
    """Returns GLAD's difficulty of each item `[N]`; None for vote counts or very many labels."""
    if not annotations.has_identities or annotations.num_annotations > MOST_FOR_GLAD:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(Glad(max_iter=30).fit(annotations).difficulties_)


def normalised_entropy(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the entropy of each row of `[N, C]` divided by log C, from 0 to 1."""
    return np.asarray(entr(probabilities).sum(axis=1) / np.log(max(2, probabilities.shape[1])))


def rank_by_doubt(
    annotations: Annotations,
    agreed: Consensus,
    difficulty: NDArray[np.float64] | None = None,
    model: NDArray[np.float64] | None = None,
) -> pd.DataFrame:
    """Ranks the labelled items by how doubtful their consensus label is.

    The measures (entropy, GLAD's difficulty, disagreement with the model) have different scales, so
    their ranks are averaged. Equal scores are ordered by the share of votes, the lowest first.

    Args:
        annotations: of N items.
        agreed: their consensus.
        difficulty: `[N]` or None.
        model: `[N, C]` a model's probabilities of the same items, NaN if not predicted, or None.

    Returns:
        one row per labelled item, the most doubtful first, with the columns
        - rows: its position;
        - votes: its number of labels; share: the share of the consensus label;
        - entropy: of the consensus, divided by log C;
        - difficulty: GLAD's; disagreement: one minus the model's probability of the consensus
          label; only with these arguments;
        - score: the mean of the measures' ranks, from 0 to 1.
    """
    rows = np.flatnonzero(annotations.annotated)
    counts, labels = annotations.vote_counts()[rows], agreed.labels[rows]
    votes = counts.sum(axis=1)
    share = counts[np.arange(len(rows)), labels] / votes
    table = pd.DataFrame({"rows": rows, "votes": votes, "share": share})
    table["entropy"] = normalised_entropy(agreed.probabilities[rows])
    if difficulty is not None:
        table["difficulty"] = difficulty[rows]
    if model is not None and len(model) == annotations.num_instances:
        table["disagreement"] = 1.0 - model[rows, labels]
    measures = table.drop(columns=["rows", "votes", "share"])
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
) -> dict[str, Any]:
    """Returns the template's values for a crowd.

    Args:
        annotations: of N items.
        truth: `[N]` class codes, -1 if unknown, or None.
        model: a run's results, or None.
        page: collects what is missing.
        models: names of annotators that are models.
    """
    described = statistics.describe(annotations, truth)
    agrees = ranked = requests = None
    if annotations.has_identities:
        agrees = _agreement(annotations, models)
        described |= {name: agrees[name] for name in ("kappa", "alpha")}
        requests = _requests(annotations, models, page)
    else:
        described = {name: value for name, value in described.items() if name not in _OF_ANNOTATORS}
        page.missing.append(
            "Annotators are not ranked, because the data has vote counts without annotators."
        )
    agreed = consensus(annotations)
    if annotations.has_identities:
        ranked = _annotators(annotations, agreed, truth, model, page)
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
        "relabelling": requests,
        "items": _items(annotations, agreed, truth, model, page),
    }


def _pictures(
    annotations: Annotations, described: Mapping[str, Any], page: Page
) -> list[dict[str, str]]:
    """Returns the classes' shares, and the numbers of labels by item and by annotator."""
    classes = [shown(name) for name in annotations.class_names.tolist()]
    shares = {"majority vote": described["class_shares"]}
    if "truth_class_shares" in described:
        shares["true labels"] = described["truth_class_shares"]
    votes = statistics.annotations_per_instance(annotations)
    pictures = [
        *page.draw("Share of items by class", "bars", classes, shares, "share of items"),
        *page.draw("Labels per item", "histogram", votes, "labels", "items"),
    ]
    if annotations.has_identities:
        labels = annotations.labels_per_annotator()
        pictures += page.draw("Labels per annotator", "histogram", labels, "labels", "annotators")
    return pictures


def _annotators(
    annotations: Annotations,
    agreed: Consensus,
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
    rows = []
    for place, record in enumerate(table.to_dict("records")):
        recalls = zip(classes, np.diagonal(shares[place]), strict=True)
        rows.append(
            {
                **record,
                "annotator": names[codes[place]],
                "heatmap": heatmap(shares[place]) if len(classes) <= MANY_CLASSES else None,
                "recalls": ", ".join(f"{name} {percent(share)}" for name, share in recalls),
                "actual": None if actual is None else actual[place],
            }
        )
    flagged = [row["annotator"] for row in rows if row["flag"] in SUSPECT]
    left_out = max(0, len(rows) - MOST_ANNOTATORS)
    last = len(rows) - (MOST_ANNOTATORS - FIRST_ANNOTATORS)
    download = None
    if page.downloads:  # the run's annotators.csv, or the same table without a model
        text = None if model is None else model.annotators
        download = _link(annotators_csv(annotations) if text is None else text)
    return {
        "rows": [*rows[:FIRST_ANNOTATORS], *rows[last:]] if left_out else rows,
        "total": len(rows),
        "left_out": left_out,
        "cut": FIRST_ANNOTATORS,
        "flagged": len(flagged),
        "suspects": flagged[::-1][:20],
        "quiet": (FEW, ALONE),
        "classes": classes,
        "has_actual": actual is not None,
        "chance": 1.0 / max(1, annotations.num_classes),
        "download": download,
    }


def _link(text: str) -> str | None:
    """Returns a CSV as a link, or None if it is too large for the page."""
    return csv_link(text) if len(text.encode("utf-8", "replace")) <= LARGEST_DOWNLOAD else None


def _agreement(annotations: Annotations, models: Sequence[str]) -> dict[str, Any]:
    """Returns the agreement of people, also by pairs, and of models with them."""
    measured = agreement(annotations, models)
    names = annotations.annotator_names.tolist()

    def rows(pairs: Sequence[Pair]) -> list[tuple[Any, Any, int, float, float]]:
        return [(names[p.first], names[p.second], p.shared, p.same, p.kappa) for p in pairs]

    least = measured.pairs[:MOST_PAIRS]
    most = measured.pairs[max(len(least), len(measured.pairs) - MOST_PAIRS) :][::-1]
    return {
        "overlap": measured.overlap,
        "enough": measured.enough,
        "least_overlap": LEAST_OVERLAP,
        "kappa": measured.kappa,
        "alpha": measured.alpha,
        "words": in_words(measured.kappa),
        "least": rows(least),
        "most": rows(most),
        "pairs": len(measured.pairs),
        "many": MANY_SHARED,
        "models": rows(measured.models),
    }


def in_words(kappa: float) -> str:
    """Returns the name of a kappa by Landis and Koch (1977)."""
    if np.isnan(kappa):
        return "undefined"
    names = ((0.0, "poor"), (0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"))
    return next((word for limit, word in names if kappa <= limit), "almost perfect")


def _requests(annotations: Annotations, models: Sequence[str], page: Page) -> dict[str, Any] | None:
    """Returns the labels to collect next, and the annotator to ask for each."""
    size = annotations.num_instances * annotations.num_annotators * annotations.num_classes**2
    if size > MOST_PLANNED:
        page.missing.append(
            "The list of labels to collect next is left out because the crowd is large. Use"
            " `neucrowd relabel` to write it."
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
        for one in plan[:MOST_ITEMS]
    ]
    now = float(belief.probas[annotations.annotated].max(axis=1).mean())
    gained = sum(one.gain for one in plan) / max(1, int(annotations.annotated.sum()))
    return {"rows": rows, "total": len(plan), "now": now, "then": now + gained}


def _items(
    annotations: Annotations,
    agreed: Consensus,
    truth: NDArray[np.int64] | None,
    model: ModelResults | None,
    page: Page,
) -> dict[str, Any]:
    difficulty = difficulties(annotations)
    if difficulty is None and annotations.has_identities:
        page.missing.append(
            f"GLAD's difficulties are left out, because there are more than {MOST_FOR_GLAD:,}"
            " labels."
        )
    predicted = None if model is None else model.training
    doubts = rank_by_doubt(annotations, agreed, difficulty, predicted)
    names, counts = annotations.class_names.tolist(), annotations.vote_counts()

    def row(doubt: Mapping[Any, Any]) -> dict[str, Any]:
        code = doubt["rows"]
        order = [c for c in np.argsort(-counts[code], kind="stable") if counts[code, c]]
        model_row = None if predicted is None else predicted[code]
        guess = None
        if model_row is not None and np.isfinite(model_row).all():
            guess = names[int(model_row.argmax())]
        return {
            **dict.fromkeys(_OPTIONAL),
            **doubt,
            "task": annotations.instance_names[code],
            "consensus": names[agreed.labels[code]],
            "labels": [(shown(names[c], 24), int(counts[code, c])) for c in order[:4]],
            "predicted": guess,
            "actual": None if truth is None or truth[code] < 0 else names[truth[code]],
        }

    rows = [row(doubt) for doubt in doubts[:MOST_IN_FILE].to_dict("records")]
    has = {
        name: any(row[name] is not None for row in rows)
        for name in (*_OPTIONAL, "predicted", "actual")
    }
    return {
        "rows": rows[:MOST_ITEMS],
        "total": len(doubts),
        "in_file": len(rows),
        "has": has,
        "measures": ["consensus entropy", *(text for name, text in _OPTIONAL.items() if has[name])],
        "download": _items_csv(rows, has) if page.downloads else None,
        "doubtful": int((doubts.entropy > 0.5).sum()),
    }


def _items_csv(rows: Sequence[Mapping[str, Any]], has: Mapping[str, bool]) -> str | None:
    """Returns the first items as a CSV link, as many as the page has room for."""
    numbers = ["score", "votes", "share", "entropy", *(name for name in _OPTIONAL if has[name])]
    texts = ["task", "consensus", *(["predicted"] if has["predicted"] else [])]
    header = [*texts, *("doubt_score" if name == "score" else name for name in numbers)]
    cells = [
        [
            *("" if row[name] is None else text_cell(row[name]) for name in texts),
            *(number_cell(row[name]) for name in numbers),
        ]
        for row in rows
    ]
    link = None
    while cells and link is None:
        link = _link(to_csv(header, cells))
        cells = cells[: len(cells) // 2]
    return link
