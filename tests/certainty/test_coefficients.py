"""Agreement coefficients against published examples and the values of other packages."""

from __future__ import annotations

import csv
import itertools

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.annotations import Annotations, agreement, statistics
from neucrowd_tf.annotations.agreement import Scale, agreement_coefficients, agreement_weights
from neucrowd_tf.certainty import agreement_intervals as agreement_intervals_module
from neucrowd_tf.certainty.agreement_intervals import agreement_intervals
from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.agreement_tables import agreement_csvs, pairs
from tests.cases import cases, raises
from tests.crowds import array_of, krippendorff_labels

# Fleiss (1971), table 1: votes of six psychiatrists on 30 patients for five diagnoses.
FLEISS = """
00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006
"""


def drawn(
    seed: int, items: int, annotators: int, classes: int, missing: float, skill: float
) -> np.ndarray:
    """Returns `[items, annotators]` class codes, -1 for missing."""
    rng = default_rng(seed)
    truth = rng.integers(classes, size=items)
    others = rng.integers(classes, size=(items, annotators))
    labels = np.where(rng.random((items, annotators)) < skill, truth[:, None], others)
    labels[rng.random((items, annotators)) < missing] = -1
    return labels


# Each crowd's labels, and the numbers that its classes are.
CROWDS = {
    name: (drawn(*settings), values)
    for name, settings, values in cases("""
["two", [1, 30, 4, 2, 0.3, 0.7], [0, 1]],
["three", [2, 25, 5, 3, 0.4, 0.6], [1, 2, 3]],
["four", [3, 40, 3, 4, 0.25, 0.8], [0, 1, 2, 4]],
["five", [4, 20, 8, 5, 0.5, 0.5], [1, 2, 3, 4, 5]],
["halves", [5, 30, 6, 4, 0.4, 0.75], [1, 1.5, 2, 3.5]],
["many", [6, 50, 10, 10, 0.7, 0.6], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
["rare", [7, 60, 2, 3, 0.2, 0.9], [-1, 0, 2]]
""")
} | {"krippendorff": (krippendorff_labels(), [1, 2, 3, 4, 5])}
# Percent agreement, Fleiss' kappa and Gwet's AC of irrCAC 0.4.4 (weights identity, ordinal and
# quadratic), Krippendorff's alpha of krippendorff 0.9.0.
REFERENCE = """
krippendorff nominal 0.8181818 0.7611693 0.7434211 0.7754441
krippendorff ordinal 0.8181818 0.8502062 0.8153875 0.8989398
krippendorff interval 0.8181818 0.8649351 0.8491071 0.9140007
two nominal 0.8472222 0.6837481 0.6650718 0.7044409
two ordinal 0.8472222 0.6837481 0.6650718 0.7044409
two interval 0.8472222 0.6837481 0.6650718 0.7044409
three nominal 0.4742424 0.2082663 0.2213501 0.2129032
three ordinal 0.4742424 0.0492327 -0.0029411 0.0829172
three interval 0.4742424 0.0081812 -0.0099548 0.0506099
four nominal 0.7927928 0.7230184 0.7146064 0.723958
four ordinal 0.7927928 0.793989 0.7749379 0.7849882
four interval 0.7927928 0.8321737 0.7991983 0.8240987
five nominal 0.3735714 0.2119951 0.2225406 0.2181968
five ordinal 0.3735714 0.191063 0.1940788 0.2197943
five interval 0.3735714 0.1955828 0.1991541 0.2281729
halves nominal 0.7064103 0.6050644 0.6113782 0.6096943
halves ordinal 0.7064103 0.5226115 0.551749 0.5351714
halves interval 0.7064103 0.4334441 0.4496155 0.460583
many nominal 0.4287879 0.3522232 0.3546043 0.3667424
many ordinal 0.4287879 0.2675518 0.2698322 0.3759968
many interval 0.4287879 0.2630167 0.3058589 0.3801634
rare nominal 0.8648649 0.7957613 0.7982311 0.7980567
rare ordinal 0.8648649 0.7875528 0.7964984 0.7838447
rare interval 0.8648649 0.8033512 0.809648 0.7944322
"""
# Cohen's kappa of the first two annotators: items that both labelled, and scikit-learn 1.9.1's
# value, which is statsmodels 0.15.0's too.
COHEN = """
krippendorff 9 0.8448276
two 13 0.6829268
three 8 0.4285714
four 25 0.7300216
five 6 0.3793103
halves 10 0.5588235
many 8 0.0344828
rare 37 0.7958057
"""


def votes_of(name: str) -> np.ndarray:
    labels, values = CROWDS[name]
    return np.stack([(labels == code).sum(axis=1) for code in range(len(values))], axis=1)


def fleiss() -> np.ndarray:
    return np.array([[int(count) for count in row] for row in FLEISS.split()])


@pytest.mark.parametrize("line", REFERENCE.strip().splitlines())
def test_coefficients_equal_those_of_other_packages(line: str) -> None:
    name, scale, *expected = line.split()
    result = agreement_coefficients(votes_of(name), scale, CROWDS[name][1])  # type: ignore[arg-type]
    assert list(result) == ["percent", "fleiss", "krippendorff", "gwet"]
    assert list(result.values()) == pytest.approx(list(map(float, expected)), abs=1e-6)


