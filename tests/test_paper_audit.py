"""docs/research/paper_audit.md, line by line: each test redoes the arithmetic of one line with the
of `reproduction/printed.py`, and what it quotes stands in that line.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from reproduction.printed import DATASETS, TABLES

Pair = tuple[float, float]
LINES: dict[str, tuple[tuple[str, ...], Callable[[], None]]] = {}


def line(name: str, quotes: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Registers the check of a line, and the quotes (separated by "; ") that stand in it."""

    def register(check: Callable[[], None]) -> Callable[[], None]:
        LINES[name] = tuple(quotes.split("; ")), check
        return check

    return register


def documented(repository: Path) -> dict[str, str]:
    text = (repository / "docs" / "research" / "paper_audit.md").read_text(encoding="utf-8")
    items = re.finditer(r"^- \*\*([A-Z]\d+)\.\*\*.*(?:\n  .*)*", text, re.MULTILINE)
    return {match[1]: re.sub(r"\s+", " ", match[0]) for match in items}


def near(value: float | Fraction, printed: float, digits: int) -> bool:
    """Whether a value is printed so when it is rounded to so many digits; halves may go either
    way."""
    return abs(float(value) - printed) <= 0.5 * 10**-digits + 1e-9


def on_grid(printed: float, rows: int, digits: int = 3) -> bool:
    return any(near(Fraction(right, rows), printed, digits) for right in range(rows + 1))


def all_positive(share: float | Fraction) -> float:
    return float(2 * share / (1 + share))


def positives(accuracy: float, f1: float, digits: int = 3) -> tuple[float, float]:
    """Returns the least and the largest share of positives that a pair of figures allows, rounding
    considered.
    """
    half = 0.5 * 10**-digits
    low, high = 1.0, 0.0
    for a in (accuracy - half, accuracy + half):
        for f in (f1 - half, f1 + half):
            hits = f * (1 - a) / (2 * (1 - f))
            low, high = min(low, hits), max(high, hits + 1 - a)
    return low, high


def macro_f1(rows: int, first: int, second: int) -> float:
    """Returns macro F1 of two classes of equal size with so many errors each."""
    size, errors = rows // 2, first + second
    scores = [2 * (size - mine) / max(2 * (size - mine) + errors, 1) for mine in (first, second)]
    return sum(scores) / 2


def least_f1(accuracy: float) -> tuple[float, float]:
    """Returns the least macro F1 and the least F1 of one class on a balanced test set, by the
    formula of the page.
    """
    e = 2 * (1 - accuracy)
    return (2 / (2 + e) + 2 * (1 - e) / (2 - e)) / 2, 2 * (1 - e) / (2 - e)


# --------------------------------------------------------------------- NeuCrowd

SETS = ("Syn1", "Syn2", "Pre-K", "Hotel", "Oral")
TEST_ROWS = dict(zip(SETS, (500, 500, 300, 140, 200), strict=True))
METRIC_LEARNING = {
    "Contrastive": "contrastive",
    "Triple": "triplet",
    "TripleSemi": "triplet_semi",
    "Centered": "center",
    "Lifted": "lifted",
}


def pairs(table: str, names: dict[str, str], datasets: str) -> dict[str, list[Pair | None]]:
    """Returns the two figures of each method on each dataset of a table, None for a dash; methods
    by the paper's names.
    """
    printed = TABLES[table]
    rows: dict[str, list[Pair | None]] = {}
    for title, method in names.items():
        cells = [printed.get((dataset, method)) for dataset in datasets.split()]
        rows[title] = [
            None if cell is None else tuple(value.mean for value in cell.values())  # type: ignore[misc]
            for cell in cells
        ]
    return rows


_SETS = "syn1 syn2 pre_k hotel oral"
# Accuracy and AUC on the five sets.
NEUCROWD_2 = pairs(
    "neucrowd_table2",
    {
        "SoftProb": "softprob",
        "EM": "ds_lr",
        "GLAD": "glad_lr",
        **METRIC_LEARNING,
        **{f"{title}+EM": f"{method}_ds" for title, method in METRIC_LEARNING.items()},
        "NeuCrowd": "neucrowd",
    },
    _SETS,
)
NEUCROWD_3 = pairs(
    "neucrowd_table3",
    {
        "-SA-RA-SN": "neucrowd_no_sa_ra_sn",
        "-SA-RA": "neucrowd_no_sa_ra",
        "-SA": "neucrowd_no_sa",
        "full": "neucrowd",
    },
    _SETS,
)


