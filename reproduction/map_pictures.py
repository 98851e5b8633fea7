"""Pictures of maps: a panel for each dataset, coloured where the gain's interval excludes 0."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from neucrowd_tf.declare.types import Axes
from reproduction.map_cells import Cell, Row, in_order, places
from reproduction.panels import Figure, save
from reproduction.suite import Suite

try:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle
except ImportError:  # then there are no pictures, as without `Figure`
    pass

TITLE = (
    "Gain in accuracy (DASC: balanced) over the best simple rival, in points (below it:"
    " in AUC). Coloured: the 95% interval excludes 0. Hatched: runs are missing."
)
_STRONGEST = 0.08  # the gain of the strongest colour


def draw(
    path: Path, maps: Mapping[str, tuple[Suite, Sequence[Row]]], overview: bool = False
) -> list[Path]:
    """Draws a panel for each dataset of each map; returns the picture.

    Columns are the values of all axes but the last, rows those of the last by method. An overview
    has each map's first dataset and the methods that it is of. The result is empty without cells or
    matplotlib.
    """
    grids = {}
    for title, (suite, table) in maps.items():
        cells = list(map(Cell.of, table))
        for dataset in list(dict.fromkeys(cell.place["dataset"] for cell in cells)):
            shown = []
            for cell in cells:
                hidden = overview and cell.method not in suite.rivals
                if cell.place["dataset"] == dataset and ", " not in cell.method and not hidden:
                    shown.append(cell)
            if shown:
                grids[f"{title}: {dataset}" if overview else dataset] = _Grid(suite, shown)
            if overview:
                break
    if Figure is None or not grids:
        return []
    heights = [max(2, len(grid.lines)) for grid in grids.values()]
    figure = Figure(figsize=(14, 0.55 * sum(heights) + 1.5 * len(grids)), layout="constrained")
    axes = figure.subplots(len(grids), 1, squeeze=False, height_ratios=heights).ravel()
    for axis, (title, grid) in zip(axes, grids.items(), strict=True):
        grid.draw(axis)
        axis.set_title(title, fontsize=9, loc="left")
    figure.suptitle(TITLE, fontsize=9)
    return save(figure, path, dpi=90)


class _Grid:
    """The cells of a panel by their column and line, which are titles."""

    def __init__(self, suite: Suite, cells: Sequence[Cell]) -> None:
        _, *axes = cells[0].place
        self._across = axes[:-1] or axes
        self._down = axes[len(self._across) :]
        dataset = cells[0].place["dataset"]
        here = [place for place in places(suite) if place["dataset"] == dataset]
        self.columns = _titles(here, self._across)
        down = _titles(in_order(here, self._down), self._down)
        self.lines = []
        for method in dict.fromkeys(cell.method for cell in cells):
            self.lines += [f"{method} {title}".rstrip() for title in down]
        self._cells = dict(zip(map(self._key, cells), cells, strict=True))

    def _key(self, cell: Cell) -> tuple[str, str]:
        line = f"{cell.method} {_title(cell.place, self._down)}".rstrip()
        return _title(cell.place, self._across), line

    def draw(self, axis: Axes) -> None:
        """Draws the cells with their numbers."""
        for x, column in enumerate(self.columns):
            for y, line in enumerate(self.lines):
                cell = self._cells.get((column, line))
                if cell is not None:
                    _draw_cell(axis, x, y, cell)
        labels = [column.replace(" ", "\n") for column in self.columns]
        axis.set_xticks(range(len(labels)), labels, fontsize=6)
        axis.set_yticks(range(len(self.lines)), self.lines, fontsize=7)
        axis.set(xlim=(-0.5, len(labels) - 0.5), ylim=(len(self.lines) - 0.5, -0.5))


def _titles(distinct: Iterable[Mapping[str, str]], names: Sequence[str]) -> list[str]:
    """Returns the different titles of some places."""
    return list(dict.fromkeys(_title(place, names) for place in distinct))


def _title(place: Mapping[str, str], names: Sequence[str]) -> str:
    return " ".join(f"{name}={place[name]}" for name in names)


def _draw_cell(axis: Axes, x: int, y: int, cell: Cell) -> None:
    """Draws a cell: coloured if its interval excludes 0, hatched if runs are missing."""
    gain = cell.gain.estimate
    apart = cell.is_complete and cell.outcome != 0
    face = colormaps["RdBu"](0.5 + 0.5 * max(-1.0, min(1.0, gain / _STRONGEST)))
    axis.add_patch(
        Rectangle(
            (x - 0.5, y - 0.5),
            *(1, 1),
            linewidth=0.6,
            facecolor=face if apart else "white",
            edgecolor="0.6",
            hatch=None if cell.is_complete else "////",
        )
    )
    auc = "" if math.isnan(cell.auc_gain) else f"{100 * cell.auc_gain:+.1f}"
    strong = apart and abs(gain) > 0.6 * _STRONGEST
    place = {"ha": "center", "va": "center", "fontsize": 7}
    axis.text(x, y, f"{100 * gain:+.1f}\n({auc})", color="white" if strong else "black", **place)
