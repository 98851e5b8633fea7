"""Figures of training itself, and of a setting's values, from finished runs."""

from __future__ import annotations

from pathlib import Path

from neucrowd_tf.harness.flags import Options
from reproduction import panels
from reproduction.collect import suite_runs
from reproduction.suite import Suite

RESULTS = "results"


def figure_path(suite: Suite, options: Options, part: str) -> Path:
    """Returns where a suite's figure goes, without a suffix."""
    return options.output_dir / RESULTS / f"{suite.name}_{part}"


def training_loss(suite: Suite, options: Options) -> list[Path]:
    """The training loss by epoch (NeuCrowd, figure 2), from history.json."""
    points = [
        panels.Point(run.dataset, run.method, epoch, run.seed, value)
        for run in suite_runs(suite, options.output_dir)
        for epoch, value in enumerate(run.history.get("loss", []), 1)
        if value is not None
    ]
    return panels.write(
        figure_path(suite, options, "curves"), points, suite.title, "epoch", "training loss"
    )


def over_settings(suite: Suite, options: Options) -> list[Path]:
    """A suite's first metric over the values of a setting, a panel for each dataset and a line for
    each method.
    """
    points = []
    for run in suite_runs(suite, options.output_dir):
        value = run.metric(suite.metrics[0])
        if run.case.x is not None and value is not None:
            points.append(panels.Point(run.dataset, run.method, run.case.x, run.seed, value))
    name = suite.cases[0].setting.partition("=")[0]
    return panels.write(
        figure_path(suite, options, "curve"), points, suite.title, name, suite.metrics[0]
    )
