"""results.csv with a row per run, and summary.csv with a row per dataset and method."""

from __future__ import annotations

import csv
import io
import itertools
import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.cli.runs.work import METRICS, TRAIN_ACCURACY, RunKey, locked
from neucrowd_tf.declare.picking import mapped
from neucrowd_tf.declare.types import Fields, NamedValues, Texts
from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.influence import VALUES
from neucrowd_tf.evaluation.intervals import LEAST_RUNS, Interval, mean_interval, paired_interval
from neucrowd_tf.evaluation.shared_test import shared_test_interval
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.files.reading import read_text
from neucrowd_tf.io.tables.writing import number_cell, to_csv
from neucrowd_tf.names import among

COLUMNS = ("dataset", "method", "seed", *METRICS, "fit_seconds", "peak_memory_mb", "status")
FURTHER_COLUMNS = (TRAIN_ACCURACY, "fold", "repeat")  # each only if a run has it
GROUPED = ("dataset", "method")  # the first columns of summary.csv
OK = "ok"
SKIPPED = "skipped"
FAILED = "failed"
RIVALS = ("mv_lr", "ds_lr")
COMPARED = ("accuracy", "auc")
NO_INTERVAL = Interval(math.nan, math.nan, math.nan)

Row = dict[str, str]


def make_row(key: RunKey, status: str, metrics: NamedValues | None = None) -> Row:
    """Returns a row of results.csv; without metrics.json's content, metric cells are empty."""
    metrics = metrics or {}
    test = metrics.get("test") or {}
    timings = metrics.get("timings") or {}
    row = mapped(str, key.record()) | {"status": status}
    for name in METRICS:
        row[name] = number_cell(test.get(name))
    row[TRAIN_ACCURACY] = number_cell(metrics.get(TRAIN_ACCURACY))
    for name, digits in (("fit_seconds", 3), ("peak_memory_mb", 1)):
        value = timings.get(name)
        row[name] = "" if value is None else f"{value:.{digits}f}"
    return row


def _order(row: Row) -> tuple[Any, ...]:
    """Returns the sort key of a row: dataset, method, seed, repeat, fold."""
    numbers = (int(row.get(name) or -1) for name in ("seed", "repeat", "fold"))
    return (row["dataset"], row["method"], *numbers)


def read_results(path: Path) -> list[Row]:
    """Returns the rows of a results.csv; none without a file.

    Raises:
        DataError: the file is not a results.csv.
    """
    if not path.exists():
        return []
    try:
        reader = csv.DictReader(io.StringIO(read_text(path)))
        rows = list(reader)
        ours = tuple(reader.fieldnames or ())[: len(COLUMNS)] == COLUMNS
        for row in rows:
            _order(row)
            for name in COLUMNS[3:-1]:
                float(row[name] or 0)
            ours &= None not in row and row["status"] in (OK, SKIPPED, FAILED)
    except (csv.Error, ValueError, TypeError, KeyError):
        ours = False
    if not ours:
        raise DataError(
            f"{path}: not a results.csv of runs. Remove it or choose another --output_dir."
        )
    return rows


def check_tables(output_dir: Path) -> list[Row]:
    """Returns the rows of results.csv.

    Raises:
        DataError: another program wrote results.csv or summary.csv.
    """
    path = output_dir / "summary.csv"
    if path.exists() and not read_text(path).startswith(",".join(GROUPED)):
        raise DataError(
            f"{path}: not a summary.csv of runs. Remove it or choose another --output_dir."
        )
    return read_results(output_dir / "results.csv")


def add_rows(output_dir: Path, new: Iterable[Row], baselines: Texts = ()) -> list[Row]:
    """Adds rows to results.csv, replaces those of the same runs, and writes summary.csv.

    `baselines` are methods that summary.csv compares all others with, besides `RIVALS`.

    Returns:
        all rows.
    """
    with locked(output_dir):
        rows = {_order(row): row for row in (*check_tables(output_dir), *new)}
        ordered = list(dict(sorted(rows.items())).values())
        header = list(COLUMNS)
        for name in FURTHER_COLUMNS:
            if any(row.get(name) for row in ordered):
                header.append(name)
        cells = []
        for row in ordered:
            cells.append([row.get(name, "") for name in header])
        write_text(output_dir / "results.csv", to_csv(header, cells))
        write_text(output_dir / "summary.csv", summary_csv(ordered, output_dir, baselines))
    return ordered


# --------------------------------------------------------------------- summary


RunId = tuple[str, str, str]  # seed, repeat, fold
Runs = Mapping[Any, tuple[float, Path | None]]


def _values(rows: Iterable[Row], metric: str) -> dict[RunId, float]:
    values = {}
    for row in rows:
        if row["status"] == OK and row.get(metric):
            run = (row["seed"], row.get("repeat", ""), row.get("fold", ""))
            values[run] = float(row[metric])
    return values


