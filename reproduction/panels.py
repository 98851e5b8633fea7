"""Figures as CSV and PNG.

A figure has panels. In each, every method has a line (or bars): the mean over seeds with its range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from neucrowd_tf.io.files.atomic import atomic_path, write_text
from neucrowd_tf.io.tables.writing import number_cell, to_csv

_COLUMNS = 3


class Point(NamedTuple):
    """One run's value at one place of a figure."""

    panel: str
    line: str
    x: float
    seed: int
    value: float


# The values of each line: a row for each x with mean, std, min, max and count over the runs.
Lines = dict[str, pd.DataFrame]


def by_panel(points: Iterable[Point]) -> dict[str, Lines]:
    """Returns panel -> line -> values; panels and lines have the order of the points."""
    panels: dict[str, Lines] = {}
    table = pd.DataFrame(points, columns=list(Point._fields))
    for (panel, line), runs in table.groupby(["panel", "line"], sort=False):
        values = runs.groupby("x")["value"].agg(["mean", "std", "min", "max", "count"])
        panels.setdefault(str(panel), {})[str(line)] = values
    return panels


def write_csv(path: Path, panels: Mapping[str, Lines], x: str) -> Path:
    """Writes mean, standard deviation and number of runs of each place."""
    rows = [
        [panel, line, *map(number_cell, (at, round(mean, 6), round(std, 6), count))]
        for panel, lines in panels.items()
        for line, values in lines.items()
        for at, mean, std, count in values[["mean", "std", "count"]].itertuples()
    ]
    write_text(path, to_csv(["panel", "line", x, "mean", "sd", "runs"], rows))
    return path


def draw_panels(
    path: Path,
    names: Sequence[str],
    draw: Callable[[Any, str], None],
    title: str,
    *,
    width: int | None = None,
    height: float = 3.1,
) -> list[Path]:
    """Draws panels with their names above; returns the picture.

    The result is empty without panels or without matplotlib.

    Args:
        path: of the PNG.
        names: of the panels.
        draw: draws a panel, called with its axis and name.
        title: above all panels.
        width: panels beside each other; by default up to four.
        height: of a panel, in inches.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return []
    if not names:
        return []
    columns = width or (len(names) if len(names) <= 4 else _COLUMNS)
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
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=110, format="png", metadata={"Software": None})
    return [path]


def draw_lines(axis: Any, lines: Lines) -> None:
    """Draws each line with its range over seeds."""
    for name, values in lines.items():
        marker = "." if len(values) < 20 else None
        axis.plot(values.index, values["mean"], marker=marker, linewidth=1.2, label=name)
        axis.fill_between(values.index, values["min"], values["max"], alpha=0.15)


def draw_bars(axis: Any, lines: Lines) -> None:
    """Draws bars at each x, with their standard deviations."""
    places = sorted({x for values in lines.values() for x in values.index})
    size = 0.8 / len(lines)
    for index, (name, values) in enumerate(lines.items()):
        at = [places.index(x) + (index - (len(lines) - 1) / 2) * size for x in values.index]
        spread = values["std"].fillna(0.0)
        axis.bar(at, values["mean"], width=size, yerr=spread, capsize=2, label=name)
    axis.set_xticks(range(len(places)), [f"{x:g}" for x in places])
