"""Sentences on maps: in which cells each method pays, and along which axis its gain changes."""

from __future__ import annotations

import dataclasses
import itertools
import math
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from scipy import stats

from neucrowd_tf.declare.picking import having
from neucrowd_tf.names import among
from reproduction.map_cells import (
    CONFIDENCE,
    CONTROL,
    Cell,
    maps_of,
    places,
    read_rows,
    split_setting,
)
from reproduction.suite import Suite

OVERVIEW = "maps.png"


def sentences(
    results: Path, suites: Iterable[Suite], paper: str | None = None, brief: bool = False
) -> list[str]:
    """Returns where each method is more and less accurate; one without complete cells is left out.

    Args:
        results: folder of the stored tables.
        suites: of the catalogue.
        paper: the one paper, as suites' titles begin ("NeuCrowd"); None for all.
        brief: whether to say only where.
    """
    lines = []
    for suite in maps_of(suites):
        if paper in (None, suite.title.partition(",")[0]):
            cells = list(map(Cell.of, read_rows(results, suite.name)))
            for method in suite.rivals:
                of_method = having(cells, method=method)
                if having(of_method, is_complete=True):
                    text = f"- {_sentence(suite, method, of_method, brief)}"
                    lines += textwrap.wrap(
                        text, 100, subsequent_indent="  ", break_on_hyphens=False
                    )
    return lines


def section(results: Path, suites: Iterable[Suite]) -> str:
    """Returns the section on maps for the page of results; "" without a stored map."""
    stored = [suite for suite in maps_of(suites) if read_rows(results, suite.name)]
    if not stored:
        return ""
    lines = [
        "",
        "## Where each method pays",
        "",
        "The gain over the best simple rival, in complete cells of [maps](docs/research/maps.md);"
        " `crowding` has our loss.",
        "",
        *sentences(results, stored, brief=True),
    ]
    if (results / OVERVIEW).exists():
        lines += ["", f"![Gain by cell of each map](results/{OVERVIEW})"]
    return "\n".join(lines) + "\n"


def _sentence(suite: Suite, method: str, cells: Sequence[Cell], brief: bool) -> str:
    """Returns the sentence of one method."""
    asked = _cells_asked(suite, method)
    measured = having(cells, is_complete=True)
    gaining = having(measured, outcome=1)
    losing = having(measured, outcome=-1)
    undecided = len(measured) - len(gaining) - len(losing)
    where = _where(measured, gaining, brief)
    if brief:
        behind = "in none"
        if losing:
            behind = _where(measured, losing, brief)
        return f"`{method}` gains points {where}, is behind {behind}."
    text = (
        f"`{method}` gains points over the best of {len(suite.rivals[method])} rivals {where}."
        f" It is behind {_where(measured, losing)}, and undecided in {undecided}."
        f" {_change(measured)}"
    )
    missing = asked - len(measured)
    return text + f" {missing} of {asked} cells lack runs." * bool(missing)


def _cells_asked(suite: Suite, method: str) -> int:
    cases = []
    for case in suite.cases:
        if method in case.methods and split_setting(case.setting)[1] != CONTROL:
            cases.append(case)
    return len(places(dataclasses.replace(suite, cases=tuple(cases))))


def _where(measured: Sequence[Cell], chosen: Sequence[Cell], brief: bool = False) -> str:
    """Returns "in no cell of 4", the cells if they are few, or the values that limit them."""
    if not chosen:
        return f"in no cell of {len(measured)}"
    if len(chosen) <= 3 and not brief:
        return "in " + "; ".join(map(_cell_text, chosen))
    limits = []
    for name in chosen[0].place:
        tested = dict.fromkeys(cell.place[name] for cell in measured)
        remaining = {cell.place[name] for cell in chosen}
        if len(remaining) < len(tested):
            limits.append(f"{name} {' or '.join(among(tested, remaining))}")
    which = ", at every value of each axis"
    if limits:
        which = f", all with {' and '.join(limits)}"
    gains = [cell.gain.estimate for cell in chosen]
    size = f"{100 * min(gains):+.1f} to {100 * max(gains):+.1f}"
    return f"in {len(chosen)} of {len(measured)} cells{which} ({size})"


def _cell_text(cell: Cell) -> str:
    (_, dataset), *axes = cell.place.items()
    place = ", ".join(map(" ".join, axes))
    gain = (
        f"{100 * cell.gain.estimate:+.1f} [{100 * cell.gain.low:+.1f}, {100 * cell.gain.high:+.1f}]"
    )
    return f"{dataset} with {place} ({gain})"


def _change(measured: Sequence[Cell]) -> str:
    """Returns along which axis the gain changes most, or that no change is beyond its interval.

    Compared are all pairs of cells that differ in one axis; Bonferroni's correction is for them.
    """
    pairs = []
    for first, second in itertools.combinations(measured, 2):
        differ = [name for name in first.place if first.place[name] != second.place[name]]
        if len(differ) == 1 and differ != ["dataset"]:
            change = abs(second.gain.estimate - first.gain.estimate)
            error = math.hypot(_error(first), _error(second))
            pairs.append((change / error, differ[0], first, second))
    if not pairs:
        return "No two cells that differ in one axis have all their runs."
    size, axis, first, second = max(pairs, key=lambda pair: pair[0])
    if size <= stats.norm.ppf(1 - (1 - CONFIDENCE) / 2 / len(pairs)):
        return f"The gain changes significantly along none of the axes, in {len(measured)} cells."
    same = ", ".join(f"{name} {value}" for name, value in first.place.items() if name != axis)
    return (
        f"The gain changes most clearly along {axis} ({same}): {100 * first.gain.estimate:+.1f}"
        f" at {first.place[axis]}, {100 * second.gain.estimate:+.1f} at {second.place[axis]}."
    )


def _error(cell: Cell) -> float:
    """Returns the standard error of a cell's gain, a little above zero."""
    quantile = float(stats.t.ppf(0.5 + CONFIDENCE / 2, cell.runs - 1))
    return max((cell.gain.high - cell.gain.low) / 2 / quantile, 1e-9)
