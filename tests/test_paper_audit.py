"""docs/paper_audit.md, line by line: each test redoes the arithmetic of one line, and the figures
it uses stand in that line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

LINES: dict[str, tuple[tuple[str, ...], Callable[[], None]]] = {}


def line(name: str, *quotes: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Registers the check of a line, and what has to stand in it."""

    def register(check: Callable[[], None]) -> Callable[[], None]:
        LINES[name] = quotes, check
        return check

    return register


def documented(repository: Path) -> dict[str, str]:
    text = (repository / "docs" / "paper_audit.md").read_text(encoding="utf-8")
    return {
        match[1]: match[0] for match in re.finditer(r"^\| ([A-Z]\d+) \|.*$", text, re.MULTILINE)
    }


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
NEUCROWD_2 = {  # accuracy and AUC on the five sets
    "SoftProb": ((0.666, 0.720), (0.664, 0.734), None, (0.850, 0.921), (0.825, 0.940)),
    "EM": ((0.652, 0.717), (0.666, 0.732), (0.830, 0.923), (0.857, 0.918), (0.815, 0.949)),
    "GLAD": ((0.614, 0.664), (0.636, 0.701), (0.830, 0.923), (0.850, 0.911), (0.805, 0.948)),
    "Contrastive": ((0.580, 0.590), (0.600, 0.579), (0.820, 0.873), (0.850, 0.908), (0.855, 0.905)),
    "Triple": ((0.654, 0.695), (0.644, 0.683), (0.850, 0.883), (0.864, 0.916), (0.795, 0.927)),
    "TripleSemi": ((0.638, 0.678), (0.626, 0.641), (0.650, 0.628), (0.771, 0.795), (0.840, 0.920)),
    "Centered": ((0.594, 0.612), (0.594, 0.605), (0.760, 0.801), (0.843, 0.912), (0.850, 0.957)),
    "Lifted": ((0.588, 0.596), (0.598, 0.614), (0.740, 0.784), (0.836, 0.887), (0.860, 0.940)),
    "Contrastive+EM": (
        (0.596, 0.605),
        (0.612, 0.622),
        (0.800, 0.855),
        (0.850, 0.906),
        (0.865, 0.950),
    ),
    "Triple+EM": ((0.650, 0.661), (0.672, 0.772), (0.860, 0.918), (0.864, 0.918), (0.865, 0.954)),
    "TripleSemi+EM": (
        (0.616, 0.653),
        (0.640, 0.685),
        (0.745, 0.725),
        (0.750, 0.792),
        (0.850, 0.908),
    ),
    "Centered+EM": ((0.594, 0.600), (0.592, 0.620), (0.790, 0.794), (0.850, 0.918), (0.865, 0.948)),
    "Lifted+EM": ((0.588, 0.600), (0.600, 0.616), (0.720, 0.740), (0.857, 0.911), (0.860, 0.944)),
    "NeuCrowd": ((0.678, 0.729), (0.688, 0.751), (0.870, 0.898), (0.871, 0.928), (0.865, 0.927)),
}
NEUCROWD_3 = {
    "-SA-RA-SN": ((0.65, 0.712), (0.674, 0.662), (0.806, 0.87), (0.77, 0.838), (0.837, 0.908)),
    "-SA-RA": ((0.665, 0.713), (0.664, 0.72), (0.806, 0.882), (0.850, 0.921), (0.81, 0.904)),
    "-SA": ((0.67, 0.714), (0.68, 0.723), (0.822, 0.869), (0.857, 0.823), (0.884, 0.948)),
    "full": ((0.678, 0.729), (0.688, 0.751), (0.870, 0.898), (0.871, 0.928), (0.865, 0.927)),
}


