"""Scores of the rounds of a fitted ICED against the truth, which `fit` never sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.iced.certainty import certainty_groups, warm_up_schedule

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class FittedRounds(Protocol):
    """What is read of a fitted ICED."""

    warm_up: str
    warm_up_epochs: int
    classes_: NDArray[Any]
    rows_: NDArray[np.int64]
    certainty_: NDArray[np.float64]
    certainty_classes_: NDArray[np.int64]
    labels_history_: NDArray[np.int16]
    permutations_history_: NDArray[np.int16]
    candidates_history_: NDArray[np.int16]
    synthetic_history_: NDArray[np.int64]


def score_rounds(estimator: FittedRounds, truth: ArrayLike) -> pd.DataFrame:
    """Scores each round of a fitted ICED against the true labels.

    Args:
        estimator: fitted.
        truth: `[N]` class codes of the instances that `fit` was given.

    Returns:
        A row a round, round 0 before any synthesis (D&S-orig; 1 is D&S-first, the last D&S-final),
        with the columns `label_accuracy`, `balanced_label_accuracy` (mean over classes),
        `candidate_purity` (mean over the classes that were synthesised, of how many of their
        candidates belong to them), and for each class `candidates_<class>`, `synthetic_<class>`,
        `inferred_<class>` counts. What round 0 has not is NaN.

    References:
        ICED, section 3.3 and figure 2.
    """
    codes = np.asarray(truth)
    if codes.ndim != 1 or len(codes) <= int(estimator.rows_.max(initial=-1)):
        raise DataError(
            f"truth: expected a class code for each instance of fit, received shape {codes.shape}"
        )
    codes = codes[estimator.rows_]
    records = []
    for index, inferred in enumerate(estimator.labels_history_):
        right = inferred == codes
        by_class = [right[codes == code].mean() for code in np.unique(codes)]
        record: dict[str, Any] = {
            "round": index,
            "label_accuracy": right.mean(),
            "balanced_label_accuracy": np.mean(by_class),
            "candidate_purity": np.nan,
        }
        candidates = estimator.candidates_history_[index - 1] if index else inferred[:0]
        made = estimator.synthetic_history_[index - 1] if index else np.zeros(0)
        members = [codes[candidates == code] == code for code in np.flatnonzero(made)]
        if pure := [member.mean() for member in members if len(member)]:
            record["candidate_purity"] = np.mean(pure)
        for code, name in enumerate(estimator.classes_.tolist()):
            record[f"inferred_{name}"] = int((inferred == code).sum())
            record[f"candidates_{name}"] = int((candidates == code).sum()) if index else np.nan
            record[f"synthetic_{name}"] = int(made[code]) if index else np.nan
        records.append(record)
    return pd.DataFrame.from_records(records)


def round_scores(estimator: FittedRounds, truth: ArrayLike | None) -> dict[str, Any]:
    """Scores each round against the truth of the training instances, if there is one.

    Returns:
        `rounds`, a dict of lists with an entry a round: `label_accuracy`, `balanced_label_accuracy`
            and `candidate_purity`;
        `label_original`, `label_first` and `label_final`, the label accuracies that figure 2
        compares; `candidate_purity` of the last round; `permuted`, how often the inference permuted
        the classes; `warm_up_samples`, how many instances the warm-up trained on. Nothing about
        labels where there is no truth.

    References:
        ICED, section 3.3, figure 2 and table 3.
    """
    groups = certainty_groups(estimator.certainty_)
    schedule = warm_up_schedule(estimator.warm_up, groups, estimator.warm_up_epochs)
    permuted = estimator.permutations_history_ != np.arange(len(estimator.classes_))
    scores: dict[str, Any] = {
        "warm_up_samples": len(set().union(*(rows.tolist() for rows in schedule))),
        "permuted": int(permuted.any(axis=1).sum()),
    }
    for number, mix in enumerate(estimator.certainty_classes_, start=1):
        largest = float(mix.max() / mix.sum()) if mix.any() else None
        scores |= {f"group_{number}": int(mix.sum()), f"group_{number}_largest": largest}
    if truth is None:
        return scores
    table = score_rounds(estimator, truth)
    names = ("label_accuracy", "balanced_label_accuracy", "candidate_purity")
    scores["rounds"] = {name: table[name].tolist() for name in names}
    labels = scores["rounds"]["label_accuracy"]
    scores |= {
        "label_original": labels[0],
        "label_final": labels[-1],
        "candidate_purity": scores["rounds"]["candidate_purity"][-1],
    }
    return scores | ({"label_first": labels[1]} if len(labels) > 1 else {})
