"""Maps of where a method pays: its gain over the best simple rival in each cell of a grid.

`python -m reproduction.maps OUT results` adds the cells of finished runs to the stored maps, also
those of a suite that was stopped, and draws the maps anew.
"""

from __future__ import annotations

import argparse
import operator
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.errors import DataError, one_line
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.tables.writing import to_csv
from reproduction.map_cells import Row, maps_of, place_of, places, read_rows, rows
from reproduction.map_pictures import draw
from reproduction.map_sentences import OVERVIEW
from reproduction.panels import RESULTS
from reproduction.suite import Suite


def write(suite: Suite, options: Options) -> list[Path]:
    """Writes a map of finished runs as CSV and PNG; returns the files."""
    return store(suite, list(rows(suite, options.output_dir)), options.output_dir / RESULTS)


def store(suite: Suite, table: Sequence[Row], folder: Path) -> list[Path]:
    """Writes a map's cells as CSV and, with matplotlib, as PNG."""
    if not table:
        return []
    path = folder / f"{suite.name}.csv"
    columns = list(table[0])
    write_text(path, to_csv(columns, map(operator.itemgetter(*columns), table)))
    return [path, *draw(path.with_suffix(".png"), {suite.title: (suite, table)})]


def merge(new: Mapping[str, Sequence[Row]], target: Path, suites: Iterable[Suite]) -> list[Path]:
    """Adds cells by their map's name to those of a folder; of one cell, that of more runs stays."""
    written = []
    maps = {}
    for suite in maps_of(suites):
        cells: dict[tuple[str, ...], Row] = {}
        for row in [*read_rows(target, suite.name), *new.get(suite.name, ())]:
            key = (*place_of(row).values(), row["method"])
            if key not in cells or int(cells[key]["runs"]) <= int(row["runs"]):
                cells[key] = row
        order = places(suite)
        table = sorted(cells.values(), key=lambda row: _position(order, place_of(row)))
        written += store(suite, table, target)
        if table:
            maps[suite.title.partition(",")[0]] = suite, table
    return [*written, *draw(target / OVERVIEW, maps, overview=True)]


def _position(order: Sequence[dict[str, str]], place: dict[str, str]) -> int:
    """Returns where a cell stands; one that the suite no longer has comes last."""
    if place in order:
        return order.index(place)
    return len(order)


if __name__ == "__main__":
    from reproduction.catalogue import SUITES

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="output folder of the runs")
    parser.add_argument("target", type=Path, help="folder of the stored tables")
    options = parser.parse_args()
    try:
        new = {suite.name: list(rows(suite, options.source)) for suite in maps_of(SUITES)}
        for path in merge(new, options.target, SUITES):
            print(path)
    except (DataError, OSError) as error:
        sys.exit(f"error: {one_line(error)}")
