"""Paired comparison of methods over seeds and folds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.evaluation.intervals import mean_interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

RUN_KEYS = ("dataset", "seed", "repeat", "fold")
COLUMNS = [
    *("dataset", "method", "reference", "difference", "low", "high", "p_value", "p_holm"),
    *("num_pairs", "wins", "ties"),
]


@dataclasses.dataclass(frozen=True)
class PairedComparison:
    """How much better the first method is than the second, over runs that both made.

    Attributes:
        difference: mean of first minus second.
        low, high: confidence interval of that mean; NaN for one pair.
        p_value: of the two-sided (corrected) t-test; NaN for one pair.
        num_pairs: how many runs both have.
        wins, ties: runs in which the first is better, or equal.
    """

    difference: float
    low: float
    high: float
    p_value: float
    num_pairs: int
    wins: int
    ties: int


def paired_comparison(
    first: ArrayLike, second: ArrayLike, *, test_train_ratio: float = 0.0, confidence: float = 0.95
) -> PairedComparison:
    """Compares two methods run by run.

    Args:
        first, second: `[n]` a metric of each method in the same runs; pairs with a NaN are left
            out.
        test_train_ratio: n_test / n_train for repeated cross-validation (1 / (folds - 1)), which
            makes this the corrected resampled t-test; 0 for independent runs, which makes it the
            plain paired t-test.
        confidence: of the interval.

    Where all differences are equal the interval has no width; p is then 1 for no difference and 0
    for any other.

    Raises:
        DataError: different lengths, or no pair.

    References:
        Nadeau and Bengio (2003), Inference for the generalization error, section 4; Bouckaert and
        Frank (2004).
    """
    ours, theirs = (np.asarray(values, dtype=np.float64).ravel() for values in (first, second))
    if len(ours) != len(theirs):
        raise DataError(
            f"comparison: expected as many values of both methods, received {len(ours)} and"
            f" {len(theirs)}"
        )
    differences = (ours - theirs)[~np.isnan(ours - theirs)]
    if not len(differences):
        raise DataError(
            "comparison: expected at least one run that both methods have, received none"
        )
    interval = mean_interval(differences, confidence, test_train_ratio=test_train_ratio)
    size = len(differences)
    p_value = math.nan
    if size > 1:
        error = float(differences.std(ddof=1)) * math.sqrt(1.0 / size + test_train_ratio)
        # Differences that are equal but for rounding have no spread to measure.
        if error <= 1e-12 * max(abs(interval.estimate), 1e-300):
            p_value = float(interval.estimate == 0.0)
        else:
            p_value = float(2 * stats.t.sf(abs(interval.estimate) / error, size - 1))
    return PairedComparison(
        interval.estimate,
        interval.low,
        interval.high,
        p_value,
        size,
        int((differences > 0).sum()),
        int((differences == 0).sum()),
    )


def holm(p_values: ArrayLike) -> np.ndarray:
    """Returns `[n]` p values adjusted for n comparisons by Holm's method; NaN stays and does not
    count.
    """
    p = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def compare_methods(
    results: pd.DataFrame,
    reference: str,
    *,
    metric: str = "accuracy",
    folds: int | None = None,
    confidence: float = 0.95,
    keys: Sequence[str] = RUN_KEYS,
) -> pd.DataFrame:
    """Compares every method with one of them over the runs that both finished, dataset by dataset.

    Args:
        results: a row a run, as in results.csv: columns `method`, the metric, and those of `keys`
            that there are.
        reference: the method to compare with.
        metric: the column to compare.
        folds: the number of folds where the rows are a (repeated) cross-validation's, None for
            independent seeds.
        confidence: of the intervals.
        keys: the columns that say which runs belong together.

    Returns:
        a row a dataset and method: `reference`, `difference` (method minus reference), `low`,
            `high`, `p_value`, `p_holm` (adjusted
        for the number of methods compared on the dataset), `num_pairs`, `wins`, `ties`. Methods
        without a common run are left out.

    Raises:
        UsageError: a column or the reference is missing.
        DataError: a method has two rows of one run.
    """
    frame, pair = _checked(results, reference, metric, keys)
    ratio = 1.0 / (folds - 1) if folds else 0.0
    rows = []
    for dataset, part in frame.groupby("dataset", sort=True):
        base = part[part["method"] == reference]
        mine = []
        for method, theirs in part[part["method"] != reference].groupby("method", sort=True):
            both = theirs.merge(base, on=pair or "dataset", suffixes=("", "_reference"))
            values = both[[metric, f"{metric}_reference"]].dropna().to_numpy(np.float64)
            if len(values):
                found = paired_comparison(*values.T, test_train_ratio=ratio, confidence=confidence)
                names = {"dataset": dataset, "method": method, "reference": reference}
                mine.append(names | dataclasses.asdict(found))
        adjusted = holm([row["p_value"] for row in mine])
        rows += [row | {"p_holm": p} for row, p in zip(mine, adjusted, strict=True)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _checked(
    results: pd.DataFrame, reference: str, metric: str, keys: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Returns the columns that are compared, with a dataset for each row, and those by which runs
    are paired within it.

    Raises:
        UsageError, DataError: see `compare_methods`.
    """
    present = [key for key in keys if key in results.columns]
    methods = set(results["method"]) if "method" in results.columns else set()
    for column in ("method", metric):
        if column not in results.columns:
            raise UsageError(
                f"comparison: expected a column {column!r}, received {list(results.columns)}"
            )
    if reference not in methods:
        raise UsageError(
            f"comparison: expected a reference among {sorted(methods)}, received {reference!r}"
        )
    frame = results.loc[:, ["method", metric, *present]].copy()
    # NaN (no fold) would pair with nothing.
    frame[present] = frame[present].astype(object).where(frame[present].notna(), "")
    if "dataset" not in present:
        frame["dataset"] = ""
    twice = frame[frame.duplicated(["method", "dataset", *present])]
    if len(twice):
        raise DataError(
            "comparison: expected one row a run and method, received two for"
            f" {twice.iloc[0].drop(metric).to_dict()}"
        )
    return frame, [key for key in present if key != "dataset"]
