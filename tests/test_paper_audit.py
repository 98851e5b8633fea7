"""The errors that docs/papers/ lists in the papers, recomputed from their published values."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from reproduction.printed import TABLES

ROOT = Path(__file__).resolve().parent.parent
STEPS = ("neucrowd_no_sa_ra_sn", "neucrowd_no_sa_ra", "neucrowd_no_sa", "neucrowd")
SETS = ("syn1", "syn2", "pre_k", "hotel", "oral")


def page(name: str) -> str:
    text = (ROOT / "docs" / "papers" / f"{name}.md").read_text(encoding="utf-8")
    return " ".join(text.partition("## Errors in the paper")[2].split())


def value(table: str, dataset: str, method: str, metric: str) -> float:
    return TABLES[table][dataset, method][metric].mean


def on_grid(published: float, rows: int, digits: int = 3) -> bool:
    """Whether a number of right answers among so many rows rounds to a value, either way."""
    half = 0.5 * 10**-digits + 1e-9
    return any(abs(right / rows - published) <= half for right in range(rows + 1))


def least_macro_f1(accuracy: float) -> float:
    """Returns the least macro F1 on a balanced test set: one class has no error."""
    e = 2 * (1 - accuracy)
    return (2 / (2 + e) + 2 * (1 - e) / (2 - e)) / 2


# Accuracies of a paper's table that no number of right answers among so many rows rounds to.
OFF_GRID = """
neucrowd_table2 0.745 300
neucrowd_table3 0.806 300
neucrowd_table3 0.822 300
neucrowd_table3 0.665 500
neucrowd_table3 0.837 200
neucrowd_table3 0.884 200
crowding_table1 85.16 5940
crowding_table1 87.03 5940
crowding_table2 83.12 5940
crowding_table2 86.17 5940
"""


@pytest.mark.parametrize("line", OFF_GRID.strip().splitlines())
def test_values_that_no_count_gives(line: str) -> None:
    table, published, rows = line.split()
    is_percentage = float(published) > 1
    share = float(published) / (100 if is_percentage else 1)
    printed = [x["accuracy"].mean for x in TABLES[table].values() if "accuracy" in x]
    assert published in page(table.partition("_")[0]) and pytest.approx(share) in printed
    assert not on_grid(share, int(rows), 4 if is_percentage else 3)


def test_components_lower_figures() -> None:
    falls = sum(
        value("neucrowd_table3", data, after, metric)
        < value("neucrowd_table3", data, before, metric)
        for before, after in pairwise(STEPS)
        for data in SETS
        for metric in ("accuracy", "auc")
    )
    assert falls == 7 and "7 of 30 steps" in page("neucrowd")
    better = [value("neucrowd_table3", "oral", "neucrowd_no_sa", m) for m in ("accuracy", "auc")]
    full = [value("neucrowd_table3", "oral", "neucrowd", m) for m in ("accuracy", "auc")]
    assert better == [0.884, 0.948] and full == [0.865, 0.927]


def test_another_method_has_the_best_auc() -> None:
    cells = TABLES["neucrowd_table2"]
    best = {
        data: max(x["auc"].mean for (where, _), x in cells.items() if where == data)
        > value("neucrowd_table2", data, "neucrowd", "auc")
        for data in SETS
    }
    assert [data for data, lost in best.items() if lost] == ["syn2", "pre_k", "oral"]


@pytest.mark.parametrize(
    "shown", ["24/33 0.727 0.842", "23/32 0.719 0.836", "24/32 0.750 0.857", "21/31 0.677 0.808"]
)
def test_everything_is_called_positive(shown: str) -> None:
    share, accuracy, f1 = shown.split()
    positive = Fraction(share)
    assert float(positive) == pytest.approx(float(accuracy), abs=6e-4)
    assert float(2 * positive / (1 + positive)) == pytest.approx(float(f1), abs=6e-4)
    assert f"{accuracy} / {f1}" in page("rll")


def test_one_test_set_has_one_share_of_positives() -> None:
    (a, f), (b, g) = [
        [value("rll_table3", "oral", f"d={d}/rll_bayesian", m) for m in ("accuracy", "f1_positive")]
        for d in (3, 5)
    ]
    low = min((f + x) * (1 - a - y) / (2 * (1 - f - x)) for x in (-5e-4, 5e-4) for y in (-5e-4, 0))
    high = (g + 5e-4) * (1 - b + 5e-4) / (2 * (1 - g - 5e-4)) + 1 - b + 5e-4
    assert low > high


@pytest.mark.parametrize(
    ("dataset", "least"),
    [("usps_syn", 0.7703), ("gisette_syn", 0.6660), ("gsad_syn", 0.6470), ("emotion", 0.5780)],
)
def test_macro_f1_below_the_least_possible(dataset: str, least: float) -> None:
    accuracy, f1 = (value("iced_table2", dataset, "mbem", m) for m in ("accuracy", "f1"))
    assert least_macro_f1(accuracy) == pytest.approx(least, abs=6e-5) and f1 < least - 0.04
    assert f"{f1:.4f}" in page("iced") and f"{least:.4f}" in page("iced")


def test_gains_and_orders_that_dasc_states() -> None:
    def cell(method: str) -> float:
        return next(iter(TABLES["dasc_table2"]["cifar10h_lt", method].values())).mean

    assert cell("dasc_crowd_layer") - cell("crowd_layer") == pytest.approx(0.097)
    assert cell("mv_dl") > cell("anno_reg") and cell("ds_dl") > cell("anno_reg")
    assert "55.3 - 45.6 = 9.7" in page("dasc")
