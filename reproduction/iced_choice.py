"""`python -m reproduction.iced_choice`: ICED's settings compared without truth, on pairs of USPS
digits that the tables do not use.

Each setting is fitted on the same folds of the training instances of each pair, their truth and the
test instances left out. Predictions on the fold that was held out are scored against its
annotations: with q the posteriors of Dawid and Skene's model of all annotations of the pair (no
features), the score is P(predicted 1 | q's 1) - P(predicted 1 | q's 0). Errors of q, which are
independent of the classifier's, scale it by the same factor for all settings, and it is as blind to
the classes' shares as accuracy on an even test set. What is printed also stands in
results/iced_choice.csv.
"""

from __future__ import annotations

import csv
import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from absl import app, flags
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from neucrowd_tf import registry
from neucrowd_tf.aggregation import DawidSkene, majority_labels
from neucrowd_tf.harness import plugins, process
from neucrowd_tf.iced import ICED
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.tables.writing import number_cell, to_csv

_PAIRS = flags.DEFINE_list("pairs", ["4-9", "3-5"], "majority-minority digits.")
_FOLDS = flags.DEFINE_integer("parts", 3, "folds.")
_SEED = flags.DEFINE_integer("first_seed", 10000, "of the draws, the folds and the fits.")
_DATA = flags.DEFINE_string("data", None, "folder of the datasets.")
_TO = flags.DEFINE_string("to", "results/iced_choice.csv", "the table; rows there are kept.")

HEADER = ("setting", "pair", "fold", "score")
# One factor at a time, beside the class's defaults with pixels as they are.
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"prior": "update"},
    {"prior": "separate"},
    {"candidates": "inferred", "prior": "update"},
    {"rounds": 8},
    {"dropout": 0.0},
    {"smoothing": 0.01},
    {"warm_up": "top"},
    {"targets": "soft"},
    {"standardise": True},
)


def informedness(predicted: NDArray[np.int64], posteriors: NDArray[np.float64]) -> float:
    """Returns P(predicted 1 | 1) - P(predicted 1 | 0) of two classes, by posteriors `[M, 2]`."""
    table = np.eye(2)[predicted].T @ posteriors
    return float(np.linalg.det(table) / np.prod(posteriors.sum(axis=0)))


def scores(
    pair: str, data: str | None, seed: int, folds: int, done: set[tuple[str, ...]]
) -> Iterator[tuple[str, str, str, float]]:
    """Yields setting, pair, fold and score of what is not done yet, fold after fold."""
    majority, minority = (int(digit) for digit in pair.split("-"))
    whole = registry.dataset("usps_syn").load(data, seed, majority=majority, minority=minority)
    features, crowd = whole.features, whole.annotations
    posteriors = DawidSkene().fit(crowd).probas_
    strata = majority_labels(crowd.vote_counts(), "random", seed)
    split = StratifiedKFold(folds, shuffle=True, random_state=seed).split(features, strata)
    for fold, (train, held_out) in enumerate(split):
        for setting in SETTINGS:
            label = " ".join(f"{key}={value}" for key, value in setting.items()) or "default"
            if (label, pair, str(fold)) in done:
                continue
            process.forget_networks()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                fitted = ICED(seed=seed, **{"standardise": False, **setting})
                fitted.fit(features[train], crowd[train])
            predicted = fitted.predict_proba(features[held_out]).argmax(axis=1)
            yield label, pair, str(fold), informedness(predicted, posteriors[held_out])


def main(_: list[str]) -> None:
    plugins.register(("data",))
    path = Path(_TO.value)
    rows = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
    done = {tuple(row[name] for name in HEADER[:3]) for row in rows}
    for pair in _PAIRS.value:
        for *key, score in scores(pair, _DATA.value, _SEED.value, _FOLDS.value, done):
            rows.append(dict(zip(HEADER, (*key, number_cell(score)), strict=True)))
            write_text(path, to_csv(HEADER, ([row[name] for name in HEADER] for row in rows)))
    show(rows)


def show(rows: list[dict[str, str]]) -> None:
    """Prints each setting's mean, and its mean difference to the default with its standard
    error.
    """
    by: dict[str, dict[tuple[str, str], float]] = {}
    for row in rows:
        by.setdefault(row["setting"], {})[row["pair"], row["fold"]] = float(row["score"])
    first = by["default"]
    for label, found in by.items():
        shared = sorted(set(found) & set(first))
        gaps = np.array([found[at] - first[at] for at in shared])
        error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.nan
        mean = np.mean(list(found.values()))
        pairs = [
            f"{pair} {np.mean([found[at] for at in group]):.3f}"
            for pair, group in itertools.groupby(shared, lambda at: at[0])
        ]
        print(f"  {label:40s} {mean:.4f} ({gaps.mean():+.4f} +- {error:.4f})  {', '.join(pairs)}")


if __name__ == "__main__":
    app.run(main)