@line("N1", "0.745", "223.5", "0.743", "0.747", "0.005", "thirteen")
def _n1() -> None:
    cells = [
        (name, data, pair[0])
        for name, row in NEUCROWD_2.items()
        for data, pair in zip(SETS, row, strict=True)
        if pair
    ]
    off = [(name, data) for name, data, accuracy in cells if not on_grid(accuracy, TEST_ROWS[data])]
    assert off == [("TripleSemi+EM", "Pre-K")]
    assert (
        near(Fraction(223, 300), 0.743, 3)
        and near(Fraction(224, 300), 0.747, 3)
        and abs(0.745 * 300 - 223.5) < 1e-9
    )
    printed = [row[2][0] for row in NEUCROWD_2.values() if row[2]]
    assert len(printed) == 13 and all(
        abs(value / 0.005 - round(value / 0.005)) < 1e-9 for value in printed
    )
    shares = [round(right / 300, 3) for right in range(301)]
    third = sum(abs(share / 0.005 - round(share / 0.005)) < 1e-6 for share in shares) / len(shares)
    assert third == pytest.approx(1 / 3, abs=0.01)


@line("N2", "0.806", "0.822", "241.8", "246.6", "0.807", "0.823", "0.820")
def _n2() -> None:
    for printed in (0.806, 0.822):
        assert not on_grid(printed, 300) and not on_grid(printed, 200)
    assert (
        near(Fraction(242, 300), 0.807, 3)
        and near(Fraction(247, 300), 0.823, 3)
        and near(Fraction(246, 300), 0.820, 3)
    )
    assert [value * 300 for value in (0.806, 0.822)] == pytest.approx([241.8, 246.6])


@line("N3", "0.665", "0.837", "0.884", "332.5", "167.4", "176.8")
def _n3() -> None:
    for printed, rows, right in ((0.665, 500, 332.5), (0.837, 200, 167.4), (0.884, 200, 176.8)):
        assert not on_grid(printed, rows) and printed * rows == pytest.approx(right)


@line("N4", "0.884 / 0.948", "0.865 / 0.927", "0.019", "0.021")
def _n4() -> None:
    better, full = NEUCROWD_3["-SA"][4], NEUCROWD_3["full"][4]
    assert better[0] - full[0] == pytest.approx(0.019) and better[1] - full[1] == pytest.approx(
        0.021
    )


