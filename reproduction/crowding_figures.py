"""CrowdInG's figures from finished runs: curves.csv and evaluation.json."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf import registry
from neucrowd_tf.annotations import statistics
from neucrowd_tf.errors import DataError
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.harness.run_folder import CURVES
from neucrowd_tf.io.csv_cells import number_cell, to_csv
from neucrowd_tf.io.files import write_text
from reproduction import panels
from reproduction.collect import Found, suite_runs
from reproduction.curves import figure_path
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


def _curve(run: Found) -> list[dict[str, str]]:
    """Returns a run's curves.csv."""
    path = run.folder / CURVES
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def figure_2(suite: Suite, options: Options) -> list[Path]:
    """The accuracy of DL-CL on its surest training instances (a), and the game's test accuracy with
    one step and two (b).
    """
    surest, game = [], []
    for run in suite_runs(suite, options.output_dir):
        if run.method == "dl_cl":
            found = run.evaluation.get("surest", {"share": [], "accuracy": []})
            surest += [
                Point(run.dataset, "DL-CL", x, run.seed, y)
                for x, y in zip(found["share"], found["accuracy"], strict=True)
            ]
        else:
            steps = [row for row in _curve(run) if row["stage"] == "game"]
            line = "one step" if "one_step" in run.method else "two steps"
            game += [
                Point(
                    run.dataset, line, int(row["epoch"]) + 1, run.seed, float(row["test_accuracy"])
                )
                for row in steps
            ]
    made = panels.write(
        figure_path(suite, options, "entropy"),
        surest,
        suite.title,
        "share of training instances, surest first",
        "accuracy",
    )
    return made + panels.write(
        figure_path(suite, options, "steps"),
        game,
        suite.title,
        "epoch of the game",
        "test accuracy",
    )


def figure_3(suite: Suite, options: Options) -> list[Path]:
    """Training and test accuracy by epoch; the dashed line is where CrowdInG's pre-training
    ends."""
    points, ends = [], {}
    for run in suite_runs(suite, options.output_dir):
        rows = _curve(run)
        for step, row in enumerate(rows, 1):
            for column in ("train_accuracy", "test_accuracy"):
                if row[column]:
                    panel = f"{run.dataset}, {column.partition('_')[0]}"
                    points.append(
                        Point(
                            panel,
                            TITLES.get(run.method, run.method),
                            step,
                            run.seed,
                            float(row[column]),
                        )
                    )
        if run.method == "crowding" and rows:
            ends[run.dataset] = sum(row["stage"] == "classifier" for row in rows)
    path = figure_path(suite, options, "curves")
    made = [panels.write_csv(path.with_suffix(".csv"), points, "epoch")]
    shown = panels.means(points)

    def draw(axis: Any, panel: str) -> None:
        panels.draw_lines(axis, shown[panel])
        end = ends.get(panel.partition(",")[0])
        if end is not None:
            axis.axvline(end, linestyle="--", color="grey", linewidth=1)
        axis.set(xlabel="epoch", ylabel="accuracy")

    return made + (
        panels.draw_panels(path.with_suffix(".png"), list(shown), draw, suite.title)
        if shown
        else []
    )


def _annotators(options: Options) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yields name, number of annotations and accuracy of each annotator who labelled anything."""
    for name in ("labelme", "music"):
        try:
            data = registry.dataset(name).load(options.data_dir, FIRST_SEED)
        except (DataError, OSError):
            continue
        counts = data.annotations.labels_per_annotator()
        if data.truth is not None:
            accuracy, scored = statistics.annotator_accuracy(data.annotations, data.truth)
            yield name, counts[counts > 0], accuracy[scored > 0]


def figure_4(suite: Suite, options: Options) -> list[Path]:
    """Box plots of the number of annotations and of the accuracy of annotators; the paper prints no
    numbers beside its own.
    """
    found = list(_annotators(options))
    parts = {
        (name, what): values
        for name, counts, right in found
        for what, values in (("annotations", counts), ("accuracy", right))
    }
    header = [
        "dataset",
        "statistic",
        "annotators",
        "least",
        "lower_quartile",
        "median",
        "upper_quartile",
        "most",
        "mean",
    ]
    rows = [
        [
            name,
            what,
            str(len(v)),
            *(
                number_cell(round(float(x), 6))
                for x in (*np.quantile(v, (0, 0.25, 0.5, 0.75, 1)), v.mean())
            ),
        ]
        for (name, what), v in parts.items()
    ]
    path = figure_path(suite, options, "annotators")
    write_text(path.with_suffix(".csv"), to_csv(header, rows))

    def draw(axis: Any, panel: str) -> None:
        names = [name for name, what in parts if what == panel]
        axis.boxplot([parts[name, panel] for name in names])
        axis.set_xticks(range(1, len(names) + 1), names)

    kinds = list(dict.fromkeys(what for _, what in parts))
    return [
        path.with_suffix(".csv"),
        *(panels.draw_panels(path.with_suffix(".png"), kinds, draw, suite.title) if kinds else []),
    ]


def figure_5(suite: Suite, options: Options) -> list[Path]:
    """Test accuracy with a share of the annotations removed, each instance keeping one."""
    points = []
    for run in suite_runs(suite, options.output_dir):
        value = run.metric("accuracy")
        if value is not None and run.case.x is not None:
            points.append(
                Point(
                    run.dataset,
                    TITLES.get(run.method, run.method),
                    round(1.0 - run.case.x, 3),
                    run.seed,
                    value,
                )
            )
    return panels.write(
        figure_path(suite, options, "curve"), points, suite.title, "share removed", "test accuracy"
    )


def figure_6(suite: Suite, options: Options) -> list[Path]:
    """Test accuracy over lambda and over t; DL-CL, where the game starts, at the ends of each
    axis."""
    points, starts = [], []
    for run in suite_runs(suite, options.output_dir):
        value = run.metric("accuracy")
        if value is None:
            continue
        if run.case.x is None:
            starts.append((run.dataset, run.seed, value))
        else:
            points.append(
                Point(
                    f"{run.dataset}: {run.case.setting.partition('=')[0]}",
                    "CrowdInG",
                    run.case.x,
                    run.seed,
                    value,
                )
            )
    for panel in dict.fromkeys(point.panel for point in points):
        places = [point.x for point in points if point.panel == panel]
        for at in (min(places), max(places)):
            points += [
                Point(panel, "DL-CL", at, seed, value)
                for dataset, seed, value in starts
                if panel.startswith(f"{dataset}:")
            ]
    return panels.write(
        figure_path(suite, options, "curves"), points, suite.title, "value", "test accuracy"
    )
