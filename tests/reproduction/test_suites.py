"""Suites: what a figure's status says, tables from finished runs, and the page that they make."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from neucrowd_tf.cli.runs import process
from neucrowd_tf.declare import dataset_registration, registry
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files.json import read_json
from reproduction import catalogue, figures, maps, page, printed, results_folder, run, smoke
from reproduction.suite import Case, Suite
from reproduction.table import COLUMNS, Cell, write_csv
from tests.cases import cases, raises

Command = Callable[..., int]


def test_a_private_dataset_is_never_substituted() -> None:
    assert (
        Cell("oral", "neucrowd", "accuracy", printed.Figure(0.865), ()).verdict
        == printed.PRIVATE_DATA
    )


def test_every_printed_row_is_in_its_suite_or_cannot_be_had() -> None:
    suites = {suite.name: suite for suite in catalogue.SUITES}
    for name, table in printed.TABLES.items():
        suite = suites[name]
        metrics = {metric for figures in table.values() for metric in figures}
        assert metrics <= set(suite.metrics), name
    raises(UsageError, "no suite is named", registry.chosen_suites, ["nonsense"])


def test_tables_have_every_printed_cell() -> None:
    """Rows times datasets, as the papers print them; a dash of theirs is no cell."""
    counted = {
        name: sum(len(figures) for figures in table.values())
        for name, table in printed.TABLES.items()
    }
    # Two metrics each, but for DASC and CrowdInG; without SoftProb on Pre-K and CPC on Emotion; Syn
    # is in two tables of NeuCrowd; DASC has two aggregations, and seven rows over three models.
    (expected,) = cases("""{
"neucrowd_table2": 138, "neucrowd_table3": 40, "neucrowd_syn": 68,
"rll_table1": 60, "rll_table2": 16, "rll_table3": 12, "dasc_table2": 69,
"crowding_table1": 18, "crowding_table2": 15, "iced_table2": 62, "iced_table3": 18
}""")
    assert counted == expected


def test_pages_follow_from_the_tables(tmp_path: Path) -> None:
    raises(DataError, "received none", page.page, tmp_path)
    figure = printed.Figure(0.85)
    table = [
        Cell("hotel", "neucrowd", "accuracy", figure, (0.84, 0.85, 0.86) * 4),
        Cell("hotel", "neucrowd", "auc", figure, (0.5,) * 12),
        Cell("oral", "neucrowd", "accuracy", figure, ()),
        Cell("hotel", "plain", "accuracy", None, (0.9,)),
    ]
    write_csv(tmp_path / "neucrowd_table3.csv", table)
    assert page.page(tmp_path).startswith("# Do the papers reproduce")
    (tmp_path / results_folder.STUDIES).write_text("file,question\nneucrowd_table3.csv,Another?\n")
    assert 'neucrowd_table3.csv,"NeuCrowd, table 3"' in results_folder.files_csv(tmp_path)
    for name in "ab":
        (tmp_path / f"{name}.json").write_text('{"title": "T"}')
        results_folder.collect_runs(tmp_path)
    assert read_json(tmp_path / results_folder.RUNS) == {"a": {"title": "T"}, "b": {"title": "T"}}
    assert COLUMNS.index("verdict") > COLUMNS.index("published")


def test_a_file_of_suites(tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_text(
        """
        [names]
        both = "a $more"
        more = "b"
        [one]
        title = "Paper, table 1"
        metrics = "accuracy f1"
        printed = { a = "neucrowd_table3 hotel neucrowd" }
        analysis = "figures.over_settings"
        datasets = "d"
        methods = "$both c"
        seeds = 2
        cases = [
          {},
          { setting = "k={x}", k = "{x}", units = [8, 4], x = [2, 3] },
          { methods = "a", rate = 0.5, curves = true, dataset_option = { rate = 0.3 } },
        ]
        [two]
        title = "Paper, figure 1"
        """
    )
    one, two = catalogue.read(tmp_path / "some.toml")
    plain = partial(Case, ("d",), ("a", "b", "c"), seeds=2)
    assert one.cases == (
        plain(),
        plain(setting="k=2", hparams={"k": 2, "units": (8, 4)}, x=2),
        plain(setting="k=3", hparams={"k": 3, "units": (8, 4)}, x=3),
        Case(
            *(("d",), ("a",), "rate=0.5", 2, {"rate": 0.5}),
            options={"curves": True, "dataset_option": (("rate", 0.3),)},
        ),
    )
    assert one.metrics == ("accuracy", "f1") and one.analysis is figures.over_settings
    assert one.figures == {("hotel", "a"): printed.TABLES["neucrowd_table3"]["hotel", "neucrowd"]}
    assert two.cases == () and two.printed is None


def test_values_of_a_suite_are_those_of_flags(tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    for line, problem in (
        ('evaluation = "crossval"', "evaluation: expected 'split' or 'cv'"),
        ("keep_items = -5", "keep_items: expected None or a whole number from 1, received -5"),
        ("seeds = 0", "seeds: expected"),
        ("first_seed = -1", "first_seed: expected"),
        ('tune = "all"', "must be grid or a whole number"),
    ):
        path.write_text(f'[s]\ntitle = "S"\ndatasets = "d"\nmethods = "m"\n{line}\n')
        raises(DataError, problem, catalogue.read_file, path)
    path.write_text('["../s"]\ntitle = "S"\n')
    raises(DataError, "'../s' has no name for a file", catalogue.read_file, path)
    assert Case(("d",), ("m",), options={"evaluation": "cv"}).folds == 5


def test_one_setting_with_other_values_is_a_failure(command: Command, tmp_path: Path) -> None:
    """Also if both are planned before either has run."""
    path = tmp_path / "some.toml"
    cases = 'cases = [{ setting = "a", shift = 0.5 }, { setting = "a", shift = 2.5 }]'
    path.write_text(f'[s]\ntitle = "S"\ndatasets = "tiny"\nmethods = "mean"\nseeds = 1\n{cases}\n')
    where = f"--output_dir={tmp_path}"
    assert command(f"--suite={path}", where, modules=("reproduction",)) == 1
    (failure,) = read_json(tmp_path / "results" / "s.json")["failures"]
    assert "began with hparams: {'shift': 0.5}, now it is {'shift': 2.5}" in failure


def test_runs_are_shared_by_setting() -> None:
    """All suites write into one pool, so a setting's name says what its runs are."""
    result: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for suite in catalogue.SUITES:
        for case in suite.cases:
            subject = dict(case.hparams), dict(case.options)
            assert result.setdefault(case.folder, subject) == subject, (
                f"{suite.name}: {case.folder}"
            )
    assert result["default"] == ({}, {})
    assert len(result) > 10
    # A ladder names its rows by the step that they take; the steps of one ladder differ.
    # A map names its cells by their place.
    steps = {case.folder for suite in maps.maps_of(catalogue.SUITES) for case in suite.cases}
    for suite in catalogue.SUITES:
        if suite.name.endswith("_ladder"):
            rows = [(set(case.methods), *result[case.folder]) for case in suite.cases]
            assert all(row not in rows[:place] for place, row in enumerate(rows)), suite.name
            steps |= {case.folder for case in suite.cases}
    named = [subject for name, subject in result.items() if name not in steps]
    assert all(subject not in named[:place] for place, subject in enumerate(named))


