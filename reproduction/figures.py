"""The papers' figures from finished runs; each is a suite's `analysis`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from neucrowd_tf.annotations import statistics
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.declare import registry
from neucrowd_tf.io.run_files import CURVES, HISTORY
from reproduction.collect import FinishedRun, suite_runs
from reproduction.panels import Places, Point, draw_bars, figure, write
from reproduction.suite import FIRST_SEED, Suite

# As the papers name them.
TITLES = {
    "mv_dl": "DL-MV",
    "dl_cl": "DL-CL",
    "anno_reg": "Anno-Reg",
    "max_mig": "Max-MIG",
    "aggnet": "AggNet",
    "crowding": "CrowdInG",
    "crowding_one_step": "CrowdInG, one step",
    "crowd_layer": "CrowdLayer",
    "wdn": "WDN",
}
LAYERS = ("crowd_layer", "anno_reg", "wdn")
INFERRED = {
    "label_majority_vote": "MV",
    "label_original": "D&S-orig",
    "label_first": "D&S-first",
    "label_final": "D&S-final",
}
LOSSES = {
    "fixed_tuplet_loss": "loss of the same tuplets",
    "val_accuracy": "validation accuracy",
    "loss": "loss of each one's own batches",
}


def over_settings(suite: Suite, options: Options) -> list[Path]:
    """A suite's first metric over the values of a setting.

    Each dataset has a panel, each method a line.
    """
    metric = suite.metrics[0]

    @figure("curve", suite.cases[0].setting.partition("=")[0], metric)
    def curve(run: FinishedRun) -> Places:
        if run.case.x is not None:
            yield run.dataset, run.method, run.case.x, run.metric(metric)

    return curve(suite, options)


# --------------------------------------------------------------------------- NeuCrowd


@figure("curves", "epoch", "loss or accuracy")
def tuplet_losses(run: FinishedRun) -> Places:
    """NeuCrowd's figure 2: loss and accuracy by epoch, from history.json.

    The loss is that of the same tuplets for all methods and, in a panel of its own, of those that
    each trains on.
    """
    for name, title in LOSSES.items():
        for epoch, value in enumerate(run.read(HISTORY).get(name, []), 1):
            yield title, run.method, epoch, value


# --------------------------------------------------------------------------- CrowdInG


def _curve(run: FinishedRun) -> pd.DataFrame:
    """Returns a run's curves.csv; no rows if it has none."""
    path = run.folder / CURVES
    columns = ["stage", "epoch", "train_accuracy", "test_accuracy"]
    if path.exists():
        return pd.read_csv(path)
    return pd.DataFrame(columns=columns)


@figure("entropy", "share of training instances, surest first", "accuracy")
def surest_instances(run: FinishedRun) -> Places:
    """CrowdInG's figure 2a: accuracy of DL-CL on its surest training instances."""
    surest = run.evaluation.get("surest")
    if run.method == "dl_cl" and surest:
        for share, accuracy in zip(surest["share"], surest["accuracy"], strict=True):
            yield run.dataset, "DL-CL", share, accuracy


@figure("steps", "epoch of the game", "test accuracy")
def game_steps(run: FinishedRun) -> Places:
    """CrowdInG's figure 2b: the game's test accuracy with one step and two."""
    line = "one step" if "one_step" in run.method else "two steps"
    curve = _curve(run)
    game = curve[curve["stage"] == "game"]
    for epoch, accuracy in zip(game["epoch"] + 1, game["test_accuracy"], strict=True):
        yield run.dataset, line, epoch, accuracy


def crowding_figure_2(suite: Suite, options: Options) -> list[Path]:
    """CrowdInG's figure 2."""
    return surest_instances(suite, options) + game_steps(suite, options)


@figure("curves", "epoch", "accuracy")
def crowding_figure_3(run: FinishedRun) -> Places:
    """CrowdInG's figure 3: training and test accuracy by epoch, pre-training included."""
    for split in ("train", "test"):
        for epoch, value in enumerate(_curve(run)[f"{split}_accuracy"], 1):
            yield f"{run.dataset}, {split}", TITLES.get(run.method, run.method), epoch, value


def crowding_figure_4(suite: Suite, options: Options) -> list[Path]:
    """CrowdInG's figure 4: quartiles of annotators' numbers of annotations and accuracies.

    The paper prints no numbers. Annotators without labels are left out.
    """
    points = []
    for name in ("labelme", "music"):
        data: Any = registry.dataset(name).load(options.data_dir, FIRST_SEED)
        counts = data.annotations.labels_per_annotator()
        accuracy, scored = statistics.annotator_accuracy(data.annotations, data.truth)
        boxes = {"annotations": counts[counts > 0], "accuracy": accuracy[scored > 0]}
        for panel, values in boxes.items():
            for share in (0.0, 0.25, 0.5, 0.75, 1.0):
                points.append(Point(panel, name, share, 0, np.quantile(values, share)))
    return write(suite, options, "annotators", points, "share of annotators", "at most")


@figure("curve", "share asked to remove", "test accuracy")
def crowding_figure_5(run: FinishedRun) -> Places:
    """CrowdInG's figure 5: test accuracy with a share of the annotations removed.

    Each instance keeps one label, so at most 0.61 of LabelMe's go, and 0.76 of Music's.
    """
    line = TITLES.get(run.method, run.method)
    yield run.dataset, line, round(1.0 - (run.case.x or 1.0), 3), run.metric("accuracy")


