"""DASC's figures from finished runs: what each round of self-training left in evaluation.json."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf import registry
from neucrowd_tf.harness.flags import Options
from reproduction.collect import FinishedRun, suite_runs
from reproduction.curves import write
from reproduction.panels import Point, draw_bars
from reproduction.suite import FIRST_SEED, Suite

TITLES = {"crowd_layer": "CrowdLayer", "anno_reg": "Anno-Reg", "wdn": "WDN"}


def split_name(method: str) -> tuple[str, str]:
    """Returns the kind of a method and its base: dasc_crowd_layer is ("dasc", "crowd_layer")."""
    base = next((name for name in TITLES if method == name or method.endswith(f"_{name}")), "")
    return method.removesuffix(base).rstrip("_") or "ce", base


def _panel(run: FinishedRun) -> str:
    return f"{run.dataset}, {TITLES.get(split_name(run.method)[1], run.method)}"


def _rounds(
    suite: Suite, options: Options, name: str, rounds: Callable[[int], bool] = lambda _: True
) -> Iterator[Point]:
    """Yields a figure of each round of each run.

    Each dataset and base has a panel, each kind of method a line.
    """
    for run in suite_runs(suite, options.output_dir):
        values: Sequence[Any] = run.evaluation.get("rounds", {}).get(name, [])
        for number, value in enumerate(values):
            if value is not None and rounds(number):
                yield Point(_panel(run), split_name(run.method)[0], number, run.seed, value)


def by_round(suite: Suite, options: Options) -> list[Path]:
    """Test accuracy and imbalance ratio by round."""
    accuracy = _rounds(suite, options, "test_accuracy")
    files = write(suite, options, "accuracy", accuracy, "round", "test accuracy")
    return files + figure_4(suite, options)


def figure_1(suite: Suite, options: Options) -> list[Path]:
    """DASC's figure 1: sparsity and imbalance of LabelMe, and self-training by confidence.

    Panels (a) and (b) are sparsity and imbalance of the annotations, (c) and (d) R and test
    accuracy by round.
    """
    labelme = registry.dataset("labelme").load(options.data_dir, FIRST_SEED)
    crowd, truth = labelme.annotations, labelme.truth
    shares = np.sort(crowd.labels_per_annotator())[::-1] / crowd.num_instances
    points = [
        Point("a: share of instances labelled", "annotators", i, 0, float(value))
        for i, value in enumerate(shares)
    ]
    counts = {"annotations": np.bincount(crowd.labels, minlength=crowd.num_classes)}
    if truth is not None:
        counts["truth"] = np.bincount(truth[truth >= 0], minlength=crowd.num_classes)
    points += [
        Point("b: share of each class", name, c, 0, float(n / v.sum()))
        for name, v in counts.items()
        for c, n in enumerate(v)
    ]
    for title, name in (("c: R", "imbalance_ratio"), ("d: test accuracy", "test_accuracy")):
        points += [
            point._replace(panel=f"{title} by round, confidence", line="CrowdLayer")
            for point in _rounds(suite, options, name)
        ]
    return write(suite, options, "panels", points, "annotator, class or round", "value")


def figure_4(suite: Suite, options: Options) -> list[Path]:
    """R of annotations and selected pseudo-annotations by round."""
    ratios = _rounds(suite, options, "imbalance_ratio")
    return write(suite, options, "imbalance", ratios, "round", "R")


def figure_5(suite: Suite, options: Options) -> list[Path]:
    """Precision on majority and recall on minority classes of the first and the fifth selection."""
    points = []
    for name in ("precision_majority", "recall_minority"):
        points += [
            p._replace(panel=f"{p.panel}: {name}")
            for p in _rounds(suite, options, name, lambda number: number in (1, 5))
        ]
    return write(suite, options, "selections", points, "round", "share", draw_bars)


def figure_6(suite: Suite, options: Options) -> list[Path]:
    """DASC's figure 6: test accuracy of the last round with a share of annotations removed.

    CE is the crowd layer's own run, whose steps on LabelMe are not those of round 0.
    """
    points = []
    for run in suite_runs(suite, options.output_dir):
        kind, removed = split_name(run.method)[0], round(1.0 - (run.case.x or 1.0), 3)
        value = run.metric("accuracy" if kind == "ce" else "last_round_accuracy")
        if value is not None:
            points.append(Point(_panel(run), kind, removed, run.seed, value))
    return write(suite, options, "curve", points, "share removed", "test accuracy")
