"""CrowdInG's figures from finished runs: curves.csv and evaluation.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from neucrowd_tf import registry
from neucrowd_tf.annotations import statistics
from neucrowd_tf.commands.run_files import CURVES
from neucrowd_tf.errors import DataError
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.tables.writing import number_cell, to_csv
from reproduction import panels
from reproduction.collect import FinishedRun, suite_runs
from reproduction.curves import stem, write
from reproduction.panels import Point
from reproduction.suite import FIRST_SEED, Suite

TITLES = {
    "mv_dl": "DL-MV",
    "dl_cl": "DL-CL",
    "anno_reg": "Anno-Reg",
    "max_mig": "Max-MIG",
    "aggnet": "AggNet",
    "crowding": "CrowdInG",
    "crowding_one_step": "CrowdInG, one step",
}


def _curve(run: FinishedRun) -> pd.DataFrame:
    """Returns a run's curves.csv; no rows if it has none."""
    path = run.folder / CURVES
    columns = ["stage", "epoch", "train_accuracy", "test_accuracy"]
    return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=columns)


def figure_2(suite: Suite, options: Options) -> list[Path]:
    """CrowdInG's figure 2: accuracy of DL-CL on its surest instances, and the game's accuracy.

    Panel (a) is DL-CL on its surest training instances. Panel (b) is the game's test accuracy with
    one step and two.
    """
    surest, game = [], []
    for run in suite_runs(suite, options.output_dir):
        if run.method == "dl_cl":
            shares = run.evaluation.get("surest", {"share": [], "accuracy": []})
            places = zip(shares["share"], shares["accuracy"], strict=True)
            surest += [Point(run.dataset, "DL-CL", x, run.seed, y) for x, y in places]
            continue
        line, curve = "one step" if "one_step" in run.method else "two steps", _curve(run)
        epochs = curve[curve["stage"] == "game"][["epoch", "test_accuracy"]]
        game += [
            Point(run.dataset, line, int(epoch) + 1, run.seed, accuracy)
            for epoch, accuracy in epochs.itertuples(index=False)
        ]
    x = "share of training instances, surest first"
    files = write(suite, options, "entropy", surest, x, "accuracy")
    return files + write(suite, options, "steps", game, "epoch of the game", "test accuracy")


def figure_3(suite: Suite, options: Options) -> list[Path]:
    """CrowdInG's figure 3: training and test accuracy by epoch.

    The dashed line is the end of CrowdInG's pre-training.
    """
    points, ends = [], {}
    for run in suite_runs(suite, options.output_dir):
        curve, line = _curve(run), TITLES.get(run.method, run.method)
        for split in ("train", "test"):
            for step, value in enumerate(curve[f"{split}_accuracy"], 1):
                if not np.isnan(value):
                    points.append(Point(f"{run.dataset}, {split}", line, step, run.seed, value))
        if run.method == "crowding" and len(curve):
            ends[run.dataset] = int((curve["stage"] == "classifier").sum())

    def mark(axis: Any, panel: str) -> None:
        end = ends.get(panel.partition(",")[0])
        if end is not None:
            axis.axvline(end, linestyle="--", color="grey", linewidth=1)

    return write(suite, options, "curves", points, "epoch", "accuracy", mark=mark)


def figure_4(suite: Suite, options: Options) -> list[Path]:
    """CrowdInG's figure 4: box plots of annotators' numbers of annotations and accuracies.

    The paper prints no numbers beside its own. Annotators without labels are left out.
    """
    boxes: dict[tuple[str, str], np.ndarray] = {}
    for name in ("labelme", "music"):
        try:
            data = registry.dataset(name).load(options.data_dir, FIRST_SEED)
        except (DataError, OSError):
            continue
        if data.truth is not None:
            counts = data.annotations.labels_per_annotator()
            accuracy, scored = statistics.annotator_accuracy(data.annotations, data.truth)
            boxes[name, "annotations"] = counts[counts > 0]
            boxes[name, "accuracy"] = accuracy[scored > 0]
    header = "dataset statistic annotators least lower_quartile median upper_quartile most mean"
    rows = [
        [name, statistic, str(len(v))]
        + [
            number_cell(round(float(x), 6))
            for x in (*np.quantile(v, (0, 0.25, 0.5, 0.75, 1)), v.mean())
        ]
        for (name, statistic), v in boxes.items()
    ]
    path = stem(suite, options, "_annotators")
    write_text(path.with_suffix(".csv"), to_csv(header.split(), rows))

    def draw(axis: Any, panel: str) -> None:
        names = [name for name, statistic in boxes if statistic == panel]
        axis.boxplot([boxes[name, panel] for name in names])
        axis.set_xticks(range(1, len(names) + 1), names)

    kinds = list(dict.fromkeys(statistic for _, statistic in boxes))
    pictures = panels.draw_panels(path.with_suffix(".png"), kinds, draw, suite.title)
    return [path.with_suffix(".csv"), *pictures]


def figure_5(suite: Suite, options: Options) -> list[Path]:
    """Test accuracy with a share of the annotations removed, each instance keeping one."""
    points = []
    for run in suite_runs(suite, options.output_dir):
        value, line = run.metric("accuracy"), TITLES.get(run.method, run.method)
        if value is not None and run.case.x is not None:
            points.append(Point(run.dataset, line, round(1.0 - run.case.x, 3), run.seed, value))
    return write(suite, options, "curve", points, "share removed", "test accuracy")


def figure_6(suite: Suite, options: Options) -> list[Path]:
    """CrowdInG's figure 6: test accuracy over lambda and over t.

    DL-CL, from which the game starts, is at the ends of each axis.
    """
    points, starts = [], []
    for run in suite_runs(suite, options.output_dir):
        value = run.metric("accuracy")
        if value is not None and run.case.x is None:
            starts.append((run.dataset, run.seed, value))
        elif value is not None and run.case.x is not None:
            panel = f"{run.dataset}: {run.case.setting.partition('=')[0]}"
            points.append(Point(panel, "CrowdInG", run.case.x, run.seed, value))
    for panel, lines in panels.by_panel(points).items():
        points += [
            Point(panel, "DL-CL", at, seed, value)
            for at in lines["CrowdInG"].index[[0, -1]]
            for dataset, seed, value in starts
            if panel.startswith(f"{dataset}:")
        ]
    return write(suite, options, "curves", points, "value", "test accuracy")
