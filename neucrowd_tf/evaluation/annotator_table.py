"""annotators.csv: what is known of each annotator, in one table for runs and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.annotations import Annotations, statistics
from neucrowd_tf.evaluation.annotator_ranking import informedness, rank_annotators
from neucrowd_tf.io.tables.writing import cell, to_csv
from neucrowd_tf.labelling.belief import believe

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

FEW_LABELS = 5
# An annotator who knows less than this share of what good ones know (the upper quartile), or hardly
# anything, looks like a spammer. Informedness is judged by what others say, and where these are
# often wrong it is low for everybody: hence the comparison.
SPAMMER, NOTHING = 0.3, 0.05
SPAM, REVERSED, FEW = "like a spammer", "worse than chance", "few labels"
# no one else labelled the annotator's instances: nothing is known, good or bad
ALONE = "nobody to compare with"

HEADER = ("annotator", "num_labels", "agreement_consensus", "agreement_model")
_RANKED = {
    "accuracy": "accuracy",
    "accuracy_low": "accuracy_low",
    "accuracy_high": "accuracy_high",
    "agreement": "agreement_others",
    "knows": "knows",
    "informedness": "knows_by_others",
}


def notes(table: pd.DataFrame, good: float, chance: float) -> NDArray[Any]:
    """Returns what stands out about each annotator, or nothing.

    Args:
        table: of `rank_annotators`.
        good: the upper quartile of informedness.
        chance: the accuracy of guessing.
    """
    found = {
        FEW: table["num_labels"] < FEW_LABELS,
        ALONE: table["agreement"].isna(),
        REVERSED: table["accuracy_high"] < chance,
        SPAM: table["informedness"] < max(SPAMMER * good, NOTHING),
    }
    return np.select(list(found.values()), list(found), "")


def flagged_ranking(annotations: Annotations) -> pd.DataFrame:
    """Returns `rank_annotators`' table with codes for names (of which any may be odd) and the
    columns `knows` and `flag`.

    `knows` is informedness by all labels, `informedness` by what the others say alone: the one
    reads as what it says, the other is low for everybody where the crowd is often wrong, and no
    annotator's own labels speak for it, by which the table ranks and accuses.
    """
    codes = Annotations(
        annotations.instances,
        annotations.annotators,
        annotations.labels,
        num_instances=annotations.num_instances,
        num_annotators=annotations.num_annotators,
        num_classes=annotations.num_classes,
    )
    table = rank_annotators(codes)
    known = np.where(codes.labels_per_annotator() > 0, informedness(believe(codes).errors), np.nan)
    table["knows"] = known[table.index.to_numpy()]
    enough = table["informedness"][(table["num_labels"] >= FEW_LABELS) & table["agreement"].notna()]
    good = float(enough.quantile(0.75)) if len(enough) else 0.0
    table["flag"] = notes(table, good, 1.0 / max(1, annotations.num_classes))
    return table


def annotators_csv(
    annotations: Annotations, predicted: NDArray[np.int64] | None = None, estimator: Any = None
) -> str:
    """Returns `annotator_table` as a CSV."""
    header, rows = annotator_table(annotations, predicted, estimator)
    return to_csv(header, (map(cell, row) for row in rows))


def annotator_table(
    annotations: Annotations, predicted: NDArray[np.int64] | None = None, estimator: Any = None
) -> tuple[list[str], list[list[Any]]]:
    """Returns the header and a row an annotator, in their order; no rows where it is not known who
    voted.

    Columns: `annotator,num_labels`; `agreement_consensus`, the share of their labels that are the
    majority's (ties count in part); `agreement_model`, the share that a model predicts; `skill` and
    `recall_<class>` where the method estimates how good annotators are (the diagonal of their
    confusion matrices); `rank`, `accuracy` with its interval (against Dawid and Skene's labels),
    `agreement_others`, `knows` (the share of instances whose class they know rather than guess),
    `knows_by_others` (the same by what the others say alone, which rank and note go by) and `note`,
    what stands out.

    Args:
        annotations: N instances.
        predicted: `[N]` class codes that a model predicts for them.
        estimator: the fitted method; `annotator_accuracy_` `[R]` and `confusion_matrices_` `[R, C,
            C]` are used where it has them.
    """
    header: list[str] = list(HEADER)
    if not annotations.has_identities:
        return header, []
    size, classes = annotations.num_annotators, annotations.num_classes
    counts = annotations.labels_per_annotator()
    majority = statistics.majority_shares(annotations)[annotations.instances, annotations.labels]
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN for an annotator without labels
        met = np.bincount(annotations.annotators, majority, minlength=size) / counts
    columns: list[NDArray[Any]] = [
        met,
        np.full(size, np.nan)
        if predicted is None
        else statistics.annotator_accuracy(annotations, predicted)[0],
    ]
    skill = getattr(estimator, "annotator_accuracy_", None)
    if skill is not None and np.shape(skill) == (size,):
        header.append("skill")
        columns.append(np.asarray(skill))
    matrices = getattr(estimator, "confusion_matrices_", None)
    if matrices is not None and np.shape(matrices) == (size, classes, classes):
        header += [f"recall_{name}" for name in annotations.class_names.tolist()]
        columns += list(np.einsum("rcc->cr", np.asarray(matrices)))
    ranking = flagged_ranking(annotations).sort_index()
    header += ["rank", *_RANKED.values(), "note"]
    columns += [ranking[name].to_numpy() for name in ("rank", *_RANKED, "flag")]
    return header, [
        [name, int(counts[code]), *(column[code] for column in columns)]
        for code, name in enumerate(annotations.annotator_names.tolist())
    ]
