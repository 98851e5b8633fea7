"""results.csv and summary.csv."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from neucrowd_tf.cli.runs.results import (
    COLUMNS,
    Row,
    add_rows,
    make_row,
    summarise,
    summary_csv,
    summary_table,
)
from neucrowd_tf.cli.runs.work import RunKey
from neucrowd_tf.errors import DataError
from tests.runs import write_run


def row(
    method: str,
    seed: int,
    accuracy: float,
    *,
    dataset: str = "d",
    repeat: int | None = None,
    fold: int | None = None,
) -> Row:
    metrics = {
        "test": {"accuracy": accuracy, "auc": accuracy + 0.05, "f1": math.nan},
        "timings": {"fit_seconds": 1.23456, "peak_memory_mb": 100.04},
    }
    return make_row(RunKey(dataset, method, seed, repeat, fold), "ok", metrics)


def test_rows_stand_in_one_order_and_replace_earlier_ones(tmp_path: Path) -> None:
    add_rows(
        tmp_path, [row("b", 10, 0.5), row("b", 9, 0.6), make_row(RunKey("d", "a", 3), "failed")]
    )
    add_rows(tmp_path, [row("a", 3, 0.7)])
    lines = (tmp_path / "results.csv").read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert lines[1:] == [
        "d,a,3,0.7,,,0.75,,1.235,100.0,ok",
        "d,b,9,0.6,,,0.65,,1.235,100.0,ok",
        "d,b,10,0.5,,,0.55,,1.235,100.0,ok",
    ]
    assert [item.name for item in tmp_path.iterdir() if item.name.startswith(".")] == []


def test_summary_by_hand() -> None:
    # Differences to mv_lr: .1, .2, .3: mean .2, standard deviation .1, half width t(.975, 2) * .1 /
    # sqrt(3) = 4.3027 * .0577 = .2484.
    ours, theirs = (0.8, 0.8, 0.8), (0.7, 0.6, 0.5)
    rows = (
        [row("m", s, a) for s, a in enumerate(ours)]
        + [row("mv_lr", s, a) for s, a in enumerate(theirs)]
        + [row("mv_lr", 9, 0.9)]
    )
    by_method = {record["method"]: record for record in summarise(rows)}
    mine = by_method["m"]
    assert mine["runs"] == 3
    assert mine["accuracy_mean"] == pytest.approx(0.8)
    assert mine["accuracy_std"] == pytest.approx(0)
    assert mine["accuracy_minus_mv_lr"] == pytest.approx(0.2)
    assert mine["accuracy_minus_mv_lr_low"] == pytest.approx(0.2 - 0.24841, abs=1e-4)
    assert mine["accuracy_beats_mv_lr"] == ""  # of three runs
    assert math.isnan(mine["accuracy_minus_ds_lr"]) and mine["accuracy_beats_ds_lr"] == ""
    half = stats.t.ppf(0.975, 3) * np.std([*theirs, 0.9], ddof=1) / 2
    assert by_method["mv_lr"]["accuracy_high"] - by_method["mv_lr"][
        "accuracy_mean"
    ] == pytest.approx(half)


def test_beats_and_the_interval_are_over_instances_where_runs_share_them(tmp_path: Path) -> None:
    # All seeds of m are right on the same 8 of 10, of mv_lr on the same 7: a difference of .1
    # without any spread over seeds, and one instance of ten that makes it.
    rows = [row("m", s, 0.8) for s in range(5)] + [row("mv_lr", s, 0.7) for s in range(5)]
    for method, right in (("m", 8), ("mv_lr", 7)):
        for seed in range(5):
            folder = tmp_path / "d" / method / f"seed-{seed}"
            write_run(folder, np.arange(10) < right, "a" * 10, test_digest="x")
    add_rows(tmp_path, rows)
    written = list(csv.DictReader((tmp_path / "summary.csv").open()))
    (mine,) = (record for record in written if record["method"] == "m")
    # Over instances: mean .1, variance .09 * 10 / 9 of one, t(9) = 2.262.
    low = 0.1 - stats.t.ppf(0.975, 9) * math.sqrt(0.1 / 10)
    assert float(mine["accuracy_minus_mv_lr_low"]) == pytest.approx(low)
    assert mine["accuracy_minus_mv_lr_over"] == "runs and instances"
    assert mine["accuracy_beats_mv_lr"] == "undecided"
    assert mine["auc_minus_mv_lr_over"] == "runs"  # one class alone has no AUC
    alone = next(record for record in summarise(rows) if record["method"] == "m")
    assert alone["accuracy_beats_mv_lr"] == "yes" and alone["accuracy_minus_mv_lr_over"] == "runs"
    few = next(x for x in summarise(rows[:4] + rows[5:9]) if x["method"] == "m")
    assert few["accuracy_beats_mv_lr"] == ""


def test_one_run_has_no_interval() -> None:
    (record,) = summarise([row("m", 0, 0.8)])
    assert math.isnan(record["accuracy_low"]) and record["accuracy_mean"] == 0.8
    (cells,) = csv.DictReader(io.StringIO(summary_csv([row("m", 0, 0.8)])))
    assert cells["accuracy_mean"] == "0.8"
    assert cells["accuracy_low"] == ""
    assert cells["f1_mean"] == ""


def test_folds_widen_the_interval_and_stay_apart_from_splits() -> None:
    values = [0.5, 0.6, 0.7, 0.6]
    rows = [row("m", 0, v, repeat=0, fold=f) for f, v in enumerate(values)] + [row("m", 0, 0.1)]
    split, folds = sorted(summarise(rows), key=lambda record: -len(record["evaluation"]))
    assert split["runs"] == 1 and folds["runs"] == 4
    # Nadeau and Bengio: 1/4 + 1/3 in place of 1/4.
    half = stats.t.ppf(0.975, 3) * np.std(values, ddof=1) * math.sqrt(1 / 4 + 1 / 3)
    assert folds["accuracy_high"] - folds["accuracy_mean"] == pytest.approx(half)


def test_runs_without_figures_are_counted_apart() -> None:
    rows = [
        row("m", 0, 0.8),
        make_row(RunKey("d", "m", 1), "failed"),
        make_row(RunKey("d", "n", 0), "skipped"),
    ]
    first, second = summarise(rows)
    assert (first["runs"], first["not_run"], second["runs"], second["not_run"]) == (1, 1, 0, 1)
    assert len(summary_table(rows).splitlines()) == 3
    head = summary_table(rows).splitlines()[0]
    assert "accuracy" in head and "paper" not in head and "beats" not in head
    both = [row(name, seed, 0.8 + seed / 100) for name in ("m", "mv_lr") for seed in range(5)]
    assert summary_table(both).splitlines()[-1].startswith("[]: 95% interval")
    assert "; beats" in (summary_table(both))


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("summary.csv", "my,own,notes\n"),
        ("results.csv", "my,own,notes\n"),
        ("results.csv", "{header}\nd,m,z,ok\n"),
        ("results.csv", "{header}\nx,y\n"),
    ],
)
def test_other_peoples_tables_stay(tmp_path: Path, table: str, text: str) -> None:
    add_rows(tmp_path, [make_row(RunKey("d", "m", 0), "ok", {"test": {"accuracy": 0.5}})])
    path = tmp_path / table
    path.write_text(text.format(header=path.read_text().splitlines()[0]))
    before = path.read_text()
    with pytest.raises(DataError, match=f"{table}: not a {table} of runs. Remove it"):
        add_rows(tmp_path, [make_row(RunKey("d", "m", 1), "ok")])
    assert path.read_text() == before