@line(
    "N5",
    "5 of the 30",
    "7 in all",
    "0.674 to 0.664",
    "0.837 to 0.81",
    "0.908 to 0.904",
    "0.882 to 0.869",
    "0.921 to 0.823",
    "0.806",
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


@line("N6", "3 of 5", "0.772", "0.751", "0.923", "0.898", "0.957", "0.927")
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
    "N7",
    "3 of 5",
    "Pre-K 0.850 against 0.830",
    "Hotel 0.864 against 0.857",
    "Oral 0.860 against 0.825",
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


@line(
    "N8",
    "6 of the 25",
    "Syn2 (0.772)",
    "Pre-K (0.918)",
    "Oral (0.927)",
    "TripleSemi+EM",
    "three",
    "0.865",
)
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


@line("N9", "3 votes of 5", "0.6", "0.2")
def _n9() -> None:
    assert 3 / 5 == 0.6 and abs(1 - 2 * 3 / 5) == pytest.approx(0.2)


@line("N10", "0.826", "201 / 447 = 0.450", "0.800", "299 / 699 = 0.428", "447", "699")
def _n10() -> None:
    # Kappa and the counts themselves: tests/reproduction/test_suite_figures.py.
    assert (
        near(201 / 447, 0.450, 3)
        and near(299 / 699, 0.428, 3)
        and near(299 / 699, 0.43, 2)
        and 447 + 112 + 140 == 699
    )


# --------------------------------------------------------------------- RLL


@line("R1", "0.727 / 0.842", "24/33", "five times")
def _r1() -> None:
    share = Fraction(24, 33)
    assert near(share, 0.727, 3) and near(all_positive(share), 0.842, 3)


@line("R2", "0.719 / 0.836", "0.750 / 0.857", "23/32", "24/32")
def _r2() -> None:
    for share, accuracy, f1 in ((Fraction(23, 32), 0.719, 0.836), (Fraction(24, 32), 0.750, 0.857)):
        assert near(share, accuracy, 3) and near(all_positive(share), f1, 3)


@line(
    "R3",
    "0.677",
    "0.808",
    "472",
    "94",
    "0.818, 0.848, 0.879, 0.758, 0.697, 0.667, 0.606",
    "27, 28, 29, 25, 23, 22 and 20",
)
def _r3() -> None:
    share = 2.1 / 3.1
    assert near(share, 0.677, 3) and near(all_positive(share), 0.808, 3) and 472 // 5 == 94
    for printed, right in zip(
        (0.818, 0.848, 0.879, 0.758, 0.697, 0.667, 0.606), (27, 28, 29, 25, 23, 22, 20), strict=True
    ):
        assert near(Fraction(right, 33), printed, 3)


@line("R4", "0.730 / 0.842", "0.699 / 0.813", "0.757 / 0.855", "0.727", "0.758")
def _r4() -> None:
    assert not any(on_grid(printed, 33) for printed in (0.730, 0.699, 0.757))
    assert on_grid(0.727, 33) and on_grid(0.758, 33)


@line("R5", "0.876 / 0.922", "0.888 / 0.915", "0.725", "0.722")
def _r5() -> None:
    least, most = positives(0.876, 0.922)[0], positives(0.888, 0.915)[1]
    assert near(least, 0.725, 3) and near(most, 0.722, 3) and least > most


@line("R6", "1.8", "0.643", "0.725")
def _r6() -> None:
    assert near(1.8 / 2.8, 0.643, 3) and positives(0.876, 0.922)[0] > 1.8 / 2.8


@line("R7", "0.842 to 0.840", "0.922 to 0.915")
def _r7() -> None:
    f1 = {"Oral": (0.873, 0.922, 0.915), "Class": (0.842, 0.840, 0.920)}
    assert f1["Class"][1] < f1["Class"][0] and f1["Oral"][2] < f1["Oral"][1]


@line("R8", "RLL 0.871", "RLL+MLE 0.871")
def _r8() -> None:
    accuracy = {"RLL": 0.871, "RLL+MLE": 0.871, "RLL+Bayesian": 0.888}
    assert not accuracy["RLL+MLE"] > accuracy["RLL"]


RLL_1 = {  # accuracy and F1 on Oral and Class
    "SoftProb": ((0.815, 0.869), (0.758, 0.810)),
    "EM": ((0.843, 0.887), (0.606, 0.698)),
    "GLAD": ((0.831, 0.881), (0.697, 0.773)),
    "SiameseNet": ((0.802, 0.859), (0.719, 0.836)),
    "TripletNet": ((0.847, 0.889), (0.750, 0.857)),
    "RelationNet": ((0.843, 0.890), (0.730, 0.842)),
    "SiameseNet+EM": ((0.798, 0.856), (0.727, 0.842)),
    "SiameseNet+GLAD": ((0.815, 0.871), (0.727, 0.842)),
    "TripletNet+EM": ((0.843, 0.887), (0.727, 0.842)),
    "TripletNet+GLAD": ((0.843, 0.890), (0.667, 0.792)),
    "RelationNet+EM": ((0.860, 0.899), (0.727, 0.842)),
    "RelationNet+GLAD": ((0.854, 0.889), (0.730, 0.842)),
    "RLL": ((0.871, 0.901), (0.818, 0.880)),
    "RLL+MLE": ((0.871, 0.903), (0.848, 0.902)),
    "RLL+Bayesian": ((0.888, 0.915), (0.879, 0.920)),
}


@line(
    "R9",
    "12 of the 14",
    "178 rows",
    "more than 7",
    "0.854 and 0.871",
    "880",
    "five folds of 176",
    "0.802",
    "0.847",
    "142 and 150 of 177",
)
def _r9() -> None:
    tables_2_and_3 = (0.809, 0.831, 0.803, 0.826, 0.876)
    printed = sorted({row[0][0] for row in RLL_1.values()} | set(tables_2_and_3))
    hits = {rows: sum(on_grid(value, rows) for value in printed) for rows in range(10, 201)}
    assert len(printed) == 14 and hits.pop(178) == 12 and max(hits.values()) == 7
    assert [value for value in printed if not on_grid(value, 178)] == [0.802, 0.847]
    assert [value for value in printed if not on_grid(value, 880)] == [
        0.854,
        0.871,
    ] and 880 == 5 * 176
    assert near(Fraction(142, 177), 0.802, 3) and near(Fraction(150, 177), 0.847, 3)


@line("R10", "4 of 12 in accuracy", "4 of 12 in F1", "0.667", "0.750 and 0.697")
def _r10() -> None:
    above: dict[int, set[tuple[str, int]]] = {0: set(), 1: set()}
    for name, row in RLL_1.items():
        parts = [RLL_1[part] for part in name.split("+")] if name.endswith(("+EM", "+GLAD")) else []
        for data in (0, 1):
            for figure in (0, 1):
                if parts and row[data][figure] > max(part[data][figure] for part in parts):
                    above[figure].add((name, data))
    assert (
        above[0]
        == {
            ("RelationNet+EM", 0),
            ("RelationNet+GLAD", 0),
            ("SiameseNet+EM", 1),
            ("SiameseNet+GLAD", 1),
        }
        and len(above[1]) == 4
    )
    assert RLL_1["TripletNet+GLAD"][1][0] < min(RLL_1["TripletNet"][1][0], RLL_1["GLAD"][1][0])


@line("R11", "0.606", "0.802, 0.719", "0.758")
def _r11() -> None:
    first, second = ("SoftProb", "EM", "GLAD"), ("SiameseNet", "TripletNet", "RelationNet")
    assert (
        min(first, key=lambda name: RLL_1[name][1]) == "EM"
        and max(first, key=lambda name: RLL_1[name][1]) == "SoftProb"
    )
    assert all(min(second, key=lambda name: RLL_1[name][data]) == "SiameseNet" for data in (0, 1))
    assert not any(name.endswith("+SoftProb") for name in RLL_1)


# --------------------------------------------------------------------- CrowdInG

MUSIC = (75.41, 82.56, 81.42, 83.17, 83.38, 83.73, 83.14, 81.28, 82.24, 82.74)
LABELME = (82.12, 85.24, 82.74, 85.16, 85.42, 87.03, 85.89, 83.12, 84.34, 86.17)


def _off(printed: tuple[float, ...], answers: int) -> list[float]:
    return [value for value in printed if not on_grid(value / 100, answers, 4)]


@line(
    "G1",
    "75.41, 82.56, 81.42, 83.17, 83.38, 83.14, 81.28, 82.24, 82.74",
    "1/1500",
    "9 of the 10",
    "83.73",
)
def _g1() -> None:
    assert _off(MUSIC, 5 * 300) == [75.41, 82.56, 81.42, 83.17, 83.38, 83.14, 81.28, 82.24, 82.74]


@line("G2", "85.16, 87.03, 83.12, 86.17", "5,940", "six")
def _g2() -> None:
    assert _off(LABELME, 5 * 1188) == [85.16, 87.03, 83.12, 86.17] and len(LABELME) - 4 == 6


@line("G3", "8,687", "86.9 %")
def _g3() -> None:
    assert near(8687 / 10_000, 0.869, 3)


@line("G4", "3.0 x 10^4", "10^-4")
def _g4() -> None:
    rate, gradient = 1.0e4, 0.3
    mean, square = 0.1 * gradient, 0.001 * gradient**2  # Adam's first step, beta 0.9 and 0.999
    step = rate * (mean / 0.1) / ((square / 0.001) ** 0.5 + 1e-7)
    assert step == pytest.approx(rate, rel=1e-5)


@line("G5", "75.41", "55.1 +- 4.0", "20.3", "61 songs", "5 standard deviations")
def _g5() -> None:
    gap = 75.41 - 55.1
    assert near(gap, 20.3, 1) and round(gap / 100 * 300) == 61 and gap / 4.0 > 5


@line("G6", "20,600 / 8,687 = 2.371", "2.37")
def _g6() -> None:
    assert 103 * 200 == 20_600 and near(20_600 / 8687, 2.371, 3)


@line("G7", "0.875 x 44 = 38.5", "86.4 and 88.6", "35 of 44, 79.5 %", "35 of 40", "52 of 59")
def _g7() -> None:
    assert (
        0.875 * 44 == 38.5
        and not on_grid(0.875, 44)
        and near(38 / 44, 0.864, 3)
        and near(39 / 44, 0.886, 3)
    )
    assert near(35 / 44, 0.795, 3) and 35 / 40 == 0.875 and near(52 / 59, 0.88, 2)


@line("G8", "66.17", "67.23")
def _g8() -> None:
    cifar = {
        "Doctor Net": 67.23,
        "DL-CL+Self": 64.94,
        "DL-CL+GCN": 65.02,
        "DL-CL+GAN": 65.34,
        "DL-CL+InG": 66.17,
    }
    assert max(cifar, key=lambda name: cifar[name]) == "Doctor Net"


# --------------------------------------------------------------------- DASC

DASC_2 = {  # Anno-Reg, Crowdlayer, WDN
    "LabelMe": {
        "CE": (82.3, 84.0, 77.1),
        "Resampling": (83.2, 85.6, 80.6),
        "Reweighting": (83.6, 85.6, 78.8),
        "Focal": (81.7, 84.2, 78.4),
    },
    "Music": {
        "CE": (65.8, 66.3, 55.1),
        "Resampling": (66.3, 68.3, 51.6),
        "Reweighting": (67.1, 66.7, 56.2),
        "Focal": (63.4, 65.0, 57.5),
    },
    "CIFAR10-H": {
        "CE": (40.9, 45.6, 17.3),
        "Resampling": (43.9, 48.6, 18.2),
        "Reweighting": (41.4, 47.7, 17.6),
        "Focal": (39.7, 47.6, 17.9),
    },
}
BASES = ("Anno-Reg", "Crowdlayer", "WDN")


@line("D1", "10.1, 8.5 and 19.6", "55.3 - 45.6 = 9.7", "51.0 - 40.9", "36.9 - 17.3")
def _d1() -> None:
    gains = [
        after - before
        for after, before in zip((51.0, 55.3, 36.9), DASC_2["CIFAR10-H"]["CE"], strict=True)
    ]
    assert gains == pytest.approx([10.1, 9.7, 19.6])


@line("D2", "four more", "81.7 < 82.3", "63.4 < 65.8", "39.7 < 40.9", "65.0 < 66.3")
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


@line("D3", "44.9", "43.4", "40.9")
def _d3() -> None:
    assert min(44.9, 43.4) > DASC_2["CIFAR10-H"]["CE"][0]


@line("D4", "3, 4, 5, 12", "2, 4, 9, 12")
def _d4() -> None:
    assert len({3, 4, 5, 12} - {2, 4, 9, 12}) == 2


@line("D5", "4.732", "1,158", "956 / 202 = 4.733", "4.761 and 4.704", "five")
def _d5() -> None:
    rows = {(1258, 5.989), (1258, 10.541), (1258, 7.169), (1158, 4.732), (500, 3.587), (500, 5.024)}
    off = [
        (size, ratio)
        for size, ratio in rows
        if not any(near((size - few) / few, ratio, 3) for few in range(1, size))
    ]
    assert off == [(1158, 4.732)] and len(rows) - 1 == 5
    assert [round((1158 - few) / few, 3) for few in (201, 202, 203)] == [4.761, 4.733, 4.704]


@line("D6", "1,258 + 200", "1,158 + 300", "1,458", "500 + 200", "700")
def _d6() -> None:
    assert 1258 + 200 == 1158 + 300 == 1458 and 500 + 200 == 700


@line("D7", "1,688", "1,188", "2,688 - 1,000", "500")
def _d7() -> None:
    assert 2688 - 1000 == 1688 == 1188 + 500


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
    "6.530",
    "4.903",
    "3.104",
    "5,217",
    "6.539 and 6.528",
    "4,774 or 4,775",
    "3,393",
    "3.108 and 3.103",
    "other three",
)
def _d8() -> None:
    off = {(15, 347.8, 6.530): [5217], (15, 318.3, 4.903): [4774, 4775], (18, 188.5, 3.104): [3393]}
    for row, totals in off.items():
        assert _ratios(*row) == (totals, [])
    assert all(
        _ratios(*row)[1] for row in ((15, 348.1, 8.003), (15, 347.1, 7.073), (18, 193.9, 4.667))
    )
    assert [round((5217 - rare) / rare, 3) for rare in (692, 693)] == [6.539, 6.528]
    assert [round((3393 - rare) / rare, 3) for rare in (826, 827)] == [3.108, 3.103]


