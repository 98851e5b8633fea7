"""The page's part on the crowd: statistics, annotators ranked, instances by doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.annotations import Annotations, statistics
from neucrowd_tf.io.csv_cells import number_cell, text_cell, to_csv
from neucrowd_tf.report import crowd
from neucrowd_tf.report.heatmap import heatmap
from neucrowd_tf.report.pictures import Pictures, draw
from neucrowd_tf.report.results import ModelResults
from neucrowd_tf.report.text import csv_link, percent, shown

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

MOST_ANNOTATORS = 200
MOST_INSTANCES = 60
MOST_RELABELLED = 1000
LARGEST_DOWNLOAD = 600_000
FEW_LABELS = 5
# An annotator who knows less than this share of what good ones know (the upper quartile), or hardly
# anything, looks like a spammer. Informedness is judged by what others say, and where these are
# often wrong it is low for everybody: hence the comparison.
SPAMMER, NOTHING = 0.3, 0.05
# no one else labelled the annotator's instances: nothing is known, good or bad
ALONE = "nobody to compare with"

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
    artist: Pictures | None,
    missing: list[str],
    downloads: bool = True,
) -> dict[str, Any]:
    """Returns what the template shows of a crowd; what cannot be shown is added to `missing`."""
    described = statistics.describe(annotations, truth)
    if not annotations.has_identities:
        described = {name: value for name, value in described.items() if name not in _OF_ANNOTATORS}
    agreed = crowd.consensus(annotations)
    classes = [shown(name) for name in annotations.class_names.tolist()]
    shares = {"majority vote": described["class_shares"]}
    if "truth_class_shares" in described:
        shares["truth"] = described["truth_class_shares"]
    votes = statistics.annotations_per_instance(annotations)
    pictures = [
        draw(
            artist,
            "Classes by share of instances",
            missing,
            lambda a: a.bars(classes, shares, "share of instances"),
        ),
        draw(
            artist,
            "Labels an instance",
            missing,
            lambda a: a.histogram(votes, "labels", "instances"),
        ),
    ]
    ranked = None
    if annotations.has_identities:
        given = annotations.labels_per_annotator()
        pictures.append(
            draw(
                artist,
                "Labels an annotator",
                missing,
                lambda a: a.histogram(given, "labels", "annotators"),
            )
        )
        ranked = _annotators(annotations, agreed, truth, downloads)
    else:
        missing.append(
            "Annotators are not ranked: the data holds vote counts, and it is not known who voted."
        )
    return {
        "facts": [
            (label, described[name], name)
            for name, label in _STATISTICS.items()
            if name in described
        ],
        "stats": described,
        "consensus": agreed.method,
        "pictures": [picture for picture in pictures if picture],
        "annotators": ranked,
        "instances": _instances(annotations, agreed, truth, model, missing, downloads),
        "truth_known": truth is not None and bool((truth >= 0).any()),
    }


def flag(row: Mapping[str, Any], good: float, chance: float) -> str:
    """Returns what stands out about an annotator, or nothing.

    Args:
        row: of `rank_annotators`.
        good: the upper quartile of informedness.
        chance: the accuracy of guessing.
    """
    if row["num_labels"] < FEW_LABELS:
        return "few labels"
    if np.isnan(row["agreement"]):
        return ALONE
    if row["accuracy_high"] < chance:
        return "worse than chance"
    return "like a spammer" if row["informedness"] < max(SPAMMER * good, NOTHING) else ""


def _annotators(
    annotations: Annotations,
    agreed: crowd.Consensus,
    truth: NDArray[np.int64] | None,
    downloads: bool,
) -> dict[str, Any]:
    from neucrowd_tf.evaluation import rank_annotators

    nameless = Annotations(
        annotations.instances,
        annotations.annotators,
        annotations.labels,
        num_instances=annotations.num_instances,
        num_annotators=annotations.num_annotators,
        num_classes=annotations.num_classes,
    )
    table = rank_annotators(nameless)
    codes = table.index.to_numpy()
    names = annotations.annotator_names.tolist()
    counts = statistics.annotator_confusion(annotations, agreed.labels)[codes].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = counts / counts.sum(axis=2, keepdims=True)
    actual = None if truth is None else statistics.annotator_accuracy(annotations, truth)[0][codes]
    records: list[dict[str, Any]] = [
        {str(name): value for name, value in row.items()} for row in table.to_dict("records")
    ]
    classes = [shown(name, 24) for name in annotations.class_names.tolist()]
    small = len(classes) <= 30
    chance = 1.0 / max(1, annotations.num_classes)
    enough = table["informedness"][(table["num_labels"] >= FEW_LABELS) & table["agreement"].notna()]
    good = float(enough.quantile(0.75)) if len(enough) else 0.0
    rows = []
    for place, record in enumerate(records):
        record |= {"annotator": names[codes[place]], "flag": flag(record, good, chance)}
        recalls = (
            ", ".join(
                f"{name} {percent(share)}"
                for name, share in zip(classes, np.diagonal(shares[place]), strict=True)
            )
            if small
            else ""
        )
        picture = heatmap(shares[place]) if small else None
        rows.append(
            {
                **record,
                "heatmap": picture,
                "recalls": recalls,
                "actual": None if actual is None else actual[place],
            }
        )
    flagged = [row for row in rows if row["flag"] in ("like a spammer", "worse than chance")]
    kept = rows if len(rows) <= MOST_ANNOTATORS else [*rows[:40], *rows[40 - MOST_ANNOTATORS :]]
    return {
        "rows": kept,
        "total": len(rows),
        "left_out": len(rows) - len(kept),
        "flagged": len(flagged),
        "suspects": [row["annotator"] for row in flagged[::-1][:20]],
        "classes": classes,
        "has_actual": actual is not None,
        "chance": chance,
        "download": _annotator_csv(table, rows) if downloads else None,
    }


def _annotator_csv(table: pd.DataFrame, rows: Sequence[Mapping[str, Any]]) -> str | None:
    columns = ["rank", *(name for name in table.columns if name != "rank"), "flag"]
    cells = (
        [
            text_cell(row["annotator"]),
            *(row[name] if name == "flag" else number_cell(row[name]) for name in columns),
        ]
        for row in rows
    )
    return _download(["annotator", *columns], list(cells))


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
    missing: list[str],
    downloads: bool,
) -> dict[str, Any]:
    difficulty = crowd.difficulties(annotations)
    if difficulty is None and annotations.has_identities:
        missing.append(
            f"GLAD's difficulties are left out, as there are more than {crowd.MOST_FOR_GLAD:,}"
            " labels."
        )
    predicted = None if model is None else model.training
    doubts = crowd.rank_by_doubt(annotations, agreed, difficulty, predicted)
    names, counts = annotations.class_names.tolist(), annotations.vote_counts()
    rows = []
    for place, code in enumerate(doubts.rows[:MOST_RELABELLED].tolist()):
        given = [
            (names[c], int(counts[code, c]))
            for c in np.argsort(-counts[code], kind="stable")
            if counts[code, c]
        ]
        rows.append(
            {
                "task": annotations.instance_names[code],
                "consensus": names[agreed.labels[code]],
                "score": doubts.score[place],
                "votes": int(doubts.votes[place]),
                "given": [(shown(name, 24), count) for name, count in given[:4]],
                "share": doubts.share[place],
                "entropy": doubts.entropy[place],
                "difficulty": None if doubts.difficulty is None else doubts.difficulty[place],
                "disagreement": None if doubts.disagreement is None else doubts.disagreement[place],
                "predicted": (
                    None
                    if predicted is None or not np.isfinite(predicted[code]).all()
                    else names[int(predicted[code].argmax())]
                ),
                "actual": None if truth is None or truth[code] < 0 else names[truth[code]],
            }
        )
    has = {
        name: any(row[name] is not None for row in rows)
        for name in ("difficulty", "disagreement", "predicted", "actual")
    }
    optional = {"difficulty": "GLAD difficulty", "disagreement": "disagreement with the model"}
    measures = ["consensus entropy", *(what for name, what in optional.items() if has[name])]
    return {
        "rows": rows[:MOST_INSTANCES],
        "total": len(doubts.rows),
        "in_file": len(rows),
        "has": has,
        "measures": measures,
        "download": _instance_csv(rows, has) if downloads else None,
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