def summarise(
    rows: Sequence[Row], output_dir: Path | None = None, baselines: Texts = ()
) -> list[Fields]:
    """Returns a record per dataset, method and kind of evaluation; see `summary_csv`.

    Args:
        rows: of results.csv.
        output_dir: folder of the runs, whose predictions give the intervals over seeds and
            instances; without it these intervals are NaN.
        baselines: further methods that all others are compared with.
    """
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        evaluation = "cv" if row.get("fold") else "split"
        groups.setdefault((row["dataset"], row["method"], evaluation), []).append(row)
    records = []
    for (dataset, method, evaluation), mine in groups.items():
        record: Fields = {"dataset": dataset, "method": method, "evaluation": evaluation}
        record["runs"] = list(map(operator.itemgetter("status"), mine)).count(OK)
        record["not_run"] = len(mine) - record["runs"]
        for metric in (*METRICS, TRAIN_ACCURACY):
            record |= _spread(mine, metric)
        seconds = list(_values(mine, "fit_seconds").values())
        record["fit_seconds_mean"] = float(np.mean(seconds)) if seconds else math.nan
        for rival in dict.fromkeys((*RIVALS, *baselines)):
            theirs = []
            if rival != method:
                theirs = groups.get((dataset, rival, evaluation), [])
            for metric in COMPARED:
                record |= _comparison(mine, theirs, metric, rival, output_dir)
        records.append(record)
    return records


def _ratio(rows: Iterable[Row]) -> float:
    """Returns test over training instances of cross-validated rows, 0 for a split's."""
    folds = [int(row["fold"]) for row in rows if row.get("fold")]
    if not folds:
        return 0.0
    return 1 / max(1, *folds)


def _spread(mine: list[Row], metric: str) -> dict[str, float]:
    """Returns mean, standard deviation and interval of a metric over runs."""
    values = list(_values(mine, metric).values())
    interval = NO_INTERVAL
    deviation = math.nan
    if values:
        interval = mean_interval(values, test_train_ratio=_ratio(mine))
    if len(values) > 1:
        deviation = float(np.std(values, ddof=1))
    spread = {f"{metric}_mean": interval.estimate, f"{metric}_std": deviation}
    return spread | bounds(metric, interval)


def bounds(stem: str, interval: Interval) -> dict[str, float]:
    """Returns the columns of an interval's bounds."""
    return {f"{stem}_low": interval.low, f"{stem}_high": interval.high}


def compare(ours: Runs, theirs: Runs, metric: str, ratio: float) -> tuple[Interval, Interval]:
    """Returns the mean difference over common runs with two intervals.

    The first interval is over runs, the second over runs and test instances. They are NaN without
    common runs, the second one also if the runs do not share one test set.

    Args:
        ours: value and folder by run; a folder may be None.
        theirs: likewise.
        metric: its name.
        ratio: test over training instances of cross-validated runs, 0 for a split's.
    """
    both = among(ours, theirs)
    if not both:
        return NO_INTERVAL, NO_INTERVAL
    first, one = zip(*map(ours.__getitem__, both), strict=True)
    second, other = zip(*map(theirs.__getitem__, both), strict=True)
    over_runs = paired_interval(first, second, test_train_ratio=ratio)
    if ratio or metric not in VALUES or None in one:
        return over_runs, NO_INTERVAL
    return over_runs, shared_test_interval(one, other, metric) or NO_INTERVAL


def _comparison(
    mine: list[Row], theirs: list[Row], metric: str, rival: str, output_dir: Path | None
) -> Fields:
    """Returns the paired difference to a rival over common runs, and its intervals."""

    def placed(rows: list[Row]) -> Runs:
        def folder(seed: str) -> Path | None:
            key = RunKey(rows[0]["dataset"], rows[0]["method"], int(seed))
            if output_dir is None:
                return None
            return key.folder(output_dir, 0)

        return {run: (value, folder(run[0])) for run, value in _values(rows, metric).items()}

    ours = placed(mine)
    others = placed(theirs)
    interval, over_instances = compare(ours, others, metric, _ratio(mine))
    stem = f"{metric}_minus_{rival}"
    pairs = len(ours.keys() & others.keys())
    over = "runs" * (pairs > 0)
    if over_instances is not NO_INTERVAL:
        interval = over_instances
        over = "runs and instances"
    figures: Fields = {stem: interval.estimate, **bounds(stem, interval)}
    return figures | {f"{stem}_over": over, f"{metric}_beats_{rival}": _beats(interval, pairs)}


def _beats(interval: Interval, pairs: int) -> str:
    """Returns "yes", "no" or "undecided" by an interval; nothing for too few pairs of runs."""
    if pairs < LEAST_RUNS or math.isnan(interval.low):
        return ""
    if interval.low > 0:
        return "yes"
    if interval.high < 0:
        return "no"
    return "undecided"