@line(
    "D9",
    "439 / 177 = 2.480",
    "381 / 217 = 1.756",
    "75 / 63 = 1.190",
    "188 / 122 = 1.541",
    "37 / 25 = 1.480",
    "154 / 89 = 1.730",
)
def _d9() -> None:
    pairs = {439 / 177: 2.479, 381 / 217: 1.753, 75 / 63: 1.188, 188 / 122: 1.536, 37 / 25: 1.461}
    assert [round(ours, 3) for ours in pairs] == [2.480, 1.756, 1.190, 1.541, 1.480]
    assert not any(near(ours, printed, 3) for ours, printed in pairs.items()) and near(
        154 / 89, 1.730, 3
    )


@line("D10", "900 and 100", "0.1 and 0.9")
def _d10() -> None:
    inverse = [1 / 900, 1 / 100]
    assert [value / sum(inverse) for value in inverse] == pytest.approx([0.1, 0.9])


# --------------------------------------------------------------------- ICED

ICED = {  # rows of the test set; accuracy and F1 of tables 2 and 3
    1400: {
        "MV+LR": (0.8179, 0.8175),
        "MV+DNN": (0.8000, 0.7979),
        "D&S+LR": (0.7671, 0.7592),
        "D&S+DNN": (0.7636, 0.7562),
        "Crowd-Layer": (0.8200, 0.8167),
        "MBEM": (0.6967, 0.4211),
        "CPC": (0.8021, 0.8020),
        "ICED": (0.8521, 0.8512),
        "Trad-I": (0.8014, 0.7989),
        "Trad-II": (0.6079, 0.5372),
        "ICED-w": (0.8186, 0.8126),
    },
    332: {
        "MV+LR": (0.8494, 0.8480),
        "MV+DNN": (0.8735, 0.8732),
        "D&S+LR": (0.8193, 0.8136),
        "D&S+DNN": (0.7530, 0.7386),
        "Crowd-Layer": (0.9006, 0.8998),
        "MBEM": (0.7813, 0.5334),
        "CPC": (0.8313, 0.8311),
        "ICED": (0.9036, 0.9030),
        "Trad-I": (0.7500, 0.7333),
        "Trad-II": (0.7922, 0.7828),
        "ICED-w": (0.8373, 0.8329),
    },
    1170: {
        "MV+LR": (0.7094, 0.6872),
        "MV+DNN": (0.8333, 0.8327),
        "D&S+LR": (0.6974, 0.6716),
        "D&S+DNN": (0.8085, 0.8082),
        "Crowd-Layer": (0.8342, 0.8295),
        "MBEM": (0.6826, 0.5577),
        "CPC": (0.6154, 0.5917),
        "ICED": (0.8872, 0.8865),
        "Trad-I": (0.4581, 0.3142),
        "Trad-II": (0.4504, 0.3105),
        "ICED-w": (0.8376, 0.8332),
    },
}


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