@line("N1", "0.745; 223.5; 0.743; 0.747; 0.005; thirteen")
def _n1() -> None:
    cells = [
        (name, data, pair[0])
        for name, row in NEUCROWD_2.items()
        for data, pair in zip(SETS, row, strict=True)
        if pair
    ]
    off = [(name, data) for name, data, accuracy in cells if not on_grid(accuracy, TEST_ROWS[data])]
    assert off == [("TripleSemi+EM", "Pre-K")]
    assert near(Fraction(223, 300), 0.743, 3)
    assert near(Fraction(224, 300), 0.747, 3)
    assert abs(0.745 * 300 - 223.5) < 1e-9
    printed = [row[2][0] for row in NEUCROWD_2.values() if row[2]]
    assert len(printed) == 13
    assert all(abs(value / 0.005 - round(value / 0.005)) < 1e-9 for value in printed)
    shares = [round(right / 300, 3) for right in range(301)]
    third = sum(abs(share / 0.005 - round(share / 0.005)) < 1e-6 for share in shares) / len(shares)
    assert third == pytest.approx(1 / 3, abs=0.01)


@line("N2", "0.806; 0.822; 241.8; 246.6; 0.807; 0.823; 0.820")
def _n2() -> None:
    accuracies = [row[2][0] for name, row in NEUCROWD_3.items() if name != "full" and row[2]]
    assert accuracies == [0.806, 0.806, 0.822]
    for printed in accuracies:
        assert not on_grid(printed, 300) and not on_grid(printed, 200)
    assert near(Fraction(242, 300), 0.807, 3)
    assert near(Fraction(247, 300), 0.823, 3)
    assert near(Fraction(246, 300), 0.820, 3)
    assert [value * 300 for value in (0.806, 0.822)] == pytest.approx([241.8, 246.6])


@line("N3", "0.665; 0.837; 0.884; 332.5; 167.4; 176.8")
def _n3() -> None:
    off = {
        (data, pair[0]): pair[0] * TEST_ROWS[data]
        for row in NEUCROWD_3.values()
        for data, pair in zip(SETS, row, strict=True)
        if data in ("Syn1", "Oral") and pair and not on_grid(pair[0], TEST_ROWS[data])
    }
    assert off == pytest.approx(
        {("Syn1", 0.665): 332.5, ("Oral", 0.837): 167.4, ("Oral", 0.884): 176.8}
    )


@line("N4", "0.884 / 0.948; 0.865 / 0.927; 0.019; 0.021")
def _n4() -> None:
    better, full = NEUCROWD_3["-SA"][4], NEUCROWD_3["full"][4]
    assert better[0] - full[0] == pytest.approx(0.019)
    assert better[1] - full[1] == pytest.approx(0.021)


@line(
    "N5",
    "5 of the 30; 7 in all; 0.674 to 0.664; 0.837 to 0.81; 0.908 to 0.904; 0.882 to 0.869; "
    "0.921 to 0.823; 0.806",
)
def _n5() -> None:
    rows = list(NEUCROWD_3.values())
    steps = [
        (data, figure, before[place][figure], after[place][figure], last)
        for before, after, last in zip(rows[:-1], rows[1:], (False, False, True), strict=True)
        for place, data in enumerate(SETS)
        for figure in (0, 1)
    ]
    assert len(steps) == 30
    falls = {
        (data, figure, before, after)
        for data, figure, before, after, last in steps
        if after < before and not last
    }
    assert falls == {
        ("Syn2", 0, 0.674, 0.664),
        ("Oral", 0, 0.837, 0.81),
        ("Oral", 1, 0.908, 0.904),
        ("Pre-K", 1, 0.882, 0.869),
        ("Hotel", 1, 0.921, 0.823),
    }
    assert {
        (data, figure) for data, figure, before, after, last in steps if after < before and last
    } == {("Oral", 0), ("Oral", 1)}
    assert [
        (data, figure, before) for data, figure, before, after, _ in steps if after == before
    ] == [("Pre-K", 0, 0.806)]


