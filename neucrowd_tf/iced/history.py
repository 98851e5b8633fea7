"""What a fitted ICED leaves of its rounds: scores of it against the truth, and warnings about
classes that lacked instances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from neucrowd_tf.datasets import CrowdDataset
    from neucrowd_tf.iced.estimator import ICED


def score_rounds(estimator: ICED, truth: ArrayLike) -> pd.DataFrame:
    """Scores each round of a fitted ICED against the true labels, which `fit` never sees.

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
    labels, candidates, synthetic = (
        estimator.labels_history_,
        estimator.candidates_history_,
        estimator.synthetic_history_,
    )
    records = []
    for index, inferred in enumerate(labels):
        right = inferred == codes
        record: dict[str, Any] = {
            "round": index,
            "label_accuracy": right.mean(),
            "balanced_label_accuracy": np.mean(
                [right[codes == c].mean() for c in np.unique(codes)]
            ),
            "candidate_purity": np.nan,
        }
        if index:
            made = [
                c
                for c in np.flatnonzero(synthetic[index - 1])
                if (candidates[index - 1] == c).any()
            ]
            record["candidate_purity"] = (
                np.mean([(codes[candidates[index - 1] == c] == c).mean() for c in made])
                if made
                else np.nan
            )
        for code, name in enumerate(estimator.classes_.tolist()):
            record[f"inferred_{name}"] = int((inferred == code).sum())
            record[f"candidates_{name}"] = (
                int((candidates[index - 1] == code).sum()) if index else np.nan
            )
            record[f"synthetic_{name}"] = int(synthetic[index - 1][code]) if index else np.nan
        records.append(record)
    return pd.DataFrame.from_records(records)


def round_scores(estimator: ICED, dataset: CrowdDataset) -> dict[str, Any]:
    """Scores each round against the truth of the training instances.

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
    from neucrowd_tf.iced.warm_up import certainty_groups, warm_up_schedule

    schedule = warm_up_schedule(
        estimator.warm_up, certainty_groups(estimator.certainty_), estimator.warm_up_epochs
    )
    found: dict[str, Any] = {
        "warm_up_samples": len(np.unique(np.concatenate(schedule))) if len(schedule) else 0
    }
    found["permuted"] = int(
        (estimator.permutations_history_ != np.arange(len(estimator.classes_))).any(axis=1).sum()
    )
    if dataset.truth is None:
        return found
    scores = score_rounds(estimator, dataset.truth)
    found["rounds"] = {
        name: scores[name].tolist()
        for name in ("label_accuracy", "balanced_label_accuracy", "candidate_purity")
    }
    labels = found["rounds"]["label_accuracy"]
    found |= {
        "label_original": labels[0],
        "label_final": labels[-1],
        "candidate_purity": found["rounds"]["candidate_purity"][-1],
    }
    return found | ({"label_first": labels[1]} if len(labels) > 1 else {})


def shortages(
    candidates: NDArray[np.integer[Any]],
    permutations: NDArray[np.integer[Any]],
    used: NDArray[np.bool_],
    names: NDArray[Any],
    k: int,
) -> list[str]:
    """Returns what kept classes from being balanced, and permuted classes, as sentences for a
    warning.

    Args:
        candidates: `[rounds, N]`; permutations: `[rounds + 1, C]`; used: `[C]` whether any
            annotator gave the class.
        names: `[C]` of the classes.
        k: neighbours that were asked for.
    """
    said = []
    rounds, size = len(candidates), len(names)
    counts = (
        np.stack([np.bincount(row, minlength=size) for row in candidates])
        if rounds
        else np.zeros((0, size), dtype=int)
    )
    shown = [repr(name) for name in names.tolist()]
    unused = [shown[c] for c in np.flatnonzero(~used)]
    if unused:
        said.append(
            f"no annotator used the class {', '.join(unused)}: it is never synthesised or inferred"
        )
    few = [
        f"{shown[c]} in {n} of {rounds} rounds"
        for c, n in enumerate((counts < 2).sum(axis=0))
        if n and used[c]
    ]
    if few:
        said.append(
            f"fewer than two candidates, too few to synthesise from: class {', '.join(few)}"
        )
    short = [
        f"{shown[c]} in {n} of {rounds} rounds"
        for c, n in enumerate(((counts >= 2) & (counts <= k)).sum(axis=0))
        if n and used[c]
    ]
    if short:
        said.append(
            f"fewer than k = {k} neighbours among the candidates, so k was shrunk: class"
            f" {', '.join(short)}"
        )
    mended = int((permutations != np.arange(size)).any(axis=1).sum())
    if mended:
        said.append(
            f"the inference permuted the classes in {mended} of {rounds + 1} runs; they were put"
            " back in place by the votes"
        )
    return said
