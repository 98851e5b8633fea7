"""Adds finished runs to the tables in `results/`, and makes the runs that claims lack.

`python -m reproduction.store OUT` adds the runs below OUT, the `--output_dir` of suites: rows that
a table lacks or has with fewer runs, and which test instances each run has right (`right`). With
`--replace=hotel/neucrowd_printed` a row takes the place of the stored one.

`python -m reproduction.store OUT --data_dir=DATA` then makes the runs whose test instances the
claims need and `results/right/` lacks, main claims first. It can be stopped and started again.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pandas as pd

from neucrowd_tf.errors import DataError, one_line
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.tables.writing import to_csv
from neucrowd_tf.names import without
from reproduction.catalogue import SUITES
from reproduction.claim import RESULTS, read
from reproduction.claims import lines_needed
from reproduction.collect import suite_runs
from reproduction.right import FOLDER, Row, fixed, of_suite, stored, write
from reproduction.suite import Suite
from reproduction.table import SEED_COLUMNS, Cell, cells, seed_rows, stored_table

# A run made again may differ from the stored one by so many test instances (other processors).
TOLERANCE = 2


def merge_tables(results: Path, suite: Suite, root: Path, replace: Sequence[str] = ()) -> list[str]:
    """Adds rows to a suite's table and to that by seed; returns the names of the rows.

    Args:
        results: folder of the tables.
        suite: whose runs.
        root: where they are.
        replace: patterns of `dataset/row` that take the place of stored rows.
    """
    path = results / f"{suite.name}.csv"
    table = stored_table(path)
    if "runs" not in table or not suite_runs(suite, root):
        return []
    new: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells(suite, root, only_rows=True):
        if cell.values:
            new.setdefault((cell.dataset, cell.method), []).append(cell)
    runs = table.astype({"runs": int}).groupby(["dataset", "method"])["runs"].max().to_dict()
    changed = []
    for key, row in new.items():
        asked = any(fnmatchcase("/".join(key), pattern) for pattern in replace)
        if asked or len(row[0].values) > runs.get(key, 0):
            changed.append(key)
    if changed:
        added = list(itertools.chain.from_iterable(map(new.__getitem__, changed)))
        _replace(path, table, changed, pd.DataFrame(map(Cell.row, added)))
        path = results / f"{suite.name}_seeds.csv"
        rows = pd.DataFrame(seed_rows(added), columns=SEED_COLUMNS)
        _replace(path, stored_table(path), changed, rows)
    return list(map("/".join, changed))


def _replace(
    path: Path, table: pd.DataFrame, keys: Sequence[tuple[str, str]], new: pd.DataFrame
) -> None:
    """Writes a stored table with new lines in place of some rows' lines; makes one of none."""
    if "method" in table:
        same = table.set_index(["dataset", "method"]).index.isin(keys)
        new = pd.concat([table[~same], new[[*table]]])
    write_text(path, to_csv([*new], new.to_numpy().tolist()))


def merge_right(results: Path, suite: Suite, root: Path) -> int:
    """Adds which instances a suite's runs have right; returns how many lines are new.

    Raises:
        DataError: a run differs from the value stored for its seed by more than `TOLERANCE`, or its
            test instances are not those of the stored lines of its data set.
    """
    before = stored(results, suite.name)
    lines = dict(before)
    values = _values(results, suite.name)
    new = 0
    for row, right in of_suite(suite, root).items():
        value = values.get(row)
        if value is None:
            continue
        apart = abs(right.bits.mean() - value) * len(right.bits)
        if apart > TOLERANCE + 1e-6:
            raise DataError(
                f"{suite.name}: {'/'.join(map(str, row))}: {apart:.0f} instances from the stored"
                " value. Name the row in --replace, or look for what changed."
            )
        new += row not in lines or lines[row].bits.tolist() != right.bits.tolist()
        lines[row] = right
    merged = fixed(lines)
    for row in without(before, merged):
        raise DataError(
            f"{suite.name}: {row.dataset}: the test instances are not those of the stored runs."
            f" Look for what changed, or remove its lines from {FOLDER}/{suite.name}.csv."
        )
    if new:
        write(results, suite.name, merged)
    return new


def _values(results: Path, suite: str) -> dict[Row, float]:
    table = stored_table(results / f"{suite}_seeds.csv")
    values = {}
    for line in table.to_dict("records"):
        if line["value"]:
            names = (line["dataset"], line["method"], line["metric"])
            values[Row(*names, int(line["seed"]))] = float(line["value"])
    return values


def missing(results: Path) -> Iterator[tuple[Suite, str]]:
    """Yields suites and `dataset/row` that "seeds only" claims lack, main claims first."""
    asked = set()
    for claim in sorted(read(), key=lambda claim: not claim.headline):
        if claim.ours is None or not claim.ours.seeds_only:
            continue
        for suite, row, metric in lines_needed(claim):
            name = f"{claim.data}/{row}"
            lines = stored(results, suite.name)
            runs = (x for x in _values(results, suite.name) if x[:3] == (claim.data, row, metric))
            lacking = any(run not in lines for run in runs)
            if lacking and (suite.name, name) not in asked:
                asked.add((suite.name, name))
                yield suite, name


def main(
    out: Path, results: Path, data_dir: Path | None, limit: int | None, replace: Sequence[str]
) -> None:
    """Adds runs, and makes those that are missing if there are data."""
    for suite in SUITES:
        rows = merge_tables(results, suite, out, replace)
        if number := merge_right(results, suite, out):
            rows.append(f"right and wrong of {number} runs")
        if rows:
            sys.stdout.write(f"{suite.name}: {', '.join(rows)}\n")
    lacking = list(missing(results))
    sys.stdout.write(f"{len(lacking)} rows of claims lack right and wrong by instance\n")
    for suite, name in lacking[:limit] if data_dir is not None else []:
        command = [sys.executable, "run_experiment.py", f"--suite={suite.name}"]
        command += [f"--rows={name.replace(',', '?')}", f"--data_dir={data_dir}"]
        sys.stdout.write(f"{suite.name}: {name}\n")
        sys.stdout.flush()
        subprocess.run([*command, f"--output_dir={out}"], check=True, stdout=subprocess.DEVNULL)
        merge_right(results, suite, out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the --output_dir of suites")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--data_dir", type=Path, help="make what is missing from these data")
    parser.add_argument("--limit", type=int, help="rows to make at most")
    parser.add_argument("--replace", nargs="*", default=(), help="rows that replace stored ones")
    try:
        main(**vars(parser.parse_args()))
    except (DataError, OSError) as error:
        sys.exit(f"error: {one_line(error)}")
