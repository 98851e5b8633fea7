"""Tables' gains and figures from runs that are made up: each number comes from the file it should,
and nothing breaks where runs are missing.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from neucrowd_tf.cli.runs.options import Options
from reproduction import catalogue, dataset_tables, panels
from reproduction.collect import row_runs, suite_runs
from reproduction.figures import split_name
from reproduction.panels import write
from reproduction.suite import FIRST_SEED, Case, Suite
from reproduction.table import cells, markdown
from tests.runs import write_run

SUITES = {suite.name: suite for suite in catalogue.SUITES}
NEEDS_DATA = ("dasc_fig1", "crowding_fig4", "dataset_tables", "truth_inference")


def first_seed(suite: str) -> int:
    return SUITES[suite].cases[0].first_seed


def put(
    root: Path, place: str, seed: int, accuracy: float = 0.5, *, first: int = FIRST_SEED, **files
) -> Path:
    """Writes a finished run at "<setting>/<dataset>/<method>"."""
    folder = root / "runs" / place / f"seed-{first + seed}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {"metrics": {"test": {"accuracy": accuracy}}, **files}.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def analysed(name: str, root: Path) -> dict[str, pd.DataFrame]:
    suite = SUITES[name]
    assert suite.analysis is not None
    created = suite.analysis(suite, Options(output_dir=root))
    return {path.name: pd.read_csv(path) for path in created if path.suffix == ".csv"}


def rows_of(table: pd.DataFrame) -> list[str]:
    return table.to_csv(sep="|", index=False, header=False, float_format="%g").splitlines()


def test_gain_is_paired_by_seed_and_by_setting(tmp_path: Path) -> None:
    cases = (
        Case(("d",), ("base", "ours"), seeds=3),
        Case(("d",), ("ours",), "k=3", seeds=3),
        Case(("d",), ("base", "ours"), "k=4", seeds=2),
    )
    suite = Suite("s", "S", cases, ("accuracy", "extra"), baseline="base")
    for seed, (base, ours) in enumerate(((0.5, 0.6), (0.7, 0.9), (0.6, 0.9))):
        put(tmp_path, "default/d/base", seed, base)
        put(tmp_path, "default/d/ours", seed, ours, evaluation={"extra": ours / 2})
        put(tmp_path, "k=3/d/ours", seed, base + 0.25)
    for seed in (0, 1):
        put(tmp_path, "k=4/d/base", seed, 0.1)
        put(tmp_path, "k=4/d/ours", seed, 0.2)
    table = {(cell.method, cell.metric): cell for cell in cells(suite, tmp_path)}
    # Gains .1, .2, .3: mean .2, sd .1, t(2) = 4.303, half-width .248. Without a baseline of its own
    # setting a row takes the plain one.
    rows = [cell.row() for cell in table.values()]
    assert "+0.200 [-0.048, +0.448]" in markdown(suite, rows, "command")
    gains = {key: cell.gain and round(cell.gain.estimate, 9) for key, cell in table.items()}
    assert gains["ours", "accuracy"] == 0.2 and gains["base", "accuracy"] is None
    assert (gains["k=3/ours", "accuracy"], gains["k=4/ours", "accuracy"]) == (0.25, 0.1)
    assert gains["ours", "extra"] is None and table["base", "extra"].values == ()
    assert table["ours", "extra"].values == (0.3, 0.45, 0.45)


def test_gain_is_over_the_base_that_a_method_ends_in(tmp_path: Path) -> None:
    suite = Suite(
        "s", "S", (Case(("d",), ("base", "wdn", "x_base", "x_wdn"), seeds=2),), baseline="base wdn"
    )
    values = {"base": (0.5, 0.6), "wdn": (0.2, 0.4), "x_base": (0.6, 0.8), "x_wdn": (0.3, 0.6)}
    for method, seed in itertools.product(values, (0, 1)):
        put(tmp_path, f"default/d/{method}", seed, values[method][seed])
    table = {cell.method: cell.gain for cell in cells(suite, tmp_path)}
    # By seed: wdn over base -.3 and -.2, x_base over base .1 and .2, x_wdn over wdn .1 and .2 (over
    # base it would lose .2 and nothing).
    gains = {name: gain and round(gain.estimate, 9) for name, gain in table.items()}
    assert gains == {"base": None, "wdn": -0.25, "x_base": 0.15, "x_wdn": 0.15}
    heading = markdown(
        suite, [cell.row() for cell in cells(suite, tmp_path)], "command"
    ).splitlines()[4]
    assert "gain over its own layer (wdn, otherwise base) [" in heading


def test_gain_over_seeds_and_instances_and_of_other_settings(tmp_path: Path) -> None:
    cases = (
        Case(("d",), ("base", "ours"), seeds=2),
        Case(("d",), ("base",), "k=3", seeds=2, hparams={"k": 3}),
        Case(("d",), ("base",), "rate=1", seeds=2, options={"dataset_option": (("rate", 1),)}),
    )
    suite = Suite("s", "S", cases, baseline="base")
    places = {"default/d/base": 7, "default/d/ours": 8, "k=3/d/base": 9, "rate=1/d/base": 9}
    for (place, right), seed in itertools.product(places.items(), (0, 1)):
        folder = tmp_path / "runs" / place / f"seed-{FIRST_SEED + seed}"
        test = {"accuracy": right / 10}
        write_run(folder, np.arange(10) < right, "a" * 10, test=test, test_digest="x")
    table = {cell.method: cell for cell in cells(suite, tmp_path)}
    ours = table["ours"]
    # One instance of ten differs, in both seeds: standard error sqrt(.1 / 10), t(9) = 2.262.
    assert ours.gain.low == pytest.approx(0.1)
    assert ours.gain_instances.low == pytest.approx(0.1 - 2.262157 * 0.1)
    text = markdown(suite, [cell.row() for cell in table.values()], "command")
    assert "+0.100 [-0.126, +0.326]" in text, "the wider of the two intervals"
    assert ours.row()["gain_instances_low"] == "-0.126216"
    # The baseline with other settings is measured over itself, but not on other data.
    k, rate = table["k=3/base"].gain, table["rate=1/base"].gain
    assert k.estimate == pytest.approx(0.2) and rate is None


def test_folds_are_the_runs_of_a_cross_validated_row(tmp_path: Path) -> None:
    case = Case(
        ("d",), ("m",), "cv", seeds=1, options={"evaluation": "cv", "folds": 2, "repeats": 2}
    )
    for piece in range(5):  # one more than the four folds of the case
        folder = put(tmp_path, "cv/d/m", 0) / f"fold-{piece}"
        folder.mkdir()
        (folder / "metrics.json").write_text(json.dumps({"test": {"accuracy": piece / 10}}))
    result = [run.metric("accuracy") for run in row_runs(tmp_path, case, "d", "m")]
    assert result == [0.0, 0.1, 0.2, 0.3]


def test_dasc_figures(tmp_path: Path) -> None:
    assert split_name("dasc_crowd_layer") == ("dasc", "crowd_layer")
    assert split_name("wdn") == ("ce", "wdn")
    assert split_name("focal_self_anno_reg") == ("focal_self", "anno_reg")
    rounds = {
        "imbalance_ratio": [2.0, 5.0],
        "test_accuracy": [0.7, 0.8],
        "precision_majority": [None, 0.9],
        "recall_minority": [None, 0.6],
    }
    result = {"rounds": rounds, "start_accuracy": 0.7, "last_round_accuracy": 0.8}
    for seed, suite in itertools.product((0, 1), ("dasc_fig4", "dasc_fig6")):
        first = first_seed(suite)
        for place in ("default", "keep=0.2"):
            runs = f"{place}/labelme"
            put(tmp_path, f"{runs}/dasc_crowd_layer", seed, 0.75, first=first, evaluation=result)
            # The layer's own run, which is not round 0: on LabelMe it takes more steps.
            put(tmp_path, f"{runs}/crowd_layer", seed, 0.74, first=first)
    curve = analysed("dasc_fig4", tmp_path)["dasc_fig4_imbalance.csv"]
    assert rows_of(curve) == [
        "labelme, CrowdLayer|dasc|0|2|0|2",
        "labelme, CrowdLayer|dasc|1|5|0|2",
    ]
    bars = analysed("dasc_fig5", tmp_path)["dasc_fig5_selections.csv"]
    assert rows_of(bars[["panel", "mean"]]) == [
        "labelme, CrowdLayer: precision_majority|0.9",
        "labelme, CrowdLayer: recall_minority|0.6",
    ]
    remaining = analysed("dasc_fig6", tmp_path)["dasc_fig6_curve.csv"]
    assert rows_of(remaining.iloc[:, 1:4]) == [
        *("ce|0|0.74", "ce|0.8|0.74", "dasc|0|0.8", "dasc|0.8|0.8")
    ]


def test_crowding_figures(tmp_path: Path) -> None:
    surest = {"surest": {"share": [0.5, 1.0], "accuracy": [1.0, 0.8]}}
    for first in map(first_seed, ("crowding_fig2", "crowding_fig3")):
        put(tmp_path, "default/labelme/dl_cl", 0, 0.6, first=first, evaluation=surest)
        folder = put(tmp_path, "game=40/labelme/crowding", 0, first=first)
        (folder / "curves.csv").write_text(
            "stage,epoch,train_accuracy,test_accuracy\nclassifier,0,0.5,0.4\ngame,0,0.6,0.7\n"
        )
    first = first_seed("crowding_fig6")
    put(tmp_path, "lambda=0.25/labelme/crowding", 0, 0.9, first=first)
    two = analysed("crowding_fig2", tmp_path)
    assert two["crowding_fig2_entropy.csv"]["mean"].tolist() == [1.0, 0.8]
    steps = two["crowding_fig2_steps.csv"].iloc[:1, :4]
    assert rows_of(steps) == ["labelme|two steps|1|0.7"]
    three = analysed("crowding_fig3", tmp_path)["crowding_fig3_curves.csv"]
    assert rows_of(three.iloc[:, [0, 2, 3]]) == [
        *("labelme, train|1|0.5", "labelme, train|2|0.6"),
        *("labelme, test|1|0.4", "labelme, test|2|0.7"),
    ]
    six = analysed("crowding_fig6", tmp_path)["crowding_fig6_curves.csv"]
    assert rows_of(six.iloc[:, :4]) == ["labelme: lambda|CrowdInG|0.25|0.9"]


def test_iced_and_neucrowd_figures(tmp_path: Path) -> None:
    names = ("majority_vote", "original", "first", "final")
    labels = {f"label_{name}": x for name, x in zip(names, (0.8, 0.6, 0.85, 0.9), strict=True)}
    evaluation = {**labels, "rounds": {"label_accuracy": [0.6, 0.85, 0.9]}}
    first = first_seed("iced_fig2")
    put(tmp_path, "default/usps_syn/iced", 0, first=first, evaluation=evaluation)
    result = analysed("iced_fig2", tmp_path)
    assert result["iced_fig2_labels.csv"]["mean"].tolist() == list(labels.values())
    assert result["iced_fig2_rounds.csv"]["mean"].tolist() == [0.6, 0.85, 0.9]
    history = {"loss": [2.0, 1.0], "fixed_tuplet_loss": [3.0, 1.5]}
    first = first_seed("neucrowd_fig2")
    put(tmp_path, "epochs=50/hotel/neucrowd", 0, first=first, history=history)
    curves = analysed("neucrowd_fig2", tmp_path)["neucrowd_fig2_curves.csv"]
    same = curves[curves["panel"] == "loss of the same tuplets"]
    assert same["mean"].tolist() == [3.0, 1.5] and curves["mean"].sum() == 7.5
    put(tmp_path, "k=2/hotel/rll_bayesian", 0, 0.4, first=first_seed("rll_table2"))
    curve = analysed("rll_table2", tmp_path)["rll_table2_curve.csv"]
    assert rows_of(curve.iloc[:1, :4]) == ["hotel|rll_bayesian|2|0.4"]


@pytest.mark.parametrize(
    "name",
    [suite.name for suite in catalogue.SUITES if suite.analysis and suite.name not in NEEDS_DATA],
)
def test_figures_of_nothing_are_empty(name: str, tmp_path: Path) -> None:
    assert all(frame.empty for frame in analysed(name, tmp_path).values())
    assert not suite_runs(SUITES[name], tmp_path)


def test_panels_by_hand(tmp_path: Path) -> None:
    points = [panels.Point("p", "a", 1, seed, value) for seed, value in enumerate((0.2, 0.4))] + [
        panels.Point("p", "b", 0, 0, 0.1)
    ]
    (tmp_path / "results").mkdir()
    created = write(
        Suite("s", "T", ()), Options(output_dir=tmp_path), "f", points, "x", "y", panels.draw_bars
    )
    assert (
        created[0].read_text() == "panel,line,x,mean,sd,runs\np,a,1,0.3,0.141421,2\np,b,0,0.1,,1\n"
    )
    assert [path.suffix for path in created] == [".csv", ".png"]


@pytest.mark.parametrize(
    ("name", "printed", "agreeing", "other"),
    [("kappa", 0.8, 0.804, 0.81), ("size", 734, 734, 735), ("r", 2.479, 2.4792, 2.48)],
)
def test_agreement_is_to_half_of_the_last_digit(
    name: str, printed: float, agreeing: float, other: float
) -> None:
    assert dataset_tables.agrees(name, printed, agreeing)
    assert not dataset_tables.agrees(name, printed, other)


def test_statistics_of_the_data(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registered: None
) -> None:
    monkeypatch.setattr(
        dataset_tables, "DATASETS", {"NeuCrowd": (), "DASC": ("music",), "ICED": ()}
    )
    suite = SUITES["dataset_tables"]
    dataset_tables.write(suite, Options(output_dir=tmp_path, data_dir=data_dir))
    frame = pd.read_csv(tmp_path / "results" / "dataset_tables.csv")
    mine = frame[frame["dataset"] == "music"].set_index("statistic")
    assert mine.loc["train_size", "ours"] == 700
    assert mine.loc["mean_annotator_accuracy", "outcome"] == "agrees"
    assert set(frame[frame["dataset"] == "oral"]["outcome"]) == {"not recomputed: private data"}
    # DASC's table 3, six rows of seven figures.
    heavy = frame[frame["dataset"].str.startswith("data")]
    assert len(heavy) == 42
    assert set(heavy["paper"]) == {"DASC"}
    assert set(heavy["outcome"]) == {"not recomputed: private data"}
