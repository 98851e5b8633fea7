"""Maps: cells of a grid, intervals over runs and instances, what is said and drawn of them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.evaluation.intervals import crossed_interval
from reproduction import catalogue, map_cells, map_pictures, map_sentences, maps
from reproduction.map_cells import Cell
from reproduction.suite import Case, Suite
from tests.crowds import array_of
from tests.runs import write_run

SUITE = """
[map_small]
title = "Small, where it pays"
seeds = 3
rivals = { ours = "plain other" }
cases = [
  { datasets = "d", methods = "plain other ours ablation" },
  { datasets = "d", methods = "ours", setting = "one step", epochs = 1, at = { noise = "0" } },
]

[map_small.axes]
items = { 10 = { keep_items = 10 }, 20 = {} }
noise = { 0 = {}, "0.3" = { flip_labels = 0.3, seeds = 5, dataset_option = { low = 0.1 } } }
"""


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    path = tmp_path / "small.toml"
    path.write_text(SUITE)
    (read,) = catalogue.read(path)
    return read


def test_a_grid_has_a_case_for_each_combination(suite: Suite) -> None:
    cases = {case.setting: case for case in suite.cases}
    assert list(cases) == [
        *("items=10,noise=0", "items=10,noise=0.3", "items=20,noise=0", "items=20,noise=0.3"),
        *("items=10,noise=0,one step", "items=20,noise=0,one step"),
    ]
    noisy = cases["items=10,noise=0.3"]
    assert noisy.seeds == 5 and cases["items=10,noise=0"].seeds == 3
    options = {"keep_items": 10, "flip_labels": 0.3, "dataset_option": (("low", 0.1),)}
    assert noisy.options == options and not noisy.hparams
    assert cases["items=20,noise=0,one step"].hparams == {"epochs": 1}
    assert suite.rivals == {"ours": ("plain", "other")}


def test_the_interval_is_the_crossed_one_if_all_runs_share_their_instances() -> None:
    generator = default_rng(0)
    effects = generator.normal(size=(6, 1)) + generator.normal(size=(1, 40))
    table = effects + generator.normal(size=(6, 40))
    runs, instances = np.indices(table.shape).reshape(2, -1)
    ours = map_cells.interval_of_runs(runs, instances, table.ravel())
    theirs = crossed_interval(table)
    assert ours.estimate == pytest.approx(theirs.estimate)
    # The same variance, of fewer degrees of freedom.
    assert theirs.high - theirs.low < ours.high - ours.low < 1.35 * (theirs.high - theirs.low)


def test_the_interval_covers_the_mean_of_cross_validated_runs() -> None:
    generator = default_rng(1)
    covered = 0
    for _ in range(200):
        instances = np.concatenate([generator.permutation(60) for _ in range(4)])
        runs = np.repeat(np.arange(20), 12)
        values = generator.normal(size=60)[instances] + 0.3 * generator.normal(size=20)[runs]
        interval = map_cells.interval_of_runs(runs, instances, values + generator.normal(size=240))
        covered += interval.low < 0 < interval.high
    assert 180 <= covered <= 199


def test_one_run_has_no_interval() -> None:
    runs, values = np.zeros(4, dtype=int), array_of("1.0 0 0 1")
    interval = map_cells.interval_of_runs(runs, np.arange(4), values)
    assert interval.estimate == 0.5 and math.isnan(interval.low)


def finish(root: Path, case: Case, method: str, share: float, runs: int) -> None:
    """Writes runs whose share of right predictions is about `share`."""
    for seed in range(case.first_seed, case.first_seed + runs):
        folder = root / "runs" / case.folder / "d" / method / f"seed-{seed}"
        right = default_rng([seed, 7]).random(200) < share
        write_run(folder, right, "ab" * 100, test={"accuracy": right.mean()})


def test_cells_are_compared_with_the_best_rival_and_merged(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_pictures, "Figure", None)  # pictures take time
    root = tmp_path / "out"
    for case in suite.cases[:3]:
        for method, share in {"plain": 0.6, "other": 0.7, "ours": 0.8, "ablation": 0.5}.items():
            finish(root, case, method, share, runs=3)
    finish(root, suite.cases[4], "ours", 0.5, runs=3)
    table = list(maps.rows(suite, root))
    by_name = {(row["items"], row["noise"], row["method"]): row for row in table}
    assert len(by_name) == len(table) == 7
    clean = by_name["10", "0", "ours"]
    assert clean["rival"] == "other" and Cell.of(clean).outcome == 1 and Cell.of(clean).is_complete
    assert Cell.of(by_name["10", "0", "ablation"]).outcome == -1
    control = by_name["10", "0", "ours, one step"]
    assert control["rival"] == "ours" and Cell.of(control).outcome == -1
    assert not Cell.of(by_name["10", "0.3", "ours"]).is_complete  # three of five runs
    target = tmp_path / "target"
    target.mkdir()
    fewer = [{**row, "runs": "2", "gain": "9"} for row in table[:1]]
    maps.store(suite, table[:4], target)
    maps.merge({"map_small": fewer}, target, [suite])
    assert map_cells.read_rows(target, "map_small") == table[:4]
    maps.merge({"map_small": table}, target, [suite])
    merged = map_cells.read_rows(target, "map_small")
    assert sorted(map(str, merged)) == sorted(map(str, table))
    sentence = " ".join(line.strip() for line in map_sentences.sentences(target, [suite], "Small"))
    pays = "`ours` gains points over the best of 2 rivals in d with items 10"
    assert sentence.startswith(f"- {pays}")
    assert "It is behind in no cell of 2, and undecided in 0." in sentence
    assert "2 of 4 cells lack runs." in sentence
    assert map_sentences.sentences(target, [suite], "Other") == []
    assert map_sentences.sentences(tmp_path, [suite]) == []  # no cell has all its runs
    section = map_sentences.section(target, [suite])
    assert section.startswith("\n## Where each method pays") and "maps.png" not in section
    assert map_sentences.section(tmp_path, [suite]) == ""


def test_a_map_and_the_overview_are_drawn(suite: Suite, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    numbers = dict.fromkeys(map_cells.COLUMNS, "0.05")
    cell = {"dataset": "d", "items": "10", "noise": "0", **numbers, "method": "ours"}
    row = {**cell, "rival": "plain", "runs": "3", "asked": "3", "auc_gain": ""}
    new = [row, {**row, "noise": "0.3", "asked": "5"}]
    written = maps.merge({"map_small": new}, tmp_path, [suite])
    names = ["map_small.csv", "map_small.png", "maps.png"]
    assert [path.name for path in written] == names
    assert all(path.stat().st_size > 100 for path in written)
