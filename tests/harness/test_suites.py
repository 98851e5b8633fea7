"""Suites: what a figure's status says, tables from finished runs, and the page that they make."""

from __future__ import annotations

import pathlib

import pytest

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.files import write_json
from neucrowd_tf.harness.suites import catalogue, page, papers
from neucrowd_tf.harness.suites.suite import Case, Suite
from neucrowd_tf.harness.suites.table import ABOVE, BELOW, NO_FIGURE, PRIVATE_DATA, REPRODUCED, Cell, cells, markdown, write_csv


@pytest.mark.parametrize(
    ("paper", "status"),
    # Values .80, .82, .84: mean .82, sd .02, t(2) = 4.303, half-width 4.303 * .02 / sqrt(3) = .0497: [.770, .870].
    [(0.82, REPRODUCED), (0.86, REPRODUCED), (0.88, BELOW), (0.76, ABOVE), (None, NO_FIGURE)],
)
def test_status_follows_the_interval(paper: float | None, status: str) -> None:
    cell = Cell("labelme", "crowd_layer", "accuracy", paper, (0.80, 0.82, 0.84))
    mean, low, high = cell.interval
    assert (round(mean, 3), round(low, 3), round(high, 3)) == (0.82, 0.77, 0.87)
    assert cell.status == status


def test_a_private_dataset_is_never_substituted() -> None:
    assert Cell("oral", "neucrowd", "accuracy", 0.865, ()).status == PRIVATE_DATA


def test_table_from_finished_runs(tmp_path: pathlib.Path) -> None:
    suite = Suite("tiny", "Tiny", (Case(("hotel",), ("a", "b"), "k=3", seeds=2),), ("accuracy",), {("hotel", "k=3/a"): {"accuracy": (0.5, None)}})
    for seed, value in ((100, 0.4), (101, 0.6)):
        write_json(tmp_path / "k=3" / "hotel" / "a" / f"seed-{seed}" / "metrics.json", {"test": {"accuracy": value}})
    table = cells(suite, tmp_path)
    assert [(cell.method, cell.values, cell.paper) for cell in table] == [("k=3/a", (0.4, 0.6), 0.5), ("k=3/b", (), None)]
    write_csv(tmp_path / "tiny.csv", table)
    assert (tmp_path / "tiny.csv").read_text().splitlines()[1].startswith("hotel,k=3/a,accuracy,0.5,0.5,")
    assert "| hotel | k=3/a | 0.500 | 0.500 [" in markdown(suite, table, "make it")


def test_every_printed_row_is_in_its_suite_or_cannot_be_had() -> None:
    for name, table in papers.TABLES.items():
        suite = catalogue.find(name)
        metrics = {metric for figures in table.values() for metric in figures}
        assert metrics <= set(suite.metrics), name
    with pytest.raises(UsageError, match="neucrowd_table2"):
        catalogue.find("nonsense")


def test_page_needs_tables(tmp_path: pathlib.Path) -> None:
    with pytest.raises(DataError, match="received none"):
        page.page(tmp_path)
    write_json(tmp_path / "neucrowd_table3.json", {"outcomes": {REPRODUCED: 3, BELOW: 1}})
    (tmp_path / "neucrowd_table3.md").write_text("## NeuCrowd, table 3\n")
    text = page.page(tmp_path)
    assert "print 4 figures" in text and "- 3 reproduced" in text and "--suite=dasc_table2" in text