@line("N6", "3 of 5; 0.772; 0.751; 0.923; 0.898; 0.957; 0.927")
def _n6() -> None:
    lost = {}
    for place, data in enumerate(SETS):
        best = max(row[place][1] for row in NEUCROWD_2.values() if row[place])
        if best > NEUCROWD_2["NeuCrowd"][place][1]:
            lost[data] = best, NEUCROWD_2["NeuCrowd"][place][1]
    assert lost == {"Syn2": (0.772, 0.751), "Pre-K": (0.923, 0.898), "Oral": (0.957, 0.927)}


GROUP_1, GROUP_2 = (
    ("SoftProb", "EM", "GLAD"),
    ("Contrastive", "Triple", "TripleSemi", "Centered", "Lifted"),
)


@line(
    "N7", "3 of 5; Pre-K 0.850 against 0.830; Hotel 0.864 against 0.857; Oral 0.860 against 0.825"
)
def _n7() -> None:
    def best(group: tuple[str, ...], place: int) -> float:
        return max(pair[0] for pair in (NEUCROWD_2[name][place] for name in group) if pair)

    better = {
        data: (best(GROUP_2, i), best(GROUP_1, i))
        for i, data in enumerate(SETS)
        if best(GROUP_2, i) > best(GROUP_1, i)
    }
    assert better == {"Pre-K": (0.850, 0.830), "Hotel": (0.864, 0.857), "Oral": (0.860, 0.825)}


@line("N8", "6 of the 25; Syn2 (0.772); Pre-K (0.918); Oral (0.927); TripleSemi+EM; three; 0.865")
def _n8() -> None:
    full = {
        name: [pair for pair in row if pair]
        for name, row in NEUCROWD_2.items()
        if name != "SoftProb"
    }
    ours, group_3 = (
        full["NeuCrowd"],
        {name: row for name, row in full.items() if name.endswith("+EM")},
    )
    assert sum(len(row) for row in group_3.values()) == 25
    above = {
        (name, data)
        for name, row in group_3.items()
        for i, data in enumerate(SETS)
        if row[i][1] > ours[i][1]
    }
    oral = {(name, "Oral") for name in group_3 if name != "TripleSemi+EM"}
    assert above == {("Triple+EM", "Syn2"), ("Triple+EM", "Pre-K")} | oral and len(above) == 6
    assert sum(row[4][0] == ours[4][0] == 0.865 for row in group_3.values()) == 3


# --------------------------------------------------------------------- RLL

_GROUPS = {
    "SoftProb": "softprob",
    "EM": "ds_lr",
    "GLAD": "glad_lr",
    "SiameseNet": "contrastive",
    "TripletNet": "triplet",
    "RelationNet": "relation_net",
}
# Accuracy and F1 on Oral and Class.
RLL_1 = pairs(
    "rll_table1",
    {
        **_GROUPS,
        **{
            f"{title}+{labels}": f"{_GROUPS[title]}_{short}"
            for title in ("SiameseNet", "TripletNet", "RelationNet")
            for labels, short in (("EM", "ds"), ("GLAD", "glad"))
        },
        "RLL": "rll",
        "RLL+MLE": "rll_mle",
        "RLL+Bayesian": "rll_bayesian",
    },
    "oral class",
)
RLL_2 = pairs("rll_table2", {k: f"k={k}/rll_bayesian" for k in "2345"}, "oral class")
RLL_3 = pairs("rll_table3", {d: f"d={d}/rll_bayesian" for d in "135"}, "oral class")


@line("R1", "0.727 / 0.842; 24/33; five times")
def _r1() -> None:
    share = Fraction(24, 33)
    assert near(share, 0.727, 3) and near(all_positive(share), 0.842, 3)
    rows = [*RLL_1.values(), RLL_3["1"]]
    assert [row[1] for row in rows].count((0.727, 0.842)) == 5


@line("R2", "0.719 / 0.836; 0.750 / 0.857; 23/32; 24/32")
def _r2() -> None:
    for share, accuracy, f1 in ((Fraction(23, 32), 0.719, 0.836), (Fraction(24, 32), 0.750, 0.857)):
        assert near(share, accuracy, 3) and near(all_positive(share), f1, 3)
    assert RLL_1["SiameseNet"][1] == (0.719, 0.836) and RLL_1["TripletNet"][1] == (0.750, 0.857)