def test_catalogue_names_what_is_registered(registered: None) -> None:
    methods = {method.name for method in registry.methods()}
    datasets = {dataset.name for dataset in registry.datasets()}
    for suite in catalogue.SUITES:
        for case in suite.cases:
            assert set(case.methods) <= methods and set(case.datasets) <= datasets, suite.name
            for full in case.hparams:
                owner, _, name = full.rpartition(".")
                for method in [owner] if owner else case.methods:
                    taken = registry.method(method).parameter_names
                    assert taken is None or name in taken, f"{suite.name}: {method} has no {name}"


def test_smoke_makes_every_method_tiny(registered: None) -> None:
    suite = smoke.suite(registry.methods())
    (case,) = suite.cases
    assert set(case.methods) == {method.name for method in registry.methods()}
    taken = [registry.method(name).parameter_names or [] for name in case.methods]
    for name in smoke.TINY:
        assert any(name in parameters for parameters in taken), name
    assert case.hparams["neucrowd.epochs"] == 1 and "mv_lr.epochs" not in case.hparams


def tiny_suites(monkeypatch: pytest.MonkeyPatch, **suites: Suite) -> None:
    entries = {
        name: registry.Suite(name, partial(run.run_suite, suite), suite.title)
        for name, suite in suites.items()
    }
    monkeypatch.setattr(dataset_registration, "SUITES", entries)
    monkeypatch.setattr(run, "draw", lambda *_: [])  # pictures take most of the time


