"""Figures of training itself, and of a setting's values, from finished runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from neucrowd_tf.harness.flags import Options
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.tables.writing import markdown_table, to_csv
from reproduction import panels
from reproduction.collect import suite_runs
from reproduction.panels import Point
from reproduction.suite import Suite

RESULTS = "results"


def stem(suite: Suite, options: Options, name: str) -> Path:
    """Returns where a suite's file goes, without a suffix."""
    return options.output_dir / RESULTS / f"{suite.name}{name}"


def write(
    suite: Suite,
    options: Options,
    name: str,
    points: Iterable[Point],
    x: str,
    y: str,
    draw: Callable[[Any, panels.Lines], None] = panels.draw_lines,
    mark: Callable[[Any, str], None] | None = None,
) -> list[Path]:
    """Writes a figure of a suite as CSV and, with matplotlib, as PNG; returns the files.

    Args:
        suite: whose figure it is.
        options: the command's.
        name: of the figure.
        points: what is drawn.
        x: label of the horizontal axes.
        y: label of the vertical axes.
        draw: `panels.draw_lines` or `panels.draw_bars`.
        mark: draws more, called with a panel's axis and name.
    """
    path, shown = stem(suite, options, f"_{name}"), panels.by_panel(points)

    def panel(axis: Any, name: str) -> None:
        draw(axis, shown[name])
        if mark is not None:
            mark(axis, name)
        axis.set(xlabel=x, ylabel=y)

    files = [panels.write_csv(path.with_suffix(".csv"), shown, x)]
    return files + panels.draw_panels(path.with_suffix(".png"), list(shown), panel, suite.title)


def write_rows(
    suite: Suite,
    options: Options,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    name: str = "",
    title: str = "",
    note: str = "",
) -> list[Path]:
    """Writes a table of text as CSV and, under its title, the command and a note, as Markdown."""
    path = stem(suite, options, name)
    command = f"python run_experiment.py --suite={suite.name} --data_dir=DATA --output_dir=OUT"
    heading = [f"## {title or suite.title}", "", f"`{command}`", "", note or suite.note, ""]
    files = [path.with_suffix(".csv"), path.with_suffix(".md")]
    write_text(files[0], to_csv(columns, rows))
    write_text(files[1], "\n".join([*heading, *markdown_table(columns, rows), ""]))
    return files


def tuplet_losses(suite: Suite, options: Options) -> list[Path]:
    """NeuCrowd's figure 2: loss and accuracy by epoch, from history.json.

    The loss is that of the same tuplets for all methods and, in a panel of its own, of those that
    each trains on.
    """
    panels_ = {
        "val_fixed_tuplet_loss": "loss of the same tuplets",
        "val_accuracy": "validation accuracy",
        "loss": "loss of each one's own batches",
    }
    points = (
        Point(title, run.method, epoch, run.seed, value)
        for name, title in panels_.items()
        for run in suite_runs(suite, options.output_dir)
        for epoch, value in enumerate(run.history.get(name, []), 1)
        if value is not None
    )
    return write(suite, options, "curves", points, "epoch", "loss or accuracy")


def over_settings(suite: Suite, options: Options) -> list[Path]:
    """A suite's first metric over the values of a setting.

    Each dataset has a panel, each method a line.
    """
    metric, setting = suite.metrics[0], suite.cases[0].setting.partition("=")[0]
    points = (
        Point(run.dataset, run.method, run.case.x, run.seed, value)
        for run, value in (
            (run, run.metric(metric)) for run in suite_runs(suite, options.output_dir)
        )
        if run.case.x is not None and value is not None
    )
    return write(suite, options, "curve", points, setting, metric)