@line(
    "R3",
    "0.677; 0.808; 472; 94; 0.818, 0.848, 0.879, 0.758, 0.697, 0.667, 0.606; 27, 28, 29, 25, "
    "23, 22 and 20",
)
def _r3() -> None:
    share = 2.1 / 3.1
    assert near(share, 0.677, 3) and near(all_positive(share), 0.808, 3) and 472 // 5 == 94
    for printed, right in zip(
        (0.818, 0.848, 0.879, 0.758, 0.697, 0.667, 0.606), (27, 28, 29, 25, 23, 22, 20), strict=True
    ):
        assert near(Fraction(right, 33), printed, 3)
        assert any(row[1] and row[1][0] == printed for row in (*RLL_1.values(), *RLL_3.values()))


@line("R4", "0.730 / 0.842; 0.699 / 0.813; 0.757 / 0.855; 0.727; 0.758")
def _r4() -> None:
    off = {row[1] for row in (RLL_1["RelationNet"], RLL_1["RelationNet+GLAD"])}
    off |= {RLL_2["2"][1], RLL_2["4"][1]}
    assert off == {(0.730, 0.842), (0.699, 0.813), (0.757, 0.855)}
    assert not any(on_grid(pair[0], 33) for pair in off if pair)
    assert on_grid(0.727, 33) and on_grid(0.758, 33)


@line("R5", "0.876 / 0.922; 0.888 / 0.915; 0.725; 0.722")
def _r5() -> None:
    three, five = RLL_3["3"][0], RLL_3["5"][0]
    assert three == (0.876, 0.922) and five == (0.888, 0.915)
    least, most = positives(*three)[0], positives(*five)[1]
    assert near(least, 0.725, 3) and near(most, 0.722, 3) and least > most


@line("R6", "1.8; 0.643; 0.725")
def _r6() -> None:
    three = RLL_3["3"][0]
    assert near(1.8 / 2.8, 0.643, 3) and three and positives(*three)[0] > 1.8 / 2.8


@line("R7", "0.842 to 0.840; 0.922 to 0.915")
def _r7() -> None:
    oral, class_ = ([row[place][1] for row in RLL_3.values() if row[place]] for place in (0, 1))
    assert (class_[0], class_[1]) == (0.842, 0.840) and (oral[1], oral[2]) == (0.922, 0.915)


@line("R8", "RLL 0.871; RLL+MLE 0.871")
def _r8() -> None:
    mle, plain = RLL_1["RLL+MLE"][0], RLL_1["RLL"][0]
    assert mle and plain and mle[0] == plain[0] == 0.871


@line(
    "R9",
    "12 of the 14; 178 rows; more than 7; 0.854 and 0.871; 880; five folds of 176; 0.802; "
    "0.847; 142 and 150 of 177",
)
def _r9() -> None:
    rows = (*RLL_1.values(), *RLL_2.values(), *RLL_3.values())
    printed = sorted({row[0][0] for row in rows if row[0]})
    hits = {rows: sum(on_grid(value, rows) for value in printed) for rows in range(10, 201)}
    assert len(printed) == 14 and hits.pop(178) == 12 and max(hits.values()) == 7
    assert [value for value in printed if not on_grid(value, 178)] == [0.802, 0.847]
    assert [value for value in printed if not on_grid(value, 880)] == [0.854, 0.871]
    assert 880 == 5 * 176
    assert near(Fraction(142, 177), 0.802, 3) and near(Fraction(150, 177), 0.847, 3)


@line("R10", "4 of 12 in accuracy; 4 of 12 in F1; 0.667; 0.750 and 0.697")
def _r10() -> None:
    above: dict[int, set[tuple[str, int]]] = {0: set(), 1: set()}
    for name, row in RLL_1.items():
        parts = (
            [RLL_1[piece] for piece in name.split("+")] if name.endswith(("+EM", "+GLAD")) else []
        )
        for data in (0, 1):
            for figure in (0, 1):
                if parts and row[data][figure] > max(piece[data][figure] for piece in parts):
                    above[figure].add((name, data))
    assert above[0] == {
        ("RelationNet+EM", 0),
        ("RelationNet+GLAD", 0),
        ("SiameseNet+EM", 1),
        ("SiameseNet+GLAD", 1),
    }
    assert len(above[1]) == 4
    assert RLL_1["TripletNet+GLAD"][1][0] < min(RLL_1["TripletNet"][1][0], RLL_1["GLAD"][1][0])


