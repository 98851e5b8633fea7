"""One run against a published value, rows of a suite, suites of a user's file, values by seed."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from neucrowd_tf.declare import registry
from neucrowd_tf.errors import DataError
from reproduction import catalogue, run
from reproduction.printed import Figure
from reproduction.suite import Case, Suite
from reproduction.table import Cell, markdown, write_seeds
from tests.cases import cases, raises

SUITE = """
[mine]
title = "My comparison"
baseline = "mean"
datasets = "tiny"
methods = "mean oracle"
first_seed = 3
cases = [{ seeds = 2 }, { setting = "low", methods = "mean", shift = 0.1, seeds = 1 }]
"""


@pytest.mark.parametrize(
    ("values", "repeats", "published", "verdict"),
    # Ten values .80 and .82 by turns: mean .81, sd .0105, t(9) = 2.262; half-width of one run
    # .0250, which is .1625 in log odds: [.784, .834]. Of five runs: .0131: [.797, .823]. Values
    # .80 and .83 have .0374; outside is outside, however wide.
    cases("""
[[0.80, 0.82], 5, [0.83], "within"],
[[0.80, 0.82], 5, [0.84], "below"],
[[0.80, 0.82], 5, [0.78], "above"],
[[0.80, 0.82], 5, [0.83, null, 5], "below"],
[[0.80, 0.83], 5, [0.81], "too wide"],
[[0.80, 0.83], 5, [0.90], "below"],
[[0.81, 0.811, 0.809], 1, [0.81], "too few runs"],
[[0.81], 10, [0.8104], "within"],
[[0.81], 10, [], ""]
"""),
)
def test_verdict_by_hand(values, repeats: int, published, verdict: str) -> None:
    figure = Figure(*published) if published else None
    cell = Cell("d", "m", "accuracy", figure, tuple(values * repeats))
    assert cell.verdict == verdict and cell.worst == min(values)
    if published == [0.83]:
        assert cell.row()["predicted_low"] == "0.783725"
        shown = markdown(Suite("s", "S", ()), [cell.row()], "x")
        assert f"| 0.810 [0.784, 0.834] (10) | {verdict} |" in shown


def test_a_row_that_did_not_train_has_no_verdict() -> None:
    cell = Cell("d", "m", "accuracy", Figure(0.83), (0.80, 0.82) * 5, trained=False)
    assert cell.verdict == "did not train"
    assert Cell("d", "m", "accuracy", None, (0.8,) * 5, trained=False).verdict == "did not train"


def test_folds_are_one_value_per_seed(tmp_path: Path) -> None:
    runs = ((0, "fold-0"), (0, "fold-1"), (1, "fold-0"), (1, "fold-1"))
    cell = Cell("d", "m", "accuracy", Figure(0.7), (0.6, 0.8, 0.5, 0.7), 2, runs=runs)
    assert cell.by_seed == pytest.approx((0.7, 0.6)) and cell.worst == pytest.approx(0.6)
    assert math.isnan(Cell("d", "m", "log_loss", None, (0.6,)).worst)
    write_seeds(tmp_path / "s.csv", [cell])
    assert (tmp_path / "s.csv").read_text().splitlines()[:2] == [
        "dataset,method,metric,seed,fold,value",
        "d,m,accuracy,0,0,0.6",
    ]


def test_rows_of_a_suite() -> None:
    suite = Suite("s", "S", (Case(("d", "e"), ("a", "b")), Case(("d",), ("a",), "k=3")))
    assert suite.with_rows(["e/b"]).cases == (Case(("e",), ("b",)),)
    assert suite.with_rows(["d/k=3/*"]).cases == (Case(("d",), ("a",), "k=3"),)
    assert suite.with_rows(["e/nothing"]).cases == ()
    by_method = Suite("s", "S", (Case(("d",), ("a", "b"), hparams={"a.k": 1, "b.k": 2, "l": 3}),))
    assert by_method.with_rows(["d/a"]).cases[0].hparams == {"a.k": 1, "l": 3}


def test_a_suite_of_a_file(
    command: Callable[..., int],
    tiny,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(registry, "_SUITE_FILES", [catalogue.read_file])
    monkeypatch.setattr(run, "draw", lambda *_: [])
    monkeypatch.setattr("sys.argv", ["/somewhere/mine.py"])
    file, out = tmp_path / "mine.toml", tmp_path / "out"
    file.write_text(SUITE)
    base = [f"--suite={file}", f"--output_dir={out}"]
    assert command(*base, "--rows=tiny/oracle", "--table=tex") == 0 and tiny.calls == 2
    shown = capsys.readouterr().out
    assert r"tiny & oracle &" in shown and "mean &" not in shown
    assert (out / "results" / "mine.tex").read_text() == shown
    assert command(*base) == 0 and tiny.calls == 2 + 3
    table = (out / "results" / "mine.md").read_text()
    assert f"`python mine.py --suite={file} --data_dir=DATA" in table
    with (out / "results" / "mine_seeds.csv").open() as lines:
        rows = [f"{row['method']} {row['seed']}" for row in csv.DictReader(lines)]
    assert rows == ["mean 3", "mean 4", "oracle 3", "oracle 4", "low/mean 3"]
    assert command(*base, "--rows=tiny/nothing") == 1
    assert "no such row" in capsys.readouterr().err
    file.write_text(SUITE.replace("mean oracle", "mean absent"))
    assert command(*base) == 1
    assert "absent: no such method" in capsys.readouterr().err
    for text in ("[a]\nseeds = 3\n", "not toml"):
        file.write_text(text)
        raises(DataError, "not a file of suites", catalogue.read_file, file)
    assert command(*base) == 2


@pytest.mark.parametrize("name", ["neucrowd", "rll_bayesian", "crowding", "dasc_anno_reg", "iced"])
def test_a_method_of_a_paper_says_what_it_changes(name: str) -> None:
    changes, _, words = registry.method(name).changes.partition("; by the published equations: ")
    assert len(changes) > 20
    paper = words if "=" not in words else name
    assert paper in registry.entries("method")
    assert set(registry.method(name).parameter_names or ()) >= {
        part.partition("=")[0] for part in words.split(", ") if "=" in part
    }
