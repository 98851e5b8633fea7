"""results.csv, a row a run, and summary.csv, a row a dataset and method."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.intervals import Interval, mean_interval, paired_interval
from neucrowd_tf.evaluation.shared_test import shared_test_interval
from neucrowd_tf.harness.run_folder import METRICS, RunKey, locked
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.files.reading import read_bytes
from neucrowd_tf.io.tables.writing import number_cell, to_csv
from neucrowd_tf.registry import printed

COLUMNS = ("dataset", "method", "seed", *METRICS, "fit_seconds", "peak_memory_mb", "status")
FOLD_COLUMNS = ("fold", "repeat")
GROUPED = ("dataset", "method")  # the first columns of summary.csv
OK, SKIPPED, FAILED = "ok", "skipped", "failed"
RIVALS = ("mv_lr", "ds_lr")
COMPARED = ("accuracy", "auc")

Row = dict[str, str]


def make_row(key: RunKey, status: str, metrics: Mapping[str, Any] | None = None) -> Row:
    """Returns a row of results.csv.

    Args:
        metrics: a finished run's metrics.json; without it the metric cells are empty.
    """
    test, timings = (metrics or {}).get("test") or {}, (metrics or {}).get("timings") or {}
    row = {name: str(value) for name, value in key.record().items()} | {"status": status}
    row |= {name: number_cell(test.get(name)) for name in METRICS}
    for name, digits in (("fit_seconds", 3), ("peak_memory_mb", 1)):
        value = timings.get(name)
        row[name] = "" if value is None else f"{value:.{digits}f}"
    return row


def _order(row: Row) -> tuple[Any, ...]:
    """Rows stand in the order of dataset, method, seed, repeat, fold, whichever run ended first."""
    numbers = (int(row.get(name) or -1) for name in ("seed", "repeat", "fold"))
    return (row["dataset"], row["method"], *numbers)


def read_results(path: Path) -> list[Row]:
    """Returns the rows of a results.csv, none where there is no file.

    Raises:
        DataError: a file that is no results.csv.
    """
    if not path.exists():
        return []
    text = read_bytes(path).decode("utf-8", "replace")
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""))
        rows = [dict(row) for row in reader]
        header = tuple(reader.fieldnames or ())
        wrong = header[: len(COLUMNS)] != COLUMNS or not all(map(_is_row, rows))
    except (csv.Error, ValueError):
        wrong, header = True, ("text that is no CSV",)
    if wrong:
        shown = ",".join(header)[:300] or "an empty file"
        raise DataError(
            f"{path}: expected the columns {','.join(COLUMNS)} and rows of runs, received {shown};"
            " remove it or choose another --output_dir"
        )
    return rows


def _is_row(row: Row) -> bool:
    """Whether a row is one of a run: whole numbers where they are needed, numbers or nothing in the
    cells of metrics.

    Raises:
        ValueError: a cell that is no number.
    """
    if None in row or None in row.values() or row["status"] not in (OK, SKIPPED, FAILED):
        return False
    for name in ("seed", *FOLD_COLUMNS):
        if row.get(name) or name == "seed":
            int(row[name])
    cells = [row[name] for name in (*METRICS, "fit_seconds", "peak_memory_mb") if row[name]]
    return all(math.isfinite(float(cell)) for cell in cells)


def check_tables(output_dir: Path) -> None:
    """Raises DataError for a results.csv or a summary.csv that is another file of that name."""
    read_results(output_dir / "results.csv")
    _check_summary(output_dir / "summary.csv")


def _check_summary(path: Path) -> None:
    if path.exists():
        header = read_bytes(path).partition(b"\n")[0].decode("utf-8", "replace").strip()
        if header.split(",")[: len(GROUPED)] != [*GROUPED]:
            raise DataError(
                f"{path}: expected the columns {','.join(GROUPED)},..., received"
                f" {header[:300] or 'an empty file'}; remove it or choose another --output_dir"
            )


def add_rows(output_dir: Path, new: Iterable[Row]) -> list[Row]:
    """Puts rows into results.csv, in the place of earlier ones of the same runs, rewrites
    summary.csv, and returns all rows.
    """
    with locked(output_dir):
        _check_summary(output_dir / "summary.csv")
        rows = {_order(row): row for row in read_results(output_dir / "results.csv")}
        rows |= {_order(row): row for row in new}
        ordered = [rows[key] for key in sorted(rows)]
        folded = any(row.get("fold") for row in ordered)
        header = [*COLUMNS, *(FOLD_COLUMNS if folded else ())]
        cells = ([row.get(name, "") for name in header] for row in ordered)
        write_text(output_dir / "results.csv", to_csv(header, cells))
        write_text(output_dir / "summary.csv", summary_csv(ordered, output_dir))
    return ordered


# --------------------------------------------------------------------- summary


RunId = tuple[str, str, str]  # seed, repeat, fold


def _values(rows: Iterable[Row], metric: str) -> dict[RunId, float]:
    return {
        (row["seed"], row.get("repeat", ""), row.get("fold", "")): float(row[metric])
        for row in rows
        if row["status"] == OK and row[metric]
    }


def summarise(rows: Sequence[Row], output_dir: Path | None = None) -> list[dict[str, Any]]:
    """Returns a record a dataset, method and kind of evaluation: see `summary_csv`.

    Args:
        output_dir: where the runs lie, whose predictions give the intervals over seeds and
            instances; without it there are none.
    """
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        evaluation = "cv" if row.get("fold") else "split"
        groups.setdefault((row["dataset"], row["method"], evaluation), []).append(row)
    records = []
    for (dataset, method, evaluation), mine in groups.items():
        record: dict[str, Any] = {"dataset": dataset, "method": method, "evaluation": evaluation}
        record["runs"] = sum(row["status"] == OK for row in mine)
        record["not_run"] = len(mine) - record["runs"]
        for metric in METRICS:
            record |= _spread(mine, metric)
            if metric in COMPARED:
                record[f"{metric}_paper"] = printed(dataset, method).get(metric, math.nan)
        seconds = list(_values(mine, "fit_seconds").values())
        record["fit_seconds_mean"] = float(np.mean(seconds)) if seconds else math.nan
        for rival in RIVALS:
            theirs = [] if rival == method else groups.get((dataset, rival, evaluation), [])
            for metric in COMPARED:
                record |= _comparison(mine, theirs, metric, rival, output_dir)
        records.append(record)
    return records


def _ratio(rows: Iterable[Row]) -> float:
    """Returns test over training instances of cross-validated rows, 0 for a split's."""
    last = max((int(row.get("fold") or 0) for row in rows if row.get("fold")), default=None)
    return 0.0 if last is None else 1 / max(1, last)


