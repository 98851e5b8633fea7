"""Comparing methods: baselines, tables, runs of another folder, spaces and grids for --tune."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from neucrowd_tf.cli.runs.execute import Outcome
from neucrowd_tf.cli.runs.options import parse
from neucrowd_tf.cli.runs.results import aligned, summarise, summary_table
from neucrowd_tf.cli.runs.runner import describe
from neucrowd_tf.cli.runs.tuning import candidates
from neucrowd_tf.declare import dataset_registration, registry
from neucrowd_tf.errors import UsageError
from tests.cases import raises
from tests.cli.runs.test_results import row

TWO = [row(name, s, a + s / 50) for name, a in (("m", 0.8), ("other", 0.7)) for s in range(5)]


def test_difference_from_any_method() -> None:
    mine, theirs = summarise(TWO, baselines=("other",))
    assert mine["accuracy_minus_other"] == pytest.approx(0.1)
    assert mine["accuracy_beats_other"] == "yes" and theirs["accuracy_beats_other"] == ""
    assert mine["accuracy_minus_mv_lr"] != mine["accuracy_minus_mv_lr"]  # NaN: it has no runs
    table = summary_table(TWO, baselines=("other",))
    assert "accuracy minus other" in table and "+0.100 [+0.100, +0.100]" in table
    assert "beats" not in table


def test_tables_in_markdown_and_latex() -> None:
    lines = [("method", "a_b"), ("m", "0.5 [0.4, 0.6]"), ("n", "-0.1 [-0.2, +0.3] {-0.4, +0.5}")]
    assert aligned(lines, "md", "") == [
        "| method | a_b |",
        "|---|---|",
        "| m | 0.5 [0.4, 0.6] |",
        "| n | -0.1 [-0.2, +0.3] {-0.4, +0.5} |",
    ]
    tex = aligned(lines, "tex", "a note")
    assert tex[:3] == ["% a note", r"\begin{tabular}{ll}", r"\toprule"]
    assert tex[3] == r"method & a\_b \\" and tex[5] == r"m & 0.5 [0.4, 0.6] \\"
    assert tex[6] == r"n & $-$0.1 [$-$0.2, +0.3] \{$-$0.4, +0.5\} \\"
    assert tex[-2:] == [r"\bottomrule", r"\end{tabular}"]


def test_one_command_compares_and_writes_a_table(
    command: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one_draw = dataclasses.replace(registry.dataset("tiny"), simulated=False)
    monkeypatch.setitem(dataset_registration.DATASETS, "tiny", one_draw)
    where = ["--dataset=tiny", "--num_runs=2", f"--output_dir={tmp_path}"]
    flags_ = ["--method=mean", *where, "--table=tex"]
    assert command(*flags_, "--baseline=oracle") == 2
    assert "--baseline=oracle: no runs in" in capsys.readouterr().err
    assert command("--method=oracle", "--hparam=shift=0.9", *where) == 0
    assert command(*flags_, "--baseline=oracle") == 0
    shown = capsys.readouterr().out
    assert "accuracy minus oracle" in shown and "summary.tex" in shown
    written = (tmp_path / "summary.tex").read_text()
    assert written in shown + "\n" and written.count(r"\\") == 3
    with (tmp_path / "summary.csv").open() as file:
        mine = next(item for item in csv.DictReader(file) if item["method"] == "mean")
    assert (
        mine["accuracy_minus_oracle"] and mine["accuracy_minus_oracle_over"] == "runs and instances"
    )
    metrics = json.loads((tmp_path / "tiny/mean/seed-0/metrics.json").read_text())
    assert float(mine["train_accuracy_mean"]) == pytest.approx(metrics["train_accuracy"])
    config = json.loads((tmp_path / "tiny/mean/seed-0/config.json").read_text())
    assert config["machine"]["processor"] and config["machine"]["onednn"]


def test_space_and_grid(
    command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert candidates({"a": (1, 2), "b": (3, 4)}, {"b": 3}, "grid", 0) == [{"a": 1}, {"a": 2}]
    options = parse(
        [
            *("--dataset=d", "--method=m", "--tune=grid"),
            *("--space=a=1,x,0.5", "--space=m.b=[[8,4],[2]]", "--space=c=sgd"),
        ]
    )
    assert options.space == (("a", (1, "x", 0.5)), ("m.b", ([8, 4], [2])), ("c", ("sgd",)))
    for wrong in ("--tune=all", "--tune=-1"):
        raises(UsageError, wrong.partition("=")[0], parse, ["--dataset=d", "--method=m", wrong])
    base = ["--dataset=tiny", "--method=mean", f"--output_dir={tmp_path}"]
    assert command(*base, "--tune=grid", "--space=nothing=1,2") == 2
    assert "--space=nothing: no method" in capsys.readouterr().err
    assert command(*base, "--tune=grid", "--space=shift=0.2,0.3,0.4,0.6") == 0
    lines = (tmp_path / "tiny/mean/seed-0/tuning.csv").read_text().splitlines()
    assert [line.rpartition('"shift"": ')[2][:3] for line in lines[1:]] == [
        *("0.2", "0.3", "0.4", "0.6")
    ]


def test_a_network_that_did_not_train_is_said_so_in_the_log() -> None:
    metrics = {"test": {"accuracy": 0.8}, "timings": {"fit_seconds": 1.0}, "trained": False}
    assert "did not train" in describe(Outcome("ok", metrics))
    assert "did not train" not in describe(Outcome("ok", metrics | {"trained": True}))
