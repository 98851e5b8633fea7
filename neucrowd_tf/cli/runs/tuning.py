"""--tune: random or grid search for hyper-parameters, scored without test instances."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, ParameterGrid, ParameterSampler, StratifiedKFold

from neucrowd_tf.annotations import Annotations, encode_labels
from neucrowd_tf.annotations.votes import majority_labels
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.declare.picking import entries_of, mapped
from neucrowd_tf.declare.types import Array, Fields, Indices, NamedValues
from neucrowd_tf.errors import IdentitiesError, UnsupportedDataError, one_at_a_time, one_line
from neucrowd_tf.evaluation import metrics
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.tables.writing import number_cell, to_csv
from neucrowd_tf.names import without

HEADER = ("trial", "metric", "score", "status", "parameters")
FOLDS = 3


def candidates(
    space: Mapping[str, tuple[Any, ...]], fixed: NamedValues, trials: int | str, seed: int
) -> list[Fields]:
    """Returns up to `trials` different settings: the defaults, then random draws.

    Args:
        space: values by hyper-parameter.
        trials: the largest number of settings; "grid" for all of the space, in its order.
        fixed: hyper-parameters that the user set; they are not searched.
        seed: of the draws.
    """
    searched = mapped(list, entries_of(space, sorted(without(space, fixed))))
    grid = ParameterGrid(searched)
    if isinstance(trials, str):  # "grid"
        return list(grid)
    if not searched or not len(grid):
        return [{}]
    return [{}, *ParameterSampler(searched, min(trials - 1, len(grid)), random_state=seed)]


def score(codes: Indices, probabilities: Array) -> tuple[str, float]:
    """Returns a metric's name and value: AUC for two classes, minus the log loss for more."""
    if probabilities.shape[1] == 2 and len(np.unique(codes)) == 2:
        return "auc", metrics.roc_auc(codes, probabilities)
    return "minus_log_loss", -metrics.log_loss(codes, probabilities)


@dataclasses.dataclass(frozen=True)
class Search:
    """A search for the hyper-parameters of one run; it does not use the test split.

    Attributes:
        fit: `fit(setting, features, annotations, validation)` returns a fitted estimator.
        dataset: the run's data.
        annotations: what the method trains on.
        seed: of folds and ties.
        by: "validation" (the validation split, where there is one) or "crowd" (held-out
            annotations even so).
    """

    fit: Callable[[Fields, Any, Annotations, Any], Any]
    dataset: CrowdDataset
    annotations: Annotations
    seed: int
    by: str = "validation"

    def score(self, setting: Fields) -> tuple[str, float]:
        """Returns the metric and score of one setting.

        It is scored on the validation split or, without one or if `by` is "crowd", by
        cross-validation against the crowd's majority vote.
        """
        features = self.dataset.features
        annotations = self.annotations
        pair = self.dataset.validation_pair() if self.by == "validation" else None
        if pair is not None:
            estimator = self.fit(setting, features, annotations, pair)
            codes = encode_labels(pair[1], self.dataset.class_names)
            return score(codes, np.asarray(estimator.predict_proba(pair[0])))
        rows = np.flatnonzero(annotations.annotated)
        consensus = majority_labels(annotations.vote_counts(), "random", self.seed)[rows]
        counts = np.bincount(consensus)
        kind: Any = StratifiedKFold if counts[counts > 0].min() >= FOLDS else KFold
        splitter = kind(FOLDS, shuffle=True, random_state=self.seed)
        scores = []
        with one_at_a_time():
            splits = list(splitter.split(rows, consensus))
        for train, held in splits:
            estimator = self.fit(setting, features[rows[train]], annotations[rows[train]], None)
            predicted = np.asarray(estimator.predict_proba(features[rows[held]]))
            scores.append(score(consensus[held], predicted))
        names, values = zip(*scores, strict=True)
        return "/".join(sorted(set(names))), float(np.mean(values))

    def best(self, settings: Sequence[Fields], path: Path) -> Fields:
        """Returns the best of the settings.

        Args:
            settings: see `candidates`.
            path: of tuning.csv, which lists the trials.

        Raises:
            Exception: the last trial's error, if no trial could be scored.
        """
        rows = []
        problem = None
        best: tuple[float, Fields] | None = None
        for number, setting in enumerate(settings):
            parameters = json.dumps(setting, sort_keys=True, default=repr)
            try:
                metric, value = self.score(setting)
                rows.append([str(number), metric, number_cell(value), "ok", parameters])
                if math.isfinite(value) and (best is None or value > best[0]):
                    best = value, setting
            except (IdentitiesError, UnsupportedDataError):
                raise
            except Exception as error:
                problem = error
                rows.append([str(number), "", "", f"failed: {one_line(error)}", parameters])
            write_text(path, to_csv(HEADER, rows))
        if best is None:
            reason = f"--tune: none of {len(rows)} settings could be scored"
            raise problem or UnsupportedDataError(reason)
        return best[1]