def summary_csv(rows: Sequence[Row], output_dir: Path | None = None, baselines: Texts = ()) -> str:
    """Returns summary.csv.

    It has the mean, standard deviation and 95% interval over runs, and paired differences from
    `RIVALS` and `baselines`. Their 95% intervals (`_low`, `_high`) are over runs and test instances
    if all runs share one test set, otherwise over runs; `_over` says which. By the same interval
    `<metric>_beats_<rival>` is "yes" (above 0), "no" (below 0) or "undecided". It is empty for
    fewer than five pairs of runs.
    """
    records = summarise(rows, output_dir, baselines)
    header = list(records[0]) if records else GROUPED
    cells = (map(_cell, record.values()) for record in records)
    return to_csv(header, cells)


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return number_cell(value)


def summary_table(
    rows: Sequence[Row],
    output_dir: Path | None = None,
    baselines: Texts = (),
    form: str | None = None,
) -> str:
    """Returns the summary as a table without empty columns, and its legend.

    Args:
        rows: of results.csv.
        output_dir: see `summarise`.
        baselines: methods whose differences are shown; without any, whether a method beats mv_lr.
        form: "md" or "tex" for a table in Markdown or LaTeX, None for a terminal.
    """
    head = ["dataset", "method", "runs", "accuracy", "AUC", "F1", "log loss", "seconds"]
    stems = []
    for name, metric in itertools.product(baselines, COMPARED):
        stems.append(f"{metric}_minus_{name}")
        head.append(f"{metric} minus {name}")
    if not baselines:
        head.append("beats mv_lr (acc/AUC)")
    columns = []
    cells = [_cells(record, stems) for record in summarise(rows, output_dir, baselines)]
    for column in zip(head, *cells, strict=True):
        if "".join(column[1:]).strip("-/"):
            columns.append(column)
    lines = list(zip(*columns, strict=True))
    notes = []
    if "[" in "".join(itertools.chain.from_iterable(columns[3:7])):
        notes.append("[]: 95% interval of the mean over runs, within the metric's range")
    if "beats" in " ".join(lines[0]):
        notes.append("beats: whether the interval of the paired difference is above or below 0")
    if "[" in "".join(itertools.chain.from_iterable(columns)):
        notes.append(
            "minus: paired difference [95% interval; over instances too if runs share them]"
        )
    return "\n".join(aligned(lines, form, "; ".join(notes)))


def aligned(lines: Sequence[Texts], form: str | None, note: str) -> list[str]:
    """Returns the lines of a table, the first of which is its head; see `summary_table`."""
    if form == "tex":
        first, *rest = (" & ".join(map(_latex, line)) + r" \\" for line in lines)
        columns = "l" * len(lines[0])
        begin = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", first, r"\midrule"]
        return [*[f"% {note}"] * bool(note), *begin, *rest, r"\bottomrule", r"\end{tabular}"]
    if form == "md":
        first, *rest = (f"| {' | '.join(line)} |" for line in lines)
        return [first, "|" + "---|" * len(lines[0]), *rest, *["", note] * bool(note)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return [*shown, *[note] * bool(note)]


def _latex(cell: str) -> str:
    """Returns a cell with the characters that LaTeX reads as commands escaped."""
    plain = re.sub(r"([_%&#${}])", r"\\\1", cell)
    return re.sub(r"(?<!\w)-(?=\d)", "$-$", plain)


def _cells(record: Fields, compared: Texts) -> tuple[str, ...]:
    """Returns the cells of a record for `summary_table`."""

    def shown(value: float, text: str) -> str:
        if math.isnan(value):
            return "-"
        return text

    def spread(metric: str) -> str:
        mean, low, high = (record[f"{metric}_{name}"] for name in ("mean", "low", "high"))
        text = f"{mean:.3f}"
        if high >= mean:
            top = math.inf if metric == "log_loss" else 1.0
            text += f" [{max(low, 0.0):.3f}, {min(high, top):.3f}]"
        return shown(mean, text)

    def difference(stem: str) -> str:
        value = record[stem]
        text = f"{value:+.3f}"
        low = record[f"{stem}_low"]
        if not math.isnan(low):
            text += f" [{low:+.3f}, {record[f'{stem}_high']:+.3f}]"
        return shown(value, text)

    seconds = record["fit_seconds_mean"]
    beats = "/".join(record[f"{metric}_beats_mv_lr"] or "-" for metric in COMPARED)
    return (
        record["dataset"] + " (cv)" * (record["evaluation"] == "cv"),
        record["method"],
        str(record["runs"]),
        *map(spread, ("accuracy", "auc", "f1", "log_loss")),
        shown(seconds, f"{seconds:.1f}"),
        *(map(difference, compared) if compared else (beats,)),
    )
