"""Our figure and verdict of each claim, recomputed from the tables in `results/`.

`python -m reproduction.claims` prints them; `--write` puts new figures into claims.toml.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from neucrowd_tf.declare.picking import by_name, starting_with
from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.intervals import Interval, crossed_interval, mean_interval
from neucrowd_tf.io.files.atomic import write_text
from reproduction.catalogue import SUITES
from reproduction.claim import CLAIMS, READING, RESULTS, SAME, Claim, Ours, read, updated
from reproduction.printed import TABLES, Figure, why_absent
from reproduction.right import ACCURACY, BY_ROUND, Row, differences, stored
from reproduction.suite import Suite
from reproduction.table import COLUMNS
from reproduction.verdicts import (
    AHEAD,
    MEASURED,
    NOT_TRAINED,
    all_verdict,
    gain_verdict,
    kind_of,
    most_verdict,
    prediction_interval,
    value_verdict,
)

NOT_COMPARED = "not compared"
# Their test instances are the same for every seed; those of other data are drawn by the seed, so
# that an interval over seeds is over instances too.
FIXED = frozenset({"hotel", "labelme", "music", "labelme_ovr_0", "labelme_ovr_4"})
# How many test instances the stored instances may differ from the stored values, on average.
MOST_APART = 2.0
_SUITES = by_name(SUITES)
_KEY = ["dataset", "method", "metric"]
# A study of `auto`, a line for each run and a column for each metric, without a suite's table.
AUTO_RUNS = "auto_accuracy"
_NO_LINES = pd.DataFrame(columns=["seed", "value", *COLUMNS])


def recompute(claim: Claim, results: Path = RESULTS) -> Claim:
    """Returns the claim with our figure and verdict by the tables in `results`.

    Raises:
        DataError: the table lacks the claim's row.
    """
    if claim.data_sets:
        ours, verdict = _over_data_sets(claim, results)
    elif not claim.suite:
        ours = None
        verdict = why_absent(claim.data) or claim.absent or READING
    elif claim.controls:
        ours, verdict = _gains(claim, results)
    else:
        ours, verdict = _value(claim, results)
    return dataclasses.replace(claim, ours=ours, verdict=verdict)


def _trained(claim: Claim, results: Path) -> bool:
    """Returns whether most runs of each row trained, as far as the table says."""
    for row in claim.rows:
        lines = _lines(results / f"{claim.suite}.csv", claim.data, row, claim.metric)
        if len(lines) and lines.iloc[0].get("verdict") == NOT_TRAINED:
            return False
    return True


def _over_data_sets(claim: Claim, results: Path) -> tuple[Ours | None, str]:
    """Returns a claim about most data sets, judged by its claims of one data set each."""
    claims = by_name(read())
    verdicts = []
    means = []
    runs = []
    for name in claim.data_sets:
        member = recompute(claims[name], results)
        verdicts.append(member.word)
        if member.ours is not None:
            means.append(member.ours.mean)
            runs.append(member.ours.runs)
    leads = f"{verdicts.count(AHEAD)} of {len(verdicts)}"
    ours = Ours(round(float(np.mean(means)), 5), runs=min(runs), leads=leads)
    return ours, f"{most_verdict(verdicts)}, on {leads} data sets"


# --------------------------------------------------------------------------- values


def _value(claim: Claim, results: Path) -> tuple[Ours | None, str]:
    """Returns the value of the claim's row, and what it says of the published one."""
    row = claim.rows[0]
    line = _line(claim, results, claim.suite, row, claim.metric, claim.x)
    figure = _published(claim, row, claim.metric)
    if figure is None and claim.published is not None:
        figure = Figure(claim.published)
    interval = line.predicted(figure, kind_of(claim.metric))
    published = None
    if figure is not None:
        published = round(figure.mean, 5)
    ours = _ours(interval, line.runs, line.by_seed, published)
    if not _trained(claim, results):
        return ours, NOT_TRAINED
    if claim.choice:
        return ours, MEASURED
    if claim.comparability != SAME:
        return ours, NOT_COMPARED
    return ours, value_verdict(published, interval, line.runs)