@line("R11", "0.606; 0.802, 0.719; 0.758")
def _r11() -> None:
    first, second = ("SoftProb", "EM", "GLAD"), ("SiameseNet", "TripletNet", "RelationNet")
    assert min(first, key=lambda name: RLL_1[name][1]) == "EM"
    assert max(first, key=lambda name: RLL_1[name][1]) == "SoftProb"
    assert all(min(second, key=lambda name: RLL_1[name][data]) == "SiameseNet" for data in (0, 1))
    assert not any(name.endswith("+SoftProb") for name in RLL_1)


# --------------------------------------------------------------------- CrowdInG


def _accuracies(dataset: str) -> dict[str, float]:
    """Returns a dataset's accuracies in tables 1 and 2, in per cent, by method."""
    tables = (TABLES["crowding_table1"], TABLES["crowding_table2"])
    return {
        method: round(100 * cell["accuracy"][0], 2)
        for table in tables
        for (name, method), cell in table.items()
        if name == dataset
    }


MUSIC, LABELME = (tuple(_accuracies(dataset).values()) for dataset in ("music", "labelme"))


def _off(printed: tuple[float, ...], answers: int) -> list[float]:
    return [value for value in printed if not on_grid(value / 100, answers, 4)]


@line(
    "G1",
    "75.41, 82.56, 81.42, 83.17, 83.38, 83.14, 81.28, 82.24, 82.74; 1/1500; 9 of the 10; 83.73",
)
def _g1() -> None:
    assert _off(MUSIC, 5 * 300) == [75.41, 82.56, 81.42, 83.17, 83.38, 83.14, 81.28, 82.24, 82.74]


@line("G2", "85.16, 87.03, 83.12, 86.17; 5,940; six")
def _g2() -> None:
    assert _off(LABELME, 5 * 1188) == [85.16, 87.03, 83.12, 86.17] and len(LABELME) - 4 == 6


@line("G4", "3.0 x 10^4; 10^-4")
def _g4() -> None:
    rate, gradient = 1.0e4, 0.3
    mean, square = 0.1 * gradient, 0.001 * gradient**2  # Adam's first step, beta 0.9 and 0.999
    step = rate * (mean / 0.1) / ((square / 0.001) ** 0.5 + 1e-7)
    assert step == pytest.approx(rate, rel=1e-5)


@line("G5", "75.41; 55.1 +- 4.0; 20.3; 61 songs; 5 standard deviations")
def _g5() -> None:
    published = TABLES["dasc_table2"]["music", "wdn"]["accuracy"]
    theirs, spread = 100 * published.mean, 100 * (published.deviation or 0)
    gap = _accuracies("music")["doctor_net"] - theirs
    assert (round(theirs, 1), round(spread, 1)) == (55.1, 4.0)
    assert near(gap, 20.3, 1) and round(gap / 100 * 300) == 61 and gap / spread > 5


@line("G8", "66.17; 67.23")
def _g8() -> None:
    baselines = ("doctor_net", "dl_cl_self", "dl_cl_gcn", "dl_cl_gan", "dl_cl_ing")
    cifar = {name: _accuracies("cifar10h")[name] for name in baselines}
    assert cifar["dl_cl_ing"] == 66.17 and cifar["doctor_net"] == 67.23
    assert max(cifar, key=lambda name: cifar[name]) == "doctor_net"


# --------------------------------------------------------------------- DASC

BASES = {"Anno-Reg": "anno_reg", "Crowdlayer": "crowd_layer", "WDN": "wdn"}
SETS_2 = {"LabelMe": "labelme", "Music": "music", "CIFAR10-H": "cifar10h_lt"}


def _dasc_2(dataset: str, method: str) -> float:
    """Returns an accuracy of table 2 in per cent."""
    ((mean, *_),) = TABLES["dasc_table2"][dataset, method].values()
    return round(100 * mean, 1)