def test_suites_share_runs_and_go_on_after_a_failure(
    command: Command, tiny, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = Suite(
        "a",
        "A",
        (
            Case(("tiny",), ("broken",), seeds=2),
            Case(("tiny",), ("mean",), seeds=2),
            Case(("absent",), ("mean",), seeds=1),
        ),
    )
    second = Suite("b", "B", (Case(("tiny",), ("mean", "oracle"), seeds=3),))
    tiny_suites(monkeypatch, a=first, b=second)
    assert command("--suite=a,b", f"--output_dir={tmp_path}") == 1
    pool = tmp_path / "runs" / "default"
    assert (
        tiny.calls == 2 + 3 + 3
    )  # two that fail, three seeds each of the others: mean's first two run once
    rows = (pool / "results.csv").read_text().splitlines()[1:]
    assert (
        sorted(row.split(",")[1] for row in rows) == ["broken"] * 2 + ["mean"] * 3 + ["oracle"] * 3
    )
    failures = read_json(tmp_path / "results" / "a.json")["failures"]
    assert [line.partition(":")[0] for line in failures] == [
        "absent",
        "tiny broken seed 11000",
        "tiny broken seed 11001",
    ]
    assert "tiny,mean,accuracy,,0.75," in (tmp_path / "results" / "a.csv").read_text()
    assert read_json(tmp_path / "results" / "b.json")["failures"] == []

    done = tiny.calls
    assert command("--suite=b", f"--output_dir={tmp_path}") == 0
    assert tiny.calls == done


def test_a_simulated_dataset_is_drawn_after_threads_are_set(
    command: Command, tiny, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """TensorFlow, which draws it, does not take their number once it has computed."""
    entry, order = registry.dataset("tiny"), []

    def load(*_):
        order.append("load")
        return entry.load(None, 0)

    drawn = registry.Dataset("tiny", load, "for tests", simulated=True)
    monkeypatch.setitem(dataset_registration.DATASETS, "tiny", drawn)
    monkeypatch.setattr(process, "start", lambda options: order.append(options.threads))
    tiny_suites(monkeypatch, a=Suite("a", "A", (Case(("tiny",), ("mean",), seeds=1),)))
    assert command("--suite=a", f"--output_dir={tmp_path}", "--threads=3") == 0
    assert order[:2] == [3, "load"]


def test_every_rows_first_seed_goes_first_and_num_runs_makes_some(
    command: Command,
    tiny,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cases = (
        Case(("tiny",), ("mean",), seeds=2),
        Case(("tiny",), ("oracle",), "other", seeds=4, hparams={"shift": 0.2}),
    )
    tiny_suites(monkeypatch, a=Suite("a", "A", cases))
    for arguments, seeds in ((["--num_runs=1"], "00"), ([], "1123"), (["--num_runs=9"], "")):
        assert command("--suite=a", f"--output_dir={tmp_path}", *arguments) == 0
        assert re.findall(r"seed 1100(\d):", "".join(capsys.readouterr())) == list(seeds)
    assert tiny.calls == 6


def test_rows_that_pages_name_are_in_their_suites() -> None:
    suites = {suite.name: suite for suite in catalogue.SUITES}
    root = Path(catalogue.__file__).parents[1]
    named = []
    for path in [root / "README.md", *(root / "docs").rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        named += re.findall(r"--suite=(\w+_\w+) --rows='?([^' ]+)", text)
    assert len(named) >= 4
    for name, rows in named:
        for row in rows.split(","):
            assert suites[name].with_rows([row]).cases, f"{name}: {row}"