def _published(claim: Claim, row: str, metric: str) -> Figure | None:
    """Returns a row's published value, of the suite's own figures or of any table's.

    A method and its published form (`iced`, `iced_printed`) have the same values.
    """
    tables = list(map(TABLES.__getitem__, starting_with(TABLES, claim.suite.split("_")[0])))
    if claim.suite in _SUITES:
        tables.insert(0, _SUITES[claim.suite].figures)
    for name in (row, row.removesuffix("_printed"), f"{row}_printed"):
        for table in tables:
            by_metric = table.get((claim.data, name), {})
            if metric in by_metric:
                return by_metric[metric]
    return None


def _ours(
    interval: Interval,
    runs: int,
    by_seed: pd.Series,
    published: float | None,
    seeds_only: bool = False,
) -> Ours:
    """Returns a rounded figure with its seeds: "20000-20009", or each where one is missing."""
    low, high = (
        None if math.isnan(end) else round(end, 5) for end in (interval.low, interval.high)
    )
    seeds = sorted(map(int, by_seed.index))
    span = " ".join(map(str, seeds))
    if seeds and seeds[-1] - seeds[0] + 1 == len(seeds):
        span = f"{seeds[0]}-{seeds[-1]}"
    mean = round(interval.estimate, 5)
    return Ours(mean, low, high, runs, span, published, seeds_only=seeds_only)


# --------------------------------------------------------------------------- gains


def _gains(claim: Claim, results: Path) -> tuple[Ours | None, str]:
    """Returns the claim's worst gain over its controls, and what all of them say."""
    rows = claim.rows
    controls = claim.controls
    if len(rows) > 1:
        gains = [_gain(_Pairs(claim, rows, controls, results))]
    else:
        gains = [_gain(_Pairs(claim, rows, [control], results)) for control in controls]
    if not _trained(claim, results):
        return gains[0][1], NOT_TRAINED
    verdicts = [gain_verdict(x, ours.runs, claim.margin) for x, ours in gains]
    # What decides the verdict on all of them, then the smallest gain.
    deciding = all_verdict(verdicts)
    worst = min(
        range(len(gains)), key=lambda index: (verdicts[index] != deciding, gains[index][0].estimate)
    )
    ours = gains[worst][1]
    if len(gains) == 1:
        return ours, deciding
    leads = f"{verdicts.count(AHEAD)} of {len(verdicts)}"
    leading = [ours.published for _, ours in gains if ours.published is not None]
    published = min(leading, default=None)
    ours = dataclasses.replace(ours, over=controls[worst], leads=leads, published=published)
    return ours, f"{deciding}, {leads}"


class _Pairs(NamedTuple):
    """Rows of a claim and the control of each."""

    claim: Claim
    rows: list[str]
    controls: list[str]
    results: Path

    @property
    def sign(self) -> float:
        if self.claim.less:
            return -1.0
        return 1.0


def _gain(pairs: _Pairs) -> tuple[Interval, Ours]:
    """Returns the mean gain of rows over their controls, with its interval.

    By seed if both have values by seed; else from means and deviations, as of unpaired runs. The
    interval is over seeds and test instances where right and wrong are stored (`right`).
    """
    claim, rows, controls, results = pairs
    suite = claim.suite_of_control
    metric = claim.metric_of_control
    other_x = claim.x if claim.control_x is None else claim.control_x
    by_seed = []
    for row, control in zip(rows, controls, strict=True):
        line = _line(claim, results, claim.suite, row, claim.metric, claim.x)
        other = _line(claim, results, suite, control, metric, other_x)
        by_seed.append(pairs.sign * (line.by_seed - other.by_seed).dropna())
    gains = sum(by_seed[1:], by_seed[0]).dropna()
    if not claim.added:
        gains /= len(by_seed)
    runs = len(gains)
    if runs:
        interval = mean_interval(gains)
        crossed = _with_instances(pairs, gains)
    elif len(rows) > 1:
        raise DataError(f"claims.toml: {claim.name}: several rows need values by seed")
    else:
        runs = min(line.runs, other.runs)
        crossed = _stored_interval(pairs, "gain_instances")
        # Without one, of one more mean of as many runs as the control has: Welch's interval.
        welch = line._replace(mean=pairs.sign * (line.mean - other.mean))
        theirs = Figure(other.mean, other.deviation, other.runs)
        interval = _stored_interval(pairs, "gain") or welch.predicted(theirs, "gain")
    published = claim.published
    if published is None and not claim.panel:
        published = _published_gain(pairs)
    seeds_only = crossed is None and claim.data in FIXED
    interval = crossed or interval
    return interval, _ours(interval, runs, gains, published, seeds_only)