@line("I1", "0.7813", "0.5334", "0.7703", "0.7201")
def _i1() -> None:
    _mbem(332, 0.7703, 0.7201)


@line("I2", "0.6967", "0.4211", "0.6660", "0.5647")
def _i2() -> None:
    _mbem(1400, 0.6660, 0.5647)


@line("I3", "0.6826", "0.5577", "0.6470")
def _i3() -> None:
    _mbem(1170, 0.6470, None)


@line(
    "I4",
    "0.7813 of 332",
    "0.6967 of 1,400",
    "0.6826 of 1,170",
    "30 pairs",
    "260 of 332 would be 0.7831",
)
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


@line("I5", "0.4581 / 0.3142", "0.4504 / 0.3105", "536/585", "527/585", "0.8376")
def _i5() -> None:
    for name, right in (("Trad-I", 536), ("Trad-II", 527)):
        accuracy, f1 = ICED[1170][name]
        assert near(Fraction(right, 1170), accuracy, 4) and near(
            macro_f1(1170, 585 - right, 585), f1, 4
        )


@line("I6", "0.8311 / 0.8294", "0.8289 / 0.8277")
def _i6() -> None:
    assert (0.8311, 0.8294) > (0.8289, 0.8277)


@line("I7", "3,500, 834 and 2,926")
def _i7() -> None:
    printed = {
        3500: (3080, 2800, 280, 1400),
        834: (734, 668, 66, 332),
        2926: (2575, 2341, 234, 1170),
    }
    for size, (train, majority, minority, test) in printed.items():
        held = int(0.2 * size)
        assert (size - held, int(0.1 * (size - held)), 2 * held) == (
            majority,
            minority,
            test,
        ) and majority + minority == train


