"""Right and wrong of every test instance, so that a gain's interval is over instances too.

`results/right/<suite>.csv` has a line for each run of a data set whose test instances are the same
for every seed: the name of the run, a digest of its test set, and a bit for each labelled test
instance as hexadecimal digits. Data sets that each seed draws anew are left out: an interval over
their seeds is over instances as well.
`reproduction.store` adds to these files.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from neucrowd_tf.declare.types import Floats, Mask
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.predictions import read_predictions
from neucrowd_tf.io.run_files import EVALUATION, FINISHED, PREDICTIONS
from neucrowd_tf.io.tables.writing import to_csv
from reproduction.collect import FinishedRun, suite_runs
from reproduction.suite import Suite

FOLDER = "right"
COLUMNS = ("dataset", "method", "metric", "seed", "test", "bits")
ACCURACY = "accuracy"
# The first and the last round of self-training.
BY_ROUND = ("start_accuracy", "last_round_accuracy")

Bits = Mask


class Row(NamedTuple):
    """The run of a row, by which its line is identified."""

    dataset: str
    method: str
    metric: str
    seed: int


class Right(NamedTuple):
    """Which labelled test instances a run has right.

    `test` is a digest of the test instances and of their labels.
    """

    test: str
    bits: Bits


def packed(bits: Bits) -> str:
    """Returns bits as hexadecimal digits, after their number: "140:ff0..."."""
    return f"{len(bits)}:{np.packbits(bits).tobytes().hex()}"


def unpacked(text: str) -> Bits:
    """Returns the bits that `packed` was given."""
    size, _, digits = text.partition(":")
    packs = np.frombuffer(bytes.fromhex(digits), dtype=np.uint8)
    return np.unpackbits(packs, count=int(size)).astype(bool)


def of_run(run: FinishedRun) -> Iterator[tuple[str, Right]]:
    """Yields the metrics of a run that are shares of right instances, and which these are."""
    metrics = run.read(FINISHED)
    path = run.folder / PREDICTIONS
    if run.case.folds is not None or "test_digest" not in metrics or not path.exists():
        return
    table = read_predictions(path)
    rows = np.flatnonzero(table.labels >= 0)
    if not len(rows):
        return
    identity = (metrics["test_digest"], list(table.tasks), table.labels.tolist())
    test = hashlib.sha256(repr(identity).encode()).hexdigest()[:8]
    right = table.probabilities[rows].argmax(axis=1) == table.labels[rows]
    yield ACCURACY, Right(test, right)
    evaluation = run.read(EVALUATION)
    for metric in BY_ROUND:
        if digits := evaluation.get(metric.replace("accuracy", "right")):
            yield metric, Right(test, unpacked(f"{len(rows)}:{digits}"))


def of_suite(suite: Suite, root: Path) -> dict[Row, Right]:
    """Returns the lines of a suite's runs, without data sets that each seed draws anew."""
    lines = {}
    for run in suite_runs(suite, root):
        for metric, right in of_run(run):
            row = Row(run.dataset, run.case.row_name(run.method), metric, run.seed)
            lines[row] = right
    return fixed(lines)


def fixed(lines: Mapping[Row, Right]) -> dict[Row, Right]:
    """Returns the lines of data sets whose test instances are the same in all lines."""
    tests: dict[str, set[str]] = {}
    for row, right in lines.items():
        tests.setdefault(row.dataset, set()).add(right.test)
    return {row: right for row, right in lines.items() if len(tests[row.dataset]) == 1}


def file_of(results: Path, suite: str) -> Path:
    """Returns where the lines of a suite are stored."""
    return results / FOLDER / f"{suite}.csv"


def stored(results: Path, suite: str) -> Mapping[Row, Right]:
    """Returns the stored lines of a suite; none without a file."""
    path = file_of(results, suite)
    if path.exists():
        return _read(path, path.stat().st_mtime_ns)
    return {}


@functools.lru_cache(maxsize=64)
def _read(path: Path, changed: int) -> dict[Row, Right]:
    del changed
    lines = {}
    table = pd.read_csv(path, dtype={"seed": int, "test": str, "bits": str})
    for dataset, method, metric, seed, test, bits in table[list(COLUMNS)].itertuples(index=False):
        lines[Row(dataset, method, metric, int(seed))] = Right(test, unpacked(bits))
    return lines


def write(results: Path, suite: str, lines: Mapping[Row, Right]) -> None:
    """Writes the lines of a suite, or removes the file of a suite without lines."""
    path = file_of(results, suite)
    if not lines:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [[*map(str, row), lines[row].test, packed(lines[row].bits)] for row in sorted(lines)]
    write_text(path, to_csv(COLUMNS, cells))


def differences(
    pairs: Iterable[tuple[Mapping[Row, Right], Row, Mapping[Row, Right], Row]], seeds: Sequence[int]
) -> Floats | None:
    """Returns `[S, M]` mean differences of rows and their controls by seed and test instance.

    Args:
        pairs: the stored lines of a row and the row, then those of its control; their seeds are
            ignored.
        seeds: S seeds.

    Returns:
        None if a line is missing, or if the runs do not share their test instances.
    """
    tables = []
    tests: set[str] = set()
    for lines, row, control_lines, control in pairs:
        for seed in seeds:
            ours = lines.get(row._replace(seed=seed))
            theirs = control_lines.get(control._replace(seed=seed))
            if ours is None or theirs is None:
                return None
            tests |= {ours.test, theirs.test}
            tables.append(ours.bits.astype(np.float64) - theirs.bits)
    if len(tests) != 1:
        return None
    by_pair = np.reshape(tables, (-1, len(seeds), len(tables[0])))
    return np.asarray(by_pair.mean(axis=0))