def _published_gain(pairs: _Pairs) -> float | None:
    """Returns the mean of the published gains; None where one of the values is not published.

    Two forms of one method share its value: the paper does not compare them.
    """
    claim, rows, controls, _ = pairs
    gains = []
    for row, control in zip(rows, controls, strict=True):
        ours = _published(claim, row, claim.metric)
        theirs = _published(claim, control, claim.metric_of_control)
        if ours is None or theirs is None or ours is theirs:
            return None
        gains.append(pairs.sign * (ours.mean - theirs.mean))
    return round(float(np.mean(gains)), 5)


def _with_instances(pairs: _Pairs, gains: pd.Series) -> Interval | None:
    """Returns the gain with its interval over seeds and instances; None if it is not stored.

    Raises:
        DataError: the stored instances contradict the gains by seed.
    """
    claim, rows, controls, results = pairs
    ours = stored(results, claim.suite)
    theirs = stored(results, claim.suite_of_control)
    runs = []
    for row, control in zip(rows, controls, strict=True):
        run = Row(claim.data, row, claim.metric, 0)
        runs.append((ours, run, theirs, Row(claim.data, control, claim.metric_of_control, 0)))
    table = differences(runs, list(map(int, gains.index)))
    if table is None:
        return _stored_interval(pairs, "gain_instances")
    table = table * pairs.sign
    if claim.added:
        table *= len(rows)
    if abs(table.mean() - gains.mean()) * table.shape[1] > MOST_APART:
        raise DataError(f"claims.toml: {claim.name}: stored instances differ from the table")
    return crossed_interval(table)


def _stored_interval(pairs: _Pairs, stem: str) -> Interval | None:
    """Returns the gain and the interval that the suite's table has, if any.

    A table has the gain in its first metric over its baseline with the same setting, or else over
    the plain one. With the row and the baseline exchanged it is the opposite.

    Args:
        pairs: one row and its control.
        stem: of the columns, "gain_instances" for the interval over seeds and instances, "gain" for
            that over seeds.
    """
    claim, rows, controls, results = pairs
    suite = _SUITES.get(claim.suite)
    plain = not (claim.control_suite or claim.control_metric or claim.less)
    if suite is None or claim.metric != suite.metrics[0] or len(rows) > 1 or not plain:
        return None
    path = results / f"{claim.suite}.csv"
    for name, other, sign in ((rows[0], controls[0], 1.0), (controls[0], rows[0], -1.0)):
        setting, separator, method = name.rpartition("/")
        baseline = f"{setting}{separator}{suite.baseline_of(method)}"
        if baseline == name or not len(_lines(path, claim.data, baseline, claim.metric)):
            baseline = suite.baseline_of(method)
        if baseline == other:
            line = _lines(path, claim.data, name, claim.metric)
            ends = sign * line[["gain", f"{stem}_low", f"{stem}_high"]].to_numpy(float)
            if ends.size and not np.isnan(ends).any():
                mean, *bounds = ends[0].tolist()
                return Interval(mean, min(bounds), max(bounds))
    return None


def lines_needed(claim: Claim) -> list[tuple[Suite, str, str]]:
    """Returns (suite, row, metric) of the runs whose instances a claim's interval needs."""
    metric = claim.metric_of_control
    apart = not claim.controls or claim.panel or claim.data not in FIXED
    apart = apart or claim.suite == AUTO_RUNS
    if apart or not {claim.metric, metric} <= {ACCURACY, *BY_ROUND}:
        return []
    ours = _SUITES[claim.suite]
    theirs = _SUITES[claim.suite_of_control]
    needed = [(ours, row, claim.metric) for row in claim.rows]
    return needed + [(theirs, control, metric) for control in claim.controls]


# --------------------------------------------------------------------------- tables