@line("I8", "0.6344", "0.5324", "571 of 900", "0.5780", "six")
def _i8() -> None:
    emotion = {
        "MV+LR": (0.8289, 0.8277),
        "MV+DNN": (0.7944, 0.7901),
        "D&S+LR": (0.8311, 0.8294),
        "D&S+DNN": (0.7811, 0.7749),
        "Crowd-Layer": (0.8300, 0.8273),
        "ICED": (0.8644, 0.8640),
    }
    assert (
        near(Fraction(571, 900), 0.6344, 4)
        and near(least_f1(0.6344)[0], 0.5780, 4)
        and not whole_numbers(900, 0.6344, 0.5324)
    )
    assert len(emotion) == 6 and all(whole_numbers(900, *pair) for pair in emotion.values())


@line(
    "I9",
    "103 of 734",
    "14.0 %",
    "2 (1 + 9 + 36) / 512 = 18.0 %",
    "132 of 734",
    "2,043 of 3,080",
    "507 of 2,575",
    "45.3 and 6.5 %",
)
def _i9() -> None:
    def top_three(skills: list[float]) -> float:
        """The probability that at most two annotators stand against the rest."""
        chances = [1.0]
        for skill in skills:
            chances = [
                a * (1 - skill) + b * skill
                for a, b in zip([*chances, 0.0], [0.0, *chances], strict=True)
            ]
        return sum(chances[:3]) + sum(chances[-3:])

    coins = {annotators: top_three([0.5] * annotators) for annotators in (7, 9, 11)}
    assert (
        coins[9] == pytest.approx(2 * (1 + 9 + 36) / 512)
        and round(coins[9] * 734) == 132
        and near(103 / 734, 0.140, 3)
    )
    assert (
        near(coins[7], 0.453, 3)
        and near(coins[11], 0.065, 3)
        and coins[7] < 2043 / 3080
        and coins[11] < 507 / 2575
    )
    assert (
        103 / 734
        < coins[9]
        < top_three([0.5] * 7 + [0.6] * 2)
        < top_three([0.55] * 9)
        < top_three([0.4 + 0.5 * i / 8 for i in range(9)])
    )


@line("I10", "668 and 66 of 734")
def _i10() -> None:
    assert 668 + 66 == 734


# --------------------------------------------------------------------- the page


@pytest.mark.parametrize("name", LINES)
def test_line(name: str, repository: Path) -> None:
    quotes, check = LINES[name]
    text = documented(repository)[name]
    missing = [quote for quote in quotes if quote not in text]
    assert not missing, f"line {name} has no {missing}"
    check()


def test_every_line_has_a_test_and_every_test_a_line(repository: Path) -> None:
    assert set(documented(repository)) == set(LINES)