_ROWS = {"CE": "", "Resampling": "resampling_", "Reweighting": "reweighting_", "Focal": "focal_"}
DASC_2 = {
    data: {
        row: tuple(_dasc_2(name, f"{prefix}{base}") for base in BASES.values())
        for row, prefix in (*_ROWS.items(), ("DASC", "dasc_"))
    }
    for data, name in SETS_2.items()
}


@line("D1", "10.1, 8.5 and 19.6; 55.3 - 45.6 = 9.7; 51.0 - 40.9; 36.9 - 17.3")
def _d1() -> None:
    gains = [
        after - before
        for after, before in zip(*(DASC_2["CIFAR10-H"][row] for row in ("DASC", "CE")), strict=True)
    ]
    assert gains == pytest.approx([10.1, 9.7, 19.6])


@line("D2", "four more; 81.7 < 82.3; 63.4 < 65.8; 39.7 < 40.9; 65.0 < 66.3")
def _d2() -> None:
    below = {
        (data, method, base)
        for data, rows in DASC_2.items()
        for method in ("Resampling", "Reweighting", "Focal")
        for base, value, plain in zip(BASES, rows[method], rows["CE"], strict=True)
        if value < plain
    }
    named = {("Music", "Resampling", "WDN")}
    focal = {
        ("LabelMe", "Anno-Reg"),
        ("Music", "Anno-Reg"),
        ("CIFAR10-H", "Anno-Reg"),
        ("Music", "Crowdlayer"),
    }
    assert below == named | {(data, "Focal", base) for data, base in focal}


@line("D3", "44.9; 43.4; 40.9")
def _d3() -> None:
    majority, skene = (_dasc_2("cifar10h_lt", name) for name in ("mv_dl", "ds_dl"))
    assert (majority, skene, DASC_2["CIFAR10-H"]["CE"][0]) == (44.9, 43.4, 40.9)


@line("D4", "3, 4, 5, 12; 2, 4, 9, 12")
def _d4() -> None:
    printed = {name.partition("data1_label_")[2] for name in DATASETS["DASC"]} - {""}
    assert printed == {"2", "4", "9", "12"} and len({"3", "4", "5", "12"} - printed) == 2


@line("D5", "4.732; 1,158; 956 / 202 = 4.733; 4.761 and 4.704; five")
def _d5() -> None:
    rows = {(row["train_size"], row["truth_imbalance_ratio"]) for row in DATASETS["DASC"].values()}
    off = [
        (size, ratio)
        for size, ratio in rows
        if not any(near((size - few) / few, ratio, 3) for few in range(1, int(size)))
    ]
    assert off == [(1158, 4.732)] and len(rows) - 1 == 5
    assert [round((1158 - few) / few, 3) for few in (201, 202, 203)] == [4.761, 4.733, 4.704]


