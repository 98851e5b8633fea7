"""Figures as CSV and PNG.

A figure has panels. In each, every method has a line (or bars): the mean over seeds with its range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

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


Lines = dict[str, dict[float, np.ndarray]]


def by_panel(points: Iterable[Point]) -> dict[str, Lines]:
    """Returns panel -> line -> x -> the values of all seeds.

    Panels and lines have the order of the points; x ascends.
    """
    lists: dict[str, dict[str, dict[float, list[float]]]] = {}
    for panel, line, x, _, value in points:
        lists.setdefault(panel, {}).setdefault(line, {}).setdefault(x, []).append(value)
    return {
        panel: {line: {x: np.array(v[x], dtype=float) for x in sorted(v)} for line, v in k.items()}
        for panel, k in lists.items()
    }


def _places(points: Iterable[Point]) -> Iterator[tuple[str, str, float, np.ndarray]]:
    for panel, lines in by_panel(points).items():
        for line, values in lines.items():
            yield from ((panel, line, x, runs) for x, runs in values.items())


def write_csv(path: Path, points: Iterable[Point], x: str) -> Path:
    """Writes mean, standard deviation and number of runs of each place."""
    rows = [
        [
            *(panel, line, number_cell(at), number_cell(round(float(runs.mean()), 6))),
            number_cell(round(float(runs.std(ddof=1)), 6)) if len(runs) > 1 else "",
            str(len(runs)),
        ]
        for panel, line, at, runs in _places(points)
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
        places, runs = list(values), list(values.values())
        marker = "." if len(places) < 20 else None
        axis.plot(places, [v.mean() for v in runs], marker=marker, linewidth=1.2, label=name)
        axis.fill_between(places, [v.min() for v in runs], [v.max() for v in runs], alpha=0.15)


def draw_bars(axis: Any, lines: Lines) -> None:
    """Draws bars at each x, with their standard deviations."""
    places = sorted({x for values in lines.values() for x in values})
    size = 0.8 / len(lines)
    for index, (name, values) in enumerate(lines.items()):
        at = [places.index(x) + (index - (len(lines) - 1) / 2) * size for x in values]
        heights = [runs.mean() for runs in values.values()]
        spread = [runs.std(ddof=1) if len(runs) > 1 else 0.0 for runs in values.values()]
        axis.bar(at, heights, width=size, yerr=spread, capsize=2, label=name)
    axis.set_xticks(range(len(places)), [f"{x:g}" for x in places])