class _Line(NamedTuple):
    """A row of a table, with its values by seed (none where they are not stored)."""

    mean: float
    deviation: float
    runs: int
    by_seed: pd.Series

    def predicted(self, figure: Figure | None, kind: str) -> Interval:
        """Returns `prediction_interval` of the mean."""
        return prediction_interval(self.mean, self.deviation, self.runs, figure, kind=kind)


def _line(claim: Claim, results: Path, suite: str, row: str, metric: str, x: float | None) -> _Line:
    """Returns a row of a suite's table, or a figure's line at x.

    Raises:
        DataError: the table lacks the row, or contradicts the values by seed.
    """
    file = f"claims.toml: {claim.name}: results/{suite}.csv"
    by_seed = pd.Series(dtype=float)
    if suite == AUTO_RUNS:
        by_seed = _runs_of_auto(results, claim.data, row, metric)
        if not len(by_seed):
            raise DataError(f"{file} has no runs of {claim.data}/{row}")
        return _Line(float(by_seed.mean()), float(by_seed.std()), len(by_seed), by_seed)
    if claim.panel:
        table = pd.read_csv(results / f"{suite}.csv")
        lines = table[(table.iloc[:, 0] == claim.panel) & (table.iloc[:, 1] == row)]
        places = lines.iloc[:, 2].astype(float)
        if x is None:
            x = places.max()
        lines = lines[np.isclose(places, x)]
        if not len(lines):
            raise DataError(f"{file} has no line {row!r} of {claim.panel!r} at {x}")
    else:
        lines = _lines(results / f"{suite}.csv", claim.data, row, metric)
        if not len(lines) or not lines.iloc[0]["runs"]:
            raise DataError(f"{file} has no row with runs of {claim.data}/{row}, {metric}")
        table = _lines(results / f"{suite}_seeds.csv", claim.data, row, metric)
        by_seed = table.set_index("seed")["value"].astype(float)
    if len(lines) > 1 or by_seed.index.has_duplicates:
        raise DataError(f"{file} or that by seed has lines of {claim.data}/{row}, {metric} twice")
    mean, deviation, runs = lines.iloc[0][["mean", "sd", "runs"]]
    if len(by_seed) and (len(by_seed) != runs or abs(by_seed.mean() - mean) > 1e-5):
        raise DataError(f"claims.toml: {claim.name}: {suite}_seeds.csv differs from its table")
    return _Line(float(mean), float(deviation), int(runs), by_seed)


def _runs_of_auto(results: Path, data: str, row: str, metric: str) -> pd.Series:
    """Returns the values by seed of a method in the study of `auto`, without validation items.

    Args:
        results: folder of the tables.
        data: the dataset.
        row: a method, after its target where that is not "as_trained" ("balanced/auto").
        metric: a column.
    """
    target, _, method = row.rpartition("/")
    table = pd.read_csv(results / f"{AUTO_RUNS}.csv")
    chosen = (table["dataset"] == data) & (table["method"] == method) & (table["validation"] == 0)
    chosen &= table["target"] == (target or "as_trained")
    return table[chosen].set_index("seed")[metric].astype(float)


def _lines(path: Path, data: str, row: str, metric: str) -> pd.DataFrame:
    """Returns the lines of a row in a suite's table, or in that by seed; none where it has none."""
    if not path.exists():
        return _NO_LINES
    return _by_row(path, path.stat().st_mtime_ns).get((data, row, metric), _NO_LINES)


@functools.lru_cache
def _by_row(path: Path, changed: int) -> dict[Hashable, pd.DataFrame]:
    """Returns a suite's table by row, as it was when it changed; read once for all claims."""
    del changed
    table = pd.read_csv(path)
    if not {*_KEY} <= {*table}:
        return {}
    return dict(iter(table.groupby(_KEY, sort=False)))


def main(arguments: Iterable[str]) -> int:
    """Recomputes all claims and prints them; see the module's docstring."""
    claims = list(map(recompute, read()))
    if "--write" in arguments:
        write_text(CLAIMS, updated(CLAIMS.read_text(encoding="utf-8"), claims))
    for claim in claims:
        lines = (f"{claim.name}: {claim.verdict}", claim.claim, str(claim.ours), claim.made_by)
        sys.stdout.write("\n  ".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
