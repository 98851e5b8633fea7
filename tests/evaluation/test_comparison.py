"""Paired comparison: scipy's paired t-test, the correction by hand, tables with gaps."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.evaluation import compare_methods, paired_comparison
from neucrowd_tf.evaluation.comparison import holm


def test_plain_comparison_is_the_paired_t_test() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(0.85, 0.03, 8), rng.normal(0.82, 0.03, 8)
    found = paired_comparison(ours, theirs)
    expected = stats.ttest_rel(ours, theirs)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert found.difference == pytest.approx((ours - theirs).mean())
    assert (found.num_pairs, found.wins, found.ties) == (8, int((ours > theirs).sum()), 0)
    turned = paired_comparison(theirs, ours)
    assert (turned.difference, turned.low, turned.high) == pytest.approx(
        (-found.difference, -found.high, -found.low)
    )


def test_corrected_resampled_t_test_by_hand() -> None:
    # Differences 1, 2, 3 (mean 2, sd 1), 3 folds: error sqrt(1/3 + 1/2) = .912871, t = 2.190890, p
    # = 2 P(T_2 > t) = .159892 (for two degrees of freedom P(T > t) = (1 - t / sqrt(2 + t^2)) / 2,
    # t^2 = 4.8: 1 - sqrt(4.8 / 6.8) = .159832).
    found = paired_comparison([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], test_train_ratio=0.5)
    assert found.p_value == pytest.approx(1 - math.sqrt(4.8 / 6.8))
    assert found.high - 2 == pytest.approx(4.302653 * math.sqrt(5 / 6), rel=1e-6)


def test_corrected_test_keeps_its_level_where_the_plain_one_does_not() -> None:
    # Two methods that are equally good, scored by 5 x 5 cross-validation: a share of the spread is
    # common to all folds of a training sample, which the plain test takes for evidence.
    rng = np.random.default_rng(2)
    plain = corrected = 0
    for _ in range(300):
        scores = rng.normal(0, 1, 25) + rng.normal(0, math.sqrt(0.25))
        plain += paired_comparison(scores, np.zeros(25)).p_value < 0.05
        corrected += paired_comparison(scores, np.zeros(25), test_train_ratio=0.25).p_value < 0.05
    assert plain > 60
    assert corrected < 30


def test_no_spread_one_pair_and_gaps() -> None:
    same = paired_comparison([0.5, 0.6], [0.5, 0.6])
    assert (same.difference, same.p_value, same.ties) == (0.0, 1.0, 2)
    assert paired_comparison([0.7, 0.8], [0.6, 0.7]).p_value == 0.0  # equal but for rounding
    assert math.isnan(paired_comparison([0.7], [0.6]).p_value)
    assert paired_comparison([0.7, math.nan, 0.9], [0.6, 0.5, 0.7]).num_pairs == 2
    with pytest.raises(DataError, match="at least one run"):
        paired_comparison([math.nan], [1.0])
    with pytest.raises(DataError, match="2 and 1"):
        paired_comparison([1.0, 2.0], [1.0])


def test_holm_by_hand() -> None:
    # Sorted .01 .02 .04 times 3 2 1: .03 .04 .04.
    np.testing.assert_allclose(holm([0.04, math.nan, 0.01, 0.02]), [0.04, math.nan, 0.03, 0.04])


def test_table_pairs_runs_by_seed_and_fold() -> None:
    rows = [
        {
            "dataset": d,
            "method": m,
            "seed": s,
            "repeat": r,
            "fold": f,
            "accuracy": base + 0.01 * s + 0.02 * f + 0.001 * r * s,
        }
        for d in ("a", "b")
        for m, base in (("mv_lr", 0.7), ("rll", 0.75), ("triplet", 0.71))
        for s in range(3)
        for r in range(2)
        for f in range(2)
        if not (d == "b" and m == "triplet")
    ]
    results = pd.DataFrame(rows).sample(frac=1, random_state=0)
    results.loc[
        (results["method"] == "rll") & (results["seed"] == 2) & (results["dataset"] == "a"),
        "accuracy",
    ] = np.nan
    table = compare_methods(results, "mv_lr", folds=2).set_index(["dataset", "method"])
    assert list(table.index) == [("a", "rll"), ("a", "triplet"), ("b", "rll")]
    assert table.loc[("a", "rll"), "num_pairs"] == 8
    assert table.loc[("a", "triplet"), "num_pairs"] == 12
    np.testing.assert_allclose(table["difference"], [0.05, 0.01, 0.05])
    assert table.loc[("a", "rll"), "wins"] == 8


def test_table_of_seeds_alone_with_empty_fold_columns() -> None:
    results = pd.DataFrame(
        {
            "dataset": "a",
            "method": ["x", "x", "y", "y"],
            "seed": [0, 1, 1, 0],
            "fold": np.nan,
            "auc": [0.1, 0.2, 0.5, 0.3],
        }
    )
    table = compare_methods(results, "x", metric="auc")
    assert table.loc[0, "difference"] == pytest.approx(0.25)
    assert table.loc[0, "num_pairs"] == 2
    with pytest.raises(DataError, match="received two"):
        compare_methods(pd.concat([results, results]), "x", metric="auc")
    with pytest.raises(UsageError, match="'z'"):
        compare_methods(results, "z", metric="auc")
    with pytest.raises(UsageError, match="'accuracy'"):
        compare_methods(results, "x")