def _ratios(annotators: int, mean: float, ratio: float) -> tuple[list[int], list[int]]:
    """Returns which total numbers of annotations the printed mean allows, and which of them allow
    the printed ratio.
    """
    totals = [
        total
        for total in range(round(annotators * (mean - 1)), round(annotators * (mean + 1)))
        if near(total / annotators, mean, 1)
    ]
    return totals, [
        total
        for total in totals
        if any(near((total - rare) / rare, ratio, 3) for rare in range(1, total // 2))
    ]


@line(
    "D8",
    "6.530; 4.903; 3.104; 5,217; 6.539 and 6.528; 4,774 or 4,775; 3,393; 3.108 and 3.103; other"
    " three",
)
def _d8() -> None:
    annotators = {"data1": 15, "data2": 18}
    totals = {
        row["imbalance_ratio"]: _ratios(
            annotators[name[:5]], row["annotations_per_annotator"], row["imbalance_ratio"]
        )
        for name, row in DATASETS["DASC"].items()
    }
    off = {ratio: able for ratio, (able, fit) in totals.items() if not fit}
    assert off == {6.530: [5217], 4.903: [4774, 4775], 3.104: [3393]} and len(totals) == 6
    assert [round((5217 - rare) / rare, 3) for rare in (692, 693)] == [6.539, 6.528]
    assert [round((3393 - rare) / rare, 3) for rare in (826, 827)] == [3.108, 3.103]


# --------------------------------------------------------------------- ICED

_TABLE_2 = {
    "MV+LR": "mv_lr",
    "MV+DNN": "mv_dnn",
    "D&S+LR": "ds_lr",
    "D&S+DNN": "ds_dnn",
    "Crowd-Layer": "crowd_layer",
    "MBEM": "mbem",
    "CPC": "cpc",
    "ICED": "iced",
}
_WARM_UPS = {"Trad-I": "all", "Trad-II": "top", "ICED-w": "groups"}


def _iced(dataset: str, epochs: int = 0) -> dict[str, Pair]:
    """Returns accuracy and F1 of a dataset's rows in table 2, and table 3 where it is there."""
    warm = {title: f"warm_up={name},{epochs}_epochs/iced" for title, name in _WARM_UPS.items()}
    rows = pairs("iced_table2", _TABLE_2, dataset)
    if epochs:
        rows |= pairs("iced_table3", warm, dataset)
    return {title: row[0] for title, row in rows.items() if row[0]}


# By rows of the test set.
ICED = {1400: _iced("gisette_syn", 15), 332: _iced("usps_syn", 6), 1170: _iced("gsad_syn", 6)}
EMOTION = _iced("emotion")


def whole_numbers(rows: int, accuracy: float, f1: float) -> bool:
    """Whether some whole numbers of errors in two classes of equal size give both figures."""
    size = rows // 2
    for right in range(rows + 1):
        if near(Fraction(right, rows), accuracy, 4):
            errors = rows - right
            if any(
                near(macro_f1(rows, first, errors - first), f1, 4)
                for first in range(max(0, errors - size), min(size, errors) + 1)
            ):
                return True
    return False


def _mbem(rows: int, macro: float, single: float | None) -> None:
    accuracy, printed = ICED[rows]["MBEM"]
    least, one = least_f1(accuracy)
    assert near(least, macro, 4) and printed < least - 0.01
    # The formula against all ways to spread the errors.
    errors = round((1 - accuracy) * rows)
    spread = [
        macro_f1(rows, first, errors - first)
        for first in range(max(0, errors - rows // 2), min(rows // 2, errors) + 1)
    ]
    assert min(spread) == pytest.approx(least, abs=2e-3)
    if single is not None:
        assert near(one, single, 4) and printed < one


@line("I1", "0.7813; 0.5334; 0.7703; 0.7201")
def _i1() -> None:
    _mbem(332, 0.7703, 0.7201)


@line("I2", "0.6967; 0.4211; 0.6660; 0.5647")
def _i2() -> None:
    _mbem(1400, 0.6660, 0.5647)


@line("I3", "0.6826; 0.5577; 0.6470")
def _i3() -> None:
    _mbem(1170, 0.6470, None)


@line("I4", "0.7813 of 332; 0.6967 of 1,400; 0.6826 of 1,170; 30 pairs; 260 of 332 would be 0.7831")
def _i4() -> None:
    assert near(Fraction(260, 332), 0.7831, 4)
    off = [
        (rows, name)
        for rows, table in ICED.items()
        for name, (accuracy, _) in table.items()
        if not on_grid(accuracy, rows, 4)
    ]
    assert off == [(1400, "MBEM"), (332, "MBEM"), (1170, "MBEM")]
    others = [
        (rows, *pair)
        for rows, table in ICED.items()
        for name, pair in table.items()
        if name != "MBEM"
    ]
    assert len(others) == 30 and all(whole_numbers(*row) for row in others)


@line("I5", "0.4581 / 0.3142; 0.4504 / 0.3105; 536/585; 527/585; 49 and 58 times; 0.8376")
def _i5() -> None:
    for name, right, mistaken in (("Trad-I", 536, 49), ("Trad-II", 527, 58)):
        # Those of the first class that are not recalled are all that is called the second.
        assert 585 - right == mistaken
        accuracy, f1 = ICED[1170][name]
        assert near(Fraction(right, 1170), accuracy, 4)
        assert near(macro_f1(1170, 585 - right, 585), f1, 4)


@line("I6", "0.8311 / 0.8294; 0.8289 / 0.8277")
def _i6() -> None:
    assert EMOTION["D&S+LR"] == (0.8311, 0.8294) and EMOTION["MV+LR"] == (0.8289, 0.8277)
    assert all(
        ours > theirs for ours, theirs in zip(EMOTION["D&S+LR"], EMOTION["MV+LR"], strict=True)
    )


@line("I7", "3,500, 834 and 2,926")
def _i7() -> None:
    printed = {
        3500: (3080, 2800, 280, 1400),
        834: (734, 668, 66, 332),
        2926: (2575, 2341, 234, 1170),
    }
    for size, (train, majority, minority, test) in printed.items():
        held = int(0.2 * size)
        assert (size - held, int(0.1 * (size - held)), 2 * held) == (majority, minority, test)
        assert majority + minority == train


@line("I8", "0.6344; 0.5324; 571 of 900; 0.5780; six")
def _i8() -> None:
    accuracy, f1 = EMOTION["MBEM"]
    assert (accuracy, f1) == (0.6344, 0.5324) and near(Fraction(571, 900), accuracy, 4)
    assert near(least_f1(accuracy)[0], 0.5780, 4) and not whole_numbers(900, accuracy, f1)
    others = [pair for name, pair in EMOTION.items() if name != "MBEM"]
    assert len(others) == 6 and all(whole_numbers(900, *pair) for pair in others)


@line(
    "I9",
    "103 of 734; 14.0%; 2 (1 + 9 + 36) / 512 = 18.0%; 132 of 734; 2,043 of 3,080; 507 of "
    "2,575; 45.3 and 6.5%; right with probability 0.693 of seven, 0.647 of eleven; two surest "
    "of nine fit with 0.664",
)
def _i9() -> None:
    def surest(skills: list[float], levels: int = 3) -> float:
        """The probability that fewer than `levels` annotators stand against the rest."""
        chances = [1.0]
        for skill in skills:
            chances = [
                a * (1 - skill) + b * skill
                for a, b in zip([*chances, 0.0], [0.0, *chances], strict=True)
            ]
        return sum(chances[:levels]) + sum(chances[-levels:])

    coins = {annotators: surest([0.5] * annotators) for annotators in (7, 9, 11)}
    assert coins[9] == pytest.approx(2 * (1 + 9 + 36) / 512)
    assert round(coins[9] * 734) == 132
    assert near(103 / 734, 0.140, 3)
    assert near(coins[7], 0.453, 3)
    assert near(coins[11], 0.065, 3)
    assert coins[7] < 2043 / 3080
    assert coins[11] < 507 / 2575
    assert (
        103 / 734
        < coins[9]
        < surest([0.5] * 7 + [0.6] * 2)
        < surest([0.55] * 9)
        < surest([0.4 + 0.5 * i / 8 for i in range(9)])
    )
    # Levels of agreement all the same, if USPS-Syn's table counts two of them.
    assert near(surest([0.693] * 7), 2043 / 3080, 3) and near(surest([0.647] * 11), 507 / 2575, 3)
    assert near(surest([0.664] * 9, levels=2), 103 / 734, 3)


# --------------------------------------------------------------------- the page

# Lines without figures of a table. Their arithmetic is checked where the page writes it as an
# equation.
PLAIN = {"N9", "N10", "G3", "G6", "G7", "D6", "D7", "D9", "D10", "I10"}
EQUATION = re.compile(r"(?<![\w.])([\d,.]+(?: [-+x/] [\d,.]+)+) = (\d[\d,.]*\d)")
OPERATORS = {"+": operator.add, "-": operator.sub, "x": operator.mul, "/": operator.truediv}


def test_equations_of_the_page(repository: Path) -> None:
    equations = EQUATION.findall("\n".join(documented(repository).values()).replace(",", ""))
    assert len(equations) >= 15
    for terms, printed in equations:
        first, *rest = terms.split()
        value = float(first)
        for sign, term in zip(rest[::2], rest[1::2], strict=True):
            value = OPERATORS[sign](value, float(term))
        assert near(value, float(printed), len(printed.partition(".")[2])), f"{terms} = {printed}"


@pytest.mark.parametrize("name", LINES)
def test_line(name: str, repository: Path) -> None:
    quotes, check = LINES[name]
    text = documented(repository)[name]
    missing = [quote for quote in quotes if quote not in text]
    assert not missing, f"line {name} has no {missing}"
    check()


def test_every_line_has_a_test_and_every_test_a_line(repository: Path) -> None:
    assert set(documented(repository)) == set(LINES) | PLAIN
