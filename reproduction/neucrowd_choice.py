"""`python -m reproduction.neucrowd_choice`: settings of NeuCrowd, RLL and their rivals compared on
validation rows, every method with the same settings tried.

The rows are the training and validation rows of hotel, Syn1 and Syn2. Each setting is fitted on the
same folds of them, part of each fold's training rows held out for the epoch and for C, and scored
on the fold that is left against its majority vote. Test rows are neither trained on nor scored,
and no truth is used. What is printed also stands in results/neucrowd_choice.csv.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from absl import app, flags

from neucrowd_tf import registry
from neucrowd_tf.evaluation.cross_validation import repeated_stratified_folds
from neucrowd_tf.harness import plugins, process
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.tables.writing import number_cell, to_csv
from neucrowd_tf.training.representation import ranking_metrics

_PART = flags.DEFINE_string("part", "loss", "what is varied: loss, others, l2.")
_DATASETS = flags.DEFINE_list("on", ["hotel"], "datasets.")
_REPEATS = flags.DEFINE_integer("times", 2, "how often the rows are shuffled into folds.")
_FOLDS = flags.DEFINE_integer("parts", 5, "folds.")
_SEED = flags.DEFINE_integer("first_seed", 10000, "of the folds; repeat r is fitted with seed + r.")
_DATA = flags.DEFINE_string("data", None, "folder of the datasets.")
_TO = flags.DEFINE_string("to", "results/neucrowd_choice.csv", "the table; rows there are kept.")

HEADER = ("part", "dataset", "method", "setting", "repeat", "fold", "accuracy", "auc", "log_loss")
_METRIC_LEARNING = ("contrastive", "triplet", "triplet_semi", "center", "lifted", "relation_net")


def settings(part: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields methods with hyper-parameters: one factor at a time."""
    if part == "loss":
        yield "neucrowd", {"weight_inside": False}
        for offset in (1.0, 0.5, 2.0, 4.0):
            yield "neucrowd", {"weight_inside": True, "offset": offset}
        for offset, eta in ((1.0, 10.0), (4.0, 10.0), (1.0, 20.0)):
            yield "neucrowd", {"weight_inside": True, "offset": offset, "eta": eta}
        yield "neucrowd", {"weight_inside": False, "assurance": "share"}
        yield "neucrowd", {"weight_loss": True}
    elif part == "others":
        yield "neucrowd", {}
        for weight in (0.0, 0.02, 0.1, 0.6, 1.0):
            yield "neucrowd", {"unsafe_weight": weight}
        for how in ("random", "oracle"):
            yield "neucrowd", {"selection": how}
        yield "neucrowd", {"normal_biases": True}
        yield "neucrowd", {"embedding_dropout": True, "slot_dropout": True}
        yield "neucrowd", {"head_standardise": False, "head_balanced": True}
        yield "neucrowd", {"safety_start": 1}
        for figure in ("accuracy", "log_loss"):
            yield "neucrowd", {"monitor": figure}
    else:
        for name in ("neucrowd", "rll", "rll_bayesian", *_METRIC_LEARNING):
            for l2 in (1e-3, 1e-2, 1e-5):
                yield name, {"l2": l2}


def main(_: list[str]) -> None:
    plugins.register(("baselines", "data"))
    path = Path(_TO.value)
    rows = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
    done = {tuple(row[name] for name in HEADER[:6]) for row in rows}
    for name in _DATASETS.value:
        whole = registry.dataset(name).load(_DATA.value, _SEED.value)
        pool = whole.replace(test=None, truth=None)
        for repeat, (method, options) in itertools.product(
            range(_REPEATS.value), settings(_PART.value)
        ):
            label = " ".join(f"{key}={value}" for key, value in options.items()) or "default"
            for part in repeated_stratified_folds(
                pool, folds=_FOLDS.value, repeats=repeat + 1, seed=_SEED.value
            ):
                key = (_PART.value, name, method, label, str(repeat), str(part.fold))
                if part.repeat != repeat or key in done:
                    continue
                fold = part.dataset
                process.forget_networks()
                fitted = (
                    registry.method(method)
                    .make(dataset=name, seed=_SEED.value + repeat, **options)
                    .fit(fold.features, fold.annotations, fold.validation_pair())
                )
                found = ranking_metrics(fold.test.labels, fitted.predict_proba(fold.test.features))
                cells = {metric: number_cell(found[metric]) for metric in HEADER[6:]}
                rows.append(dict(zip(HEADER, key, strict=False)) | cells)
                write_text(path, to_csv(HEADER, ([row[name] for name in HEADER] for row in rows)))
    show(rows)


def show(rows: list[dict[str, str]]) -> None:
    """Prints each setting's mean, and its mean difference to the first with its standard error."""
    order = lambda row: (row["part"], row["dataset"])  # noqa: E731
    for key, group in itertools.groupby(sorted(rows, key=order), order):
        by: dict[str, dict[tuple[str, str], tuple[float, float]]] = {}
        for row in group:
            by.setdefault(f"{row['method']} {row['setting']}", {})[row["repeat"], row["fold"]] = (
                float(row["accuracy"]),
                float(row["auc"]),
            )
        first = next(iter(by.values()))
        print(*key)
        for label, found in by.items():
            shared = sorted(set(found) & set(first))
            mean = np.mean(list(found.values()), axis=0)
            gaps = np.array([found[at] for at in shared]) - np.array([first[at] for at in shared])
            error = gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else gaps[0] * 0
            gap = gaps.mean(axis=0)
            print(
                f"  {label:60s} {len(found):3d} fits  accuracy {mean[0]:.3f} ({gap[0]:+.3f} +-"
                f" {error[0]:.3f})  AUC {mean[1]:.3f} ({gap[1]:+.3f} +- {error[1]:.3f})"
            )


if __name__ == "__main__":
    app.run(main)
