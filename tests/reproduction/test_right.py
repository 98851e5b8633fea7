"""Right and wrong by test instance: the files, and the claims that follow from them."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.intervals import crossed_interval
from reproduction import claims, right, store
from reproduction.claim import RESULTS, read
from reproduction.right import Right, Row
from reproduction.suite import Case, Suite
from tests.cases import raises
from tests.runs import write_run

HEAD = "dataset,method,metric,published,mean,sd,runs,predicted_low,predicted_high,worst,verdict,"
HEAD += "gain,gain_low,gain_high,gain_instances_low,gain_instances_high\n"
SUITE = Suite("s", "S", (Case(("d",), ("a", "b"), seeds=2, first_seed=3),), baseline="b")


def stored_lines() -> list[tuple[str, Row, Right]]:
    paths = sorted((RESULTS / right.FOLDER).glob("*.csv"))
    return [
        (path.stem, row, line)
        for path in paths
        for row, line in right.stored(RESULTS, path.stem).items()
    ]


def make_runs(root: Path) -> None:
    """Writes the runs of SUITE: "a" has all three reviews right, "b" all but the last."""
    for method, correct in {"a": (True, True, True), "b": (True, True, False)}.items():
        for seed in (3, 4):
            folder = root / "runs" / "default" / "d" / method / f"seed-{seed}"
            metrics = {"test": {"accuracy": sum(correct) / 3}, "trained": method == "a"}
            write_run(folder, correct, "bba", test_digest="x", timings={}, **metrics)


def test_bits_survive_their_text() -> None:
    bits = np.array([True, False, True, True, False, False, True, True, True])
    assert right.packed(bits) == "9:b380"
    np.testing.assert_array_equal(right.unpacked("9:b380"), bits)


def test_ten_rows_follow_from_their_stored_instances() -> None:
    lines = stored_lines()
    assert len(lines) > 100
    for index in default_rng(0).choice(len(lines), 10, replace=False):
        suite, row, line = lines[index]
        table = pd.read_csv(RESULTS / f"{suite}_seeds.csv")
        same = (table[["dataset", "method", "metric", "seed"]] == list(row)).all(axis=1)
        assert line.bits.mean() == pytest.approx(table[same]["value"].item(), abs=1e-6)


def test_a_gain_follows_from_its_stored_instances() -> None:
    (claim,) = (claim for claim in read() if claim.name == "neucrowd_best_hotel")
    lines = right.stored(RESULTS, claim.suite)
    table = np.array(
        [
            lines[Row("hotel", "neucrowd", "accuracy", seed)].bits * 1.0
            - lines[Row("hotel", "softprob", "accuracy", seed)].bits
            for seed in range(20000, 20010)
        ]
    )
    assert claim.ours.over == "softprob" and not claim.ours.seeds_only
    interval = crossed_interval(table)
    assert claim.ours.low == pytest.approx(interval.low, abs=1e-5)
    assert claim.ours.high == pytest.approx(interval.high, abs=1e-5)


def test_runs_are_added_to_tables_once(tmp_path: Path) -> None:
    results, root = tmp_path / "results", tmp_path / "out"
    results.mkdir()
    make_runs(root)
    (results / "s.csv").write_text(HEAD)
    assert store.merge_tables(results, SUITE, root) == ["d/a", "d/b"]
    table = pd.read_csv(results / "s.csv").set_index("method")
    assert table["mean"].tolist() == pytest.approx([1.0, 2 / 3], abs=1e-6)
    assert table.loc["b", "verdict"] == "did not train"
    assert store.merge_right(results, SUITE, root) == 4
    line = right.stored(results, "s")[Row("d", "b", "accuracy", 4)]
    assert line.bits.tolist() == [True, True, False]
    assert (
        store.merge_tables(results, SUITE, root) == [] == store.merge_tables(results, SUITE, root)
    )
    assert store.merge_right(results, SUITE, root) == 0
    assert store.merge_tables(results, SUITE, root, ["d/a"]) == ["d/a"]
    seeds = (results / "s_seeds.csv").read_text().replace("1.0\n", "0.0\n")
    (results / "s_seeds.csv").write_text(seeds.replace(",1\n", ",0\n"))
    raises(DataError, "3 instances from the stored value", store.merge_right, results, SUITE, root)


def test_stored_lines_do_not_go_when_a_test_set_changes(tmp_path: Path) -> None:
    results, root = tmp_path / "results", tmp_path / "out"
    results.mkdir()
    make_runs(root)
    (results / "s.csv").write_text(HEAD)
    store.merge_tables(results, SUITE, root)
    assert store.merge_right(results, SUITE, root) == 4
    shutil.rmtree(root / "runs/default/d/b")
    for path in (root / "runs/default/d/a").glob("*/metrics.json"):
        path.write_text(path.read_text().replace('"x"', '"y"'))
    with pytest.raises(DataError, match="s: d: the test instances are not those of the stored"):
        store.merge_right(results, SUITE, root)
    assert len(right.stored(results, "s")) == 4


def test_a_row_with_as_many_runs_stays(tmp_path: Path) -> None:
    """Runs are counted as numbers: another metric of the stored row has nine."""
    make_runs(tmp_path)
    stored = "d,a,{},,0.5,0,{},,,,,,,,,\n"
    table = HEAD + stored.format("accuracy", 10) + stored.format("auc", 9)
    (tmp_path / "s.csv").write_text(table)
    ten = Suite("s", "S", (Case(("d",), ("a",), seeds=10, first_seed=3),))
    for seed in range(5, 13):
        shutil.copytree(
            tmp_path / "runs/default/d/a/seed-3", tmp_path / f"runs/default/d/a/seed-{seed}"
        )
    assert store.merge_tables(tmp_path, ten, tmp_path) == []


def test_data_that_each_seed_draws_have_no_lines(tmp_path: Path) -> None:
    make_runs(tmp_path)
    assert len(right.of_suite(SUITE, tmp_path)) == 4
    path = tmp_path / "runs/default/d/a/seed-4/metrics.json"
    path.write_text(path.read_text().replace('"x"', '"y"'))
    assert right.of_suite(SUITE, tmp_path) == {}


def test_missing_rows_are_of_claims_on_fixed_test_sets() -> None:
    by_name = {claim.name: claim for claim in read()}
    needed = claims.lines_needed(by_name["dasc_gain_music_wdn"])
    assert [(suite.name, row, metric) for suite, row, metric in needed] == [
        ("dasc_twenty", "dasc_wdn", "last_round_accuracy"),
        ("dasc_twenty", "wdn", by_name["dasc_gain_music_wdn"].control_metric),
    ]
    assert claims.lines_needed(by_name["neucrowd_best_syn1"]) == []
    auc = dataclasses.replace(by_name["neucrowd_best_hotel"], metric="auc")
    assert claims.lines_needed(auc) == []