def test_published_examples() -> None:
    alphas = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849}  # Krippendorff (2011)
    for scale, alpha in alphas.items():
        result = agreement_coefficients(votes_of("krippendorff"), scale)  # type: ignore[arg-type]
        assert result["krippendorff"] == pytest.approx(alpha, abs=5e-4)
    # Gwet (2014): AC1 of the same labels.
    assert agreement_coefficients(votes_of("krippendorff"))["gwet"] == pytest.approx(
        0.775, abs=5e-4
    )
    # Fleiss (1971), and its section 4 by diagnosis; statsmodels has the same values.
    assert agreement_coefficients(fleiss())["fleiss"] == pytest.approx(0.4302445, abs=1e-6)
    by_class = agreement.class_agreement(fleiss())
    kappas = [0.2448, 0.2448, 0.5200, 0.4711, 0.5661]
    assert [row["fleiss"] for row in by_class] == pytest.approx(kappas, abs=5e-5)
    # A second label is the first one again for so many: sum n (n - 1) / (5 sum n).
    first = fleiss()[:, 0]
    assert by_class[0]["percent"] == pytest.approx((first * (first - 1)).sum() / (5 * first.sum()))


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_votes_have_the_value_of_the_labels(scale: Scale) -> None:
    votes = votes_of("four")
    crowds = (Annotations.from_dense(CROWDS["four"][0]), Annotations.from_votes(votes))
    first, second = (
        agreement_coefficients(crowd.vote_counts(), scale, CROWDS["four"][1]) for crowd in crowds
    )
    assert first == second
    described = [statistics.describe(crowd) for crowd in crowds]
    for one in described:
        assert one["kappa"] == agreement_coefficients(votes)["fleiss"]
        assert one["kappa"] == agreement.fleiss_kappa(votes)


@pytest.mark.parametrize("line", COHEN.strip().splitlines())
def test_pairs_equal_cohens_kappa_of_other_packages(line: str) -> None:
    name, shared, kappa = line.split()
    found = {(p.first, p.second): p for p in pairs(Annotations.from_dense(CROWDS[name][0]), 1)}
    assert found[0, 1].shared == int(shared)
    assert found[0, 1].kappa == pytest.approx(float(kappa), abs=1e-6)


def test_items_by_loops() -> None:
    shares = []
    for row in votes_of("five"):
        labels = np.repeat(np.arange(5), row)
        same = [a == b for a, b in itertools.permutations(labels, 2)]
        shares.append(np.mean(same) if same else np.nan)
    np.testing.assert_allclose(agreement.item_agreement(votes_of("five")), shares)


def test_weights_by_hand() -> None:
    assert agreement_weights(3, "ordinal")[0].tolist() == pytest.approx([1, 2 / 3, 0])
    assert agreement_weights(3, "interval")[0].tolist() == pytest.approx([1, 0.75, 0])
    assert agreement_weights(3, "interval", [0, 3, 4])[0, 1] == pytest.approx(1 - 9 / 16)


def test_intervals_hold_the_estimate_and_repeat() -> None:
    first, again = (agreement_intervals(votes_of("five"), "ordinal", seed=1) for _ in range(2))
    assert first == again
    for estimate in first.values():
        assert estimate.low < estimate.value < estimate.high


def test_single_labels_are_an_error() -> None:
    raises(DataError, "two labels", agreement_intervals, np.eye(3, dtype=int))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("classes", [1, 3])
def test_labels_of_one_class_have_no_kappa(classes: int) -> None:
    result = agreement_intervals(np.eye(classes, dtype=int)[np.zeros(5, dtype=int)] * 2)
    assert tuple(result["percent"]) == (1, 1, 1)
    assert np.isnan([*result["fleiss"], *result["krippendorff"]]).all()
    assert np.isnan(result["gwet"].value) == (classes == 1)


def test_tables_of_agreement() -> None:
    labels, _ = CROWDS["krippendorff"]
    crowd = Annotations.from_dense(labels, class_names=list("12345"), annotator_names=list("ABCD"))
    files = {
        name: list(csv.DictReader(text.splitlines()))
        for name, text in agreement_csvs(crowd, "ordinal").items()
    }
    assert list(files) == ["coefficients.csv", "classes.csv", "items.csv", "pairs.csv"]
    values = {row["coefficient"]: row for row in files["coefficients.csv"]}
    assert float(values["Krippendorff's alpha"]["value"]) == pytest.approx(0.8153875, abs=1e-6)
    assert {row["scale"] for row in files["coefficients.csv"]} == {"ordinal"}
    assert [row["num_labels"] for row in files["classes.csv"]] == ["9", "13", "11", "5", "3"]
    assert [row["percent"] for row in files["items.csv"]][5:7] == ["0", "1"]
    assert files["items.csv"][11]["percent"] == ""  # a single label
    assert {(row["annotator_1"], row["annotator_2"]) for row in files["pairs.csv"]} == set(
        itertools.combinations("ABCD", 2)
    )
    assert "pairs.csv" not in agreement_csvs(Annotations.from_votes(crowd.vote_counts()))


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_equal_rows_may_be_counted_instead_of_repeated(scale: Scale) -> None:
    rows = array_of("3 0 0; 1 1 1; 0 1 0; 0 0 2; 0 4 0")
    times = array_of("2 3 1 0 4")
    counted = agreement_coefficients(rows, scale, times=times)
    assert counted == pytest.approx(agreement_coefficients(np.repeat(rows, times, axis=0), scale))


def test_resamples_cost_as_much_as_different_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def spied(votes: np.ndarray, *options: object, **more: object) -> dict[str, float]:
        sizes.append(len(votes))
        return agreement_coefficients(votes, *options, **more)

    monkeypatch.setattr(agreement_intervals_module, "agreement_coefficients", spied)
    votes = np.repeat([[3, 0], [2, 1], [0, 3]], 50, axis=0)
    estimate = agreement_intervals(votes)["fleiss"]
    assert estimate.low < estimate.value < estimate.high
    assert sizes[0] == 150 and set(sizes[1:]) == {3}
