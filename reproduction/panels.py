"""Figures as CSV and PNG: panels beside each other, in each a line (or bars) for every method, the
mean over seeds with its range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neucrowd_tf.io.csv_cells import number_cell, to_csv
from neucrowd_tf.io.files import atomic_path, write_text

_COLUMNS = 3


class Point(NamedTuple):
    """One run's value at one place of a figure."""

    panel: str
    line: str
    x: float
    seed: int
    value: float


Means = dict[str, dict[str, dict[float, np.ndarray]]]


def means(points: Sequence[Point]) -> Means:
    """Returns panel -> line -> x -> the values of all seeds, in the order in which they come; x
    ascends.
    """
    found: dict[str, dict[str, dict[float, list[float]]]] = {}
    for point in points:
        found.setdefault(point.panel, {}).setdefault(point.line, {}).setdefault(point.x, []).append(
            point.value
        )
    return {
        p: {
            n: {x: np.array(values[x], dtype=float) for x in sorted(values)}
            for n, values in lines.items()
        }
        for p, lines in found.items()
    }


def write_csv(path: Path, points: Sequence[Point], x: str) -> Path:
    """Writes mean, standard deviation and number of runs of each place."""
    rows = []
    for panel, lines in means(points).items():
        for line, values in lines.items():
            for at, part in values.items():
                deviation = number_cell(round(float(part.std(ddof=1)), 6)) if len(part) > 1 else ""
                rows.append(
                    [
                        panel,
                        line,
                        number_cell(at),
                        number_cell(round(float(part.mean()), 6)),
                        deviation,
                        str(len(part)),
                    ]
                )
    write_text(path, to_csv(["panel", "line", x, "mean", "sd", "runs"], rows))
    return path


def write(
    path: Path, points: Sequence[Point], title: str, x: str, y: str, *, draw: str = "lines"
) -> list[Path]:
    """Writes a figure as CSV and, with matplotlib, as PNG; returns the files.

    Args:
        path: without a suffix.
        draw: "lines", or "bars" at each x.
    """
    made = [write_csv(path.with_suffix(".csv"), points, x)]
    shown = means(points)
    if shown:
        kinds: dict[str, Callable[[Any, dict[str, dict[float, np.ndarray]]], None]] = {
            "lines": draw_lines,
            "bars": draw_bars,
        }

        def panel(axis: Any, name: str) -> None:
            kinds[draw](axis, shown[name])
            axis.set(xlabel=x, ylabel=y)

        made += draw_panels(path.with_suffix(".png"), list(shown), panel, title)
    return made


def draw_panels(
    path: Path, names: Sequence[str], draw: Callable[[Any, str], None], title: str
) -> list[Path]:
    """Draws panels with their names above; returns the picture, or nothing where matplotlib is
    missing.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return []
    width = len(names) if len(names) <= 4 else _COLUMNS
    height = -(-len(names) // width)
    figure = Figure(figsize=(4.2 * width, 3.1 * height + 0.3), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(height, width, squeeze=False).ravel()
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


def draw_lines(axis: Any, lines: dict[str, dict[float, np.ndarray]]) -> None:
    """Draws each line with its range over seeds."""
    for name, values in lines.items():
        places = list(values)
        axis.plot(
            places,
            [part.mean() for part in values.values()],
            marker="." if len(places) < 20 else None,
            linewidth=1.2,
            label=name,
        )
        axis.fill_between(
            places,
            [part.min() for part in values.values()],
            [part.max() for part in values.values()],
            alpha=0.15,
        )


def draw_bars(axis: Any, lines: dict[str, dict[float, np.ndarray]]) -> None:
    """Draws bars at each x, with their standard deviations."""
    places = sorted({x for values in lines.values() for x in values})
    size = 0.8 / len(lines)
    for index, (name, values) in enumerate(lines.items()):
        at = [places.index(x) + (index - (len(lines) - 1) / 2) * size for x in values]
        spread = [part.std(ddof=1) if len(part) > 1 else 0.0 for part in values.values()]
        axis.bar(
            at,
            [part.mean() for part in values.values()],
            width=size,
            yerr=spread,
            capsize=2,
            label=name,
        )
    axis.set_xticks(range(len(places)), [f"{x:g}" for x in places])