def _spread(mine: list[Row], metric: str) -> dict[str, float]:
    """Returns mean, standard deviation and interval of a metric over runs."""
    values = list(_values(mine, metric).values())
    none = Interval(math.nan, math.nan, math.nan)
    interval = mean_interval(values, test_train_ratio=_ratio(mine)) if values else none
    return {
        f"{metric}_mean": interval.estimate,
        f"{metric}_std": float(np.std(values, ddof=1)) if len(values) > 1 else math.nan,
        f"{metric}_low": interval.low,
        f"{metric}_high": interval.high,
    }


def _comparison(
    mine: list[Row], theirs: list[Row], metric: str, rival: str, output_dir: Path | None
) -> dict[str, Any]:
    """Returns the paired difference to a rival over the runs that both have, its intervals, and
    whether that which counts is above zero.
    """
    ours, others = _values(mine, metric), _values(theirs, metric)
    both = [key for key in ours if key in others]
    difference = low = high = math.nan
    shared: Interval | None = None
    if both:
        pairs = zip(*((ours[key], others[key]) for key in both), strict=True)
        compared = paired_interval(*map(list, pairs), test_train_ratio=_ratio(mine))
        difference, low, high = compared.estimate, compared.low, compared.high
        if output_dir is not None and not any(fold for _, _, fold in both):
            first, second = (
                [
                    RunKey(row["dataset"], row["method"], int(seed)).folder(output_dir, 0)
                    for seed, _, _ in both
                ]
                for row in (mine[0], theirs[0])
            )
            shared = shared_test_interval(first, second, metric)
    stem = f"{metric}_minus_{rival}"
    counts = low if shared is None else shared.low
    return {
        stem: difference,
        f"{stem}_low": low,
        f"{stem}_high": high,
        f"{stem}_instances_low": math.nan if shared is None else shared.low,
        f"{stem}_instances_high": math.nan if shared is None else shared.high,
        f"{metric}_beats_{rival}": "" if math.isnan(counts) else "yes" if counts > 0 else "no",
    }


def summary_csv(rows: Sequence[Row], output_dir: Path | None = None) -> str:
    """Returns summary.csv: mean, standard deviation and 95 % interval over runs, the paper's
    figure, and paired differences with their intervals: over seeds (`_low`, `_high`), and, where
    all runs share one test set, over seeds and test instances (`_instances_low`,
    `_instances_high`).

    `<metric>_beats_<rival>` is "yes" where the latter interval, or without it the former, lies
    above zero; it is empty where fewer than two runs can be paired.
    """
    records = summarise(rows, output_dir)
    header = list(records[0]) if records else [*GROUPED]
    return to_csv(header, (map(_cell, record.values()) for record in records))


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else number_cell(value)


def summary_table(rows: Sequence[Row], output_dir: Path | None = None) -> str:
    """Returns the summary as a table for a terminal, without columns that say nothing, and what its
    signs mean.
    """
    head = (
        *("dataset", "method", "runs", "accuracy", "AUC", "F1", "log loss", "seconds"),
        *("paper acc/AUC", "beats mv_lr (acc/AUC)"),
    )
    columns = list(zip(head, *map(_cells, summarise(rows, output_dir)), strict=True))
    columns = [column for column in columns if any(set(cell) - {"-", "/"} for cell in column[1:])]
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in zip(*columns, strict=True)
    ]
    if any("±" in line for line in lines):
        lines.append("±: half of the 95 % interval over runs")
    if any(name.startswith("beats") for name, *_ in columns):
        lines[-1] += "; beats: whether the interval of the paired difference lies above 0"
    return "\n".join(lines)


def _cells(record: dict[str, Any]) -> tuple[str, ...]:
    """Returns a record as a line of the terminal's table."""

    def known(value: float, text: str) -> str:
        return "-" if math.isnan(value) else text

    def spread(metric: str) -> str:
        mean, half = record[f"{metric}_mean"], record[f"{metric}_high"] - record[f"{metric}_mean"]
        return known(mean, f"{mean:.3f}" + ("" if math.isnan(half) else f" ± {half:.3f}"))

    seconds, paper = record["fit_seconds_mean"], [record[f"{name}_paper"] for name in COMPARED]
    return (
        record["dataset"] + (" (cv)" if record["evaluation"] == "cv" else ""),
        record["method"],
        str(record["runs"]),
        *map(spread, ("accuracy", "auc", "f1", "log_loss")),
        known(seconds, f"{seconds:.1f}"),
        "-" if all(map(math.isnan, paper)) else "/".join(f"{value:.3f}" for value in paper),
        "/".join(record[f"{metric}_beats_mv_lr"] or "-" for metric in COMPARED),
    )