@figure("curves", "value", "test accuracy")
def crowding_figure_6(run: FinishedRun) -> Places:
    """CrowdInG's figure 6: test accuracy over lambda and over t."""
    if run.case.x is not None:
        panel = f"{run.dataset}: {run.case.setting.partition('=')[0]}"
        yield panel, "CrowdInG", run.case.x, run.metric("accuracy")


# --------------------------------------------------------------------------- DASC


def split_name(method: str) -> tuple[str, str]:
    """Returns the kind of a method and its base: dasc_crowd_layer is ("dasc", "crowd_layer")."""
    base = next((name for name in LAYERS if method == name or method.endswith(f"_{name}")), "")
    return method.removesuffix(base).rstrip("_") or "ce", base


def _rounds(run: FinishedRun, name: str) -> Iterator[tuple[str, str, int, float | None]]:
    """Yields a figure of each round of self-training.

    Each dataset and base has a panel, each kind of method a line.
    """
    kind, base = split_name(run.method)
    for number, value in enumerate(run.evaluation.get("rounds", {}).get(name, [])):
        yield f"{run.dataset}, {TITLES.get(base, run.method)}", kind, number, value


@figure("accuracy", "round", "test accuracy")
def accuracy_by_round(run: FinishedRun) -> Places:
    """Test accuracy by round."""
    yield from _rounds(run, "test_accuracy")


@figure("imbalance", "round", "R")
def dasc_figure_4(run: FinishedRun) -> Places:
    """DASC's figure 4: R of annotations and selected pseudo-annotations by round."""
    yield from _rounds(run, "imbalance_ratio")


def by_round(suite: Suite, options: Options) -> list[Path]:
    """DASC's figures 7 and 8: test accuracy and imbalance ratio by round."""
    return accuracy_by_round(suite, options) + dasc_figure_4(suite, options)


def dasc_figure_1(suite: Suite, options: Options) -> list[Path]:
    """DASC's figure 1: sparsity and imbalance of LabelMe, and self-training by confidence.

    Panels (a) and (b) are sparsity and imbalance of the annotations, (c) and (d) R and test
    accuracy by round.
    """
    labelme: Any = registry.dataset("labelme").load(options.data_dir, FIRST_SEED)
    crowd = labelme.annotations
    shares = np.sort(crowd.labels_per_annotator())[::-1] / crowd.num_instances
    lines = {("a: share of instances labelled", "annotators"): shares}
    for name, labels in (("annotations", crowd.labels), ("truth", labelme.truth)):
        counts = np.bincount(labels, minlength=crowd.num_classes)
        lines["b: share of each class", name] = counts / counts.sum()
    points = []
    for (panel, line), values in lines.items():
        points += [Point(panel, line, at, 0, value) for at, value in enumerate(values)]
    for title, name in (("c: R", "imbalance_ratio"), ("d: test accuracy", "test_accuracy")):
        panel = f"{title} by round, confidence"
        for run in suite_runs(suite, options.output_dir):
            for _, _, number, value in _rounds(run, name):
                points.append(Point(panel, "CrowdLayer", number, run.seed, value))
    return write(suite, options, "panels", points, "annotator, class or round", "value")


@figure("selections", "round", "share", draw_bars)
def dasc_figure_5(run: FinishedRun) -> Places:
    """DASC's figure 5: the first and the fifth selection.

    Precision is that on majority classes, recall that on minority classes.
    """
    for name in ("precision_majority", "recall_minority"):
        for panel, line, number, value in _rounds(run, name):
            if number in (1, 5):
                yield f"{panel}: {name}", line, number, value


@figure("curve", "share removed", "test accuracy")
def dasc_figure_6(run: FinishedRun) -> Places:
    """DASC's figure 6: test accuracy of the last round with a share of annotations removed.

    CE is the crowd layer's own run, whose steps on LabelMe are not those of round 0.
    """
    kind, base = split_name(run.method)
    value = run.metric("accuracy" if kind == "ce" else "last_round_accuracy")
    yield f"{run.dataset}, {TITLES[base]}", kind, round(1.0 - (run.case.x or 1.0), 3), value


# --------------------------------------------------------------------------- ICED


@figure("labels", ", ".join(INFERRED.values()), "label accuracy", draw_bars)
def inferred_labels(run: FinishedRun) -> Places:
    """Accuracy of majority vote, and of Dawid-Skene before, after the first and the last round."""
    panel = f"{run.dataset}: {run.case.row_name(run.method)}"
    for key, title in INFERRED.items():
        yield panel, title, 0, run.evaluation.get(key)


@figure("rounds", "round", "label accuracy")
def labels_by_round(run: FinishedRun) -> Places:
    """Accuracy of inferred labels by round."""
    for number, value in enumerate(run.evaluation.get("rounds", {}).get("label_accuracy", [])):
        yield run.dataset, run.case.row_name(run.method), number, value


def iced_figure_2(suite: Suite, options: Options) -> list[Path]:
    """ICED's figure 2: the accuracy of inferred labels."""
    return inferred_labels(suite, options) + labels_by_round(suite, options)
