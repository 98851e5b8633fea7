"""Figures as CSV and PNG, and tables of text.

A figure has panels. In each, every method has a line (or bars): the mean over seeds with its range.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.declare.types import Axes
from neucrowd_tf.io.files.atomic import atomic_path, write_text
from neucrowd_tf.io.tables.writing import markdown_table, number_cell, to_csv
from reproduction.collect import FinishedRun, suite_runs
from reproduction.suite import Analysis, Suite

try:
    from matplotlib.figure import Figure
except ImportError:
    Figure = None  # type: ignore[assignment,misc]

RESULTS = "results"
_COLUMNS = 3


class Point(NamedTuple):
    """One run's value at one place of a figure; None is not drawn."""

    panel: str
    line: str
    x: float
    seed: int
    value: float | None


# The values of each line: a row for each x with mean, std, min, max and count over the runs.
Lines = dict[str, pd.DataFrame]
# What a run adds to a figure: panel, line, x and value.
Places = Iterator[tuple[str, str, float, float | None]]


def by_panel(points: Iterable[Point]) -> dict[str, Lines]:
    """Returns panel -> line -> values; panels and lines have the order of the points."""
    panels: dict[str, Lines] = {}
    table = pd.DataFrame(points, columns=list(Point._fields)).dropna()
    for (panel, line), runs in table.groupby(["panel", "line"], sort=False):
        values = runs.groupby("x")["value"].agg(["mean", "std", "min", "max", "count"])
        panels.setdefault(str(panel), {})[str(line)] = values
    return panels


def draw_lines(axis: Axes, lines: Lines) -> None:
    """Draws each line with its range over seeds."""
    for name, values in lines.items():
        marker = "." if len(values) < 20 else None
        axis.plot(values.index, values["mean"], marker=marker, linewidth=1.2, label=name)
        axis.fill_between(values.index, values["min"], values["max"], alpha=0.15)


def draw_bars(axis: Axes, lines: Lines) -> None:
    """Draws bars at each x, with their standard deviations."""
    table = pd.concat(lines, axis=1).sort_index()
    mean = table.xs("mean", axis=1, level=1)
    std = table.xs("std", axis=1, level=1).fillna(0.0)
    mean.plot.bar(ax=axis, yerr=std, width=0.8, rot=0, capsize=2)


def write(
    suite: Suite,
    options: Options,
    name: str,
    points: Iterable[Point],
    x: str,
    y: str,
    draw: Callable[[Any, Lines], None] = draw_lines,
) -> list[Path]:
    """Writes a figure of a suite as CSV and, with matplotlib, as PNG; returns the files.

    Args:
        suite: whose figure it is.
        options: the command's.
        name: of the figure.
        points: what is drawn.
        x: label of the horizontal axes.
        y: label of the vertical axes.
        draw: `draw_lines` or `draw_bars`.
    """
    path = options.output_dir / RESULTS / f"{suite.name}_{name}.csv"
    panels = by_panel(points)
    rows = []
    for panel, lines in panels.items():
        for line, values in lines.items():
            for at, mean, std, count in values[["mean", "std", "count"]].itertuples():
                numbers = (at, round(mean, 6), round(std, 6), count)
                rows.append([panel, line, *map(number_cell, numbers)])
    write_text(path, to_csv(["panel", "line", x, "mean", "sd", "runs"], rows))

    def panel_of(axis: Axes, panel: str) -> None:
        draw(axis, panels[panel])
        axis.set(xlabel=x, ylabel=y)

    return [path, *draw_panels(path.with_suffix(".png"), list(panels), panel_of, suite.title)]


def figure(
    name: str, x: str, y: str, draw: Callable[[Any, Lines], None] = draw_lines
) -> Callable[[Callable[[FinishedRun], Places]], Analysis]:
    """Makes a figure of a suite from a function of one run; the arguments are those of `write`."""

    def analysis_of(points_of: Callable[[FinishedRun], Places]) -> Analysis:
        @functools.wraps(points_of)
        def analysis(suite: Suite, options: Options) -> list[Path]:
            points = []
            for run in suite_runs(suite, options.output_dir):
                for panel, line, at, value in points_of(run):
                    points.append(Point(panel, line, at, run.seed, value))
            return write(suite, options, name, points, x, y, draw)

        return analysis

    return analysis_of


def write_rows(
    suite: Suite, options: Options, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> list[Path]:
    """Writes a table of text as CSV and, under the suite's title, command and note, as Markdown."""
    path = options.output_dir / RESULTS / f"{suite.name}.csv"
    command = f"python run_experiment.py --suite={suite.name} --data_dir=DATA --output_dir=OUT"
    heading = [f"## {suite.title}", "", f"`{command}`", "", suite.note, ""]
    write_text(path, to_csv(columns, rows))
    write_text(path.with_suffix(".md"), "\n".join([*heading, *markdown_table(columns, rows), ""]))
    return [path, path.with_suffix(".md")]


def draw_panels(
    path: Path,
    names: Sequence[str],
    draw: Callable[[Any, str], None],
    title: str,
    height: float = 3.1,
) -> list[Path]:
    """Draws panels with their names above; returns the picture.

    The result is empty without panels or without matplotlib.

    Args:
        path: of the PNG.
        names: of the panels.
        draw: draws a panel, called with its axis and name.
        title: above all panels.
        height: of a panel, in inches.
    """
    if Figure is None or not names:
        return []
    columns = len(names) if len(names) <= 4 else _COLUMNS
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(4.2 * columns, height * rows + 0.3), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, name in zip(axes, names, strict=False):
        draw(axis, name)
        axis.set_title(name, fontsize=9)
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=6)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    figure.suptitle(title, fontsize=10)
    return save(figure, path)


def save(figure: Figure, path: Path, dpi: int = 110) -> list[Path]:
    """Writes a figure as PNG, the same bytes each time; returns the file."""
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=dpi, format="png", metadata={"Software": None})
    return [path]
