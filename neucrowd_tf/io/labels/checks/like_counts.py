"""Numbers in a wide table or a matrix that look like counts of votes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtr, stdtr

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.tables.column_names import ANSWERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

VOTES = "votes_"
PERCENT_ROWS, SUM_ROWS = 3, 6  # whose sums are not all the same number, of percent and of any
MANY_ROWS = 10  # whose sums are not all the same by chance
LEAST_ROWS = 6  # of which anything is told
LITTLE = 1.2  # times the agreement by chance
SLIGHT = 0.2  # of the agreement beyond chance (Fleiss' kappa)
BEYOND = 1.645  # deviations: one side, 5 %
SOME_CELLS = 6  # of 0, and the share of a table, that may be told from a class
SOME_SHARE = 0.08
SELDOM = 1e-3  # how often what is refused or told may be chance
DOUBTFUL = 0.05
FEW_ROWS = 25  # that show little beyond chance: there, what is as likely as not is told
LIKELY = 0.5
PERHAPS = 0.3  # in tables so small that many of labels are as unlikely
MANY_VALUES = 8  # that labels of annotators who agree no more than by chance hardly have


def check_no_counts(
    matrix: NDArray[np.int64],
    missing: NDArray[np.bool_],
    columns: list[str],
    source: str | Path,
    expected: str = "a label in each cell",
) -> None:
    """Raises DataError for rows of numbers, 0 where there are none, that look like a vote count a
    class (`like_counts`); tells of those that may be, and of zeros that may be no labels.
    """
    if what := like_counts(matrix, missing, columns):
        named = ",".join(VOTES + name for name in columns[:3] or "01")
        named += ",..." if matrix.shape[1] > min(len(columns), 3) else ""
        # A full table of codes from 1 may be one of two classes and more.
        zeros = not missing.any() and matrix.min(initial=1) == 0 and len(np.unique(matrix)) > 2
        raise DataError(
            f"{source}: expected {expected}, received {what}, as counts of votes do; if they are,"
            f" write a CSV with the columns task,{named}, if not, --classes=... names the classes"
            + ", --missing=0 says that 0 is no label"
            * bool(zeros)
        )
    tell_zeros(matrix, missing, source)
    tell_counts(matrix, missing, source)


def tell_zeros(matrix: NDArray[np.int64], missing: NDArray[np.bool_], source: str | Path) -> None:
    """Warns of a full table of codes most of which are 0, in no more agreement than chance makes,
    or some of which are and the others agree: where classes are numbered from 1, 0 often stands
    for none.
    """
    if _zeros_are_none(matrix, missing) or _zeros_stray(matrix, missing):
        warnings.warn(
            f"{source}: {(matrix == 0).sum()} of {matrix.size} cells are 0, whatever the others of"
            " their row are, and none is empty or -1; 0 is taken for a class, --missing=0 says that"
            f" it is no label (columns {VOTES}<class> are counts of votes)",
            stacklevel=5,
        )


def _zeros_are_none(matrix: NDArray[np.int64], missing: NDArray[np.bool_]) -> bool:
    """Whether most cells of a full table of codes are 0, in no more agreement than by chance."""
    rows, width = matrix.shape
    if missing.any() or rows < MANY_ROWS or width < 2 or len(np.unique(matrix)) < 3:
        return False
    zeros = (matrix == 0).sum(axis=1)
    share = zeros.sum() / matrix.size
    if share <= 0.5 or share == 1 or matrix.min() < 0:
        return False
    alike = (zeros * (zeros - 1) + (width - zeros) * (width - zeros - 1)).sum()
    chance = share**2 + (1 - share) ** 2
    agreement = (alike / (matrix.size * (width - 1)) - chance) / (1 - chance)
    return bool(agreement < SLIGHT)


def _zeros_stray(matrix: NDArray[np.int64], missing: NDArray[np.bool_]) -> bool:
    """Whether some cells of a full table of codes are 0 in no more agreement than by chance, while
    the other codes agree: not so of a class that is told from the others.
    """
    zeros = matrix == 0
    if missing.any() or len(matrix) < MANY_ROWS or matrix.min() < 0 or len(np.unique(matrix)) < 3:
        return False
    if zeros.sum() < SOME_CELLS or zeros.mean() < SOME_SHARE:
        return False
    apart = _kappa(matrix, zeros) - _kappa(zeros, missing)
    return (
        apart > 0.25
        and _kappa(zeros, missing) < 0.15
        and _agreement(zeros, missing)[1] < 1.5 * BEYOND
        and _agreement(matrix, zeros)[1] > BEYOND
    )


def _kappa(matrix: NDArray[Any], missing: NDArray[np.bool_]) -> float:
    """Returns the agreement of a row's cells beyond chance (Fleiss' kappa), 0 without any pair."""
    there = ~missing
    in_row = there.sum(axis=1)
    pairs = float((in_row * (in_row - 1)).sum())
    equal = chance = 0.0
    for value in np.unique(matrix[there]):
        here = ((matrix == value) & there).sum(axis=1)
        equal += float((here * (here - 1)).sum())
        chance += float(here.sum() / in_row.sum()) ** 2
    return (equal / pairs - chance) / (1 - chance) if pairs and chance < 1 else 0.0


def _consistency(matrix: NDArray[Any], missing: NDArray[np.bool_]) -> float:
    """Returns which part of the numbers' variance is between rows, as most is of ratings (one-way
    intraclass correlation), 0 without any.
    """
    there = ~missing
    several = there.sum(axis=1) > 1
    values, there = np.where(there, matrix, 0)[several].astype(np.float64), there[several]
    sizes = there.sum(axis=1)
    if not len(values) or sizes.sum() <= len(values) + 1 or len(values) < 2:
        return 0.0
    means = values.sum(axis=1) / sizes
    mean = values.sum() / sizes.sum()
    within = float((((values - means[:, None]) * there) ** 2).sum() / (sizes.sum() - len(values)))
    between = float((sizes * (means - mean) ** 2).sum() / (len(values) - 1))
    size = float(sizes.mean())
    total = between + (size - 1) * within
    return (between - within) / total if total else 0.0


def tell_counts(matrix: NDArray[np.int64], missing: NDArray[np.bool_], source: str | Path) -> None:
    """Tells of numbers that may be counts of votes."""
    if len(matrix) < LEAST_ROWS or matrix.min(initial=0) < 0 or matrix.shape[1] < 2:
        return
    blanks = bool(missing.any() and (matrix[~missing] > 0).all())
    told = blanks and _are_parts(matrix, missing)  # of a few votes many are 1, which agree
    many = len(np.unique(matrix[~missing])) >= MANY_VALUES
    agree = _agreement(matrix, missing)[1] >= BEYOND and _kappa(matrix, missing) >= SLIGHT / 2
    if not (told or agree or _zeros_are_none(matrix, missing)):
        few = PERHAPS if len(matrix) < MANY_ROWS else LIKELY
        likely = few if len(matrix) < FEW_ROWS else DOUBTFUL
        alone = (~missing).sum(axis=1).max(initial=0) < 2  # a number a row
        parts = blanks and (alone or _are_parts(matrix, missing, likely))
        told = parts or _spread(matrix, missing)[1] < likely
        apart = _consistency(matrix, missing)
        told = told or (many and apart < 0.5) or apart < SLIGHT * blanks
    if told:
        warnings.warn(
            f"{source}: numbers that do not agree as labels of annotators do, and may be counts of"
            f" votes, are taken for labels; if they are counts, {VOTES}<class> names a column",
            stacklevel=5,
        )


def _spread(matrix: NDArray[np.int64], missing: NDArray[np.bool_]) -> tuple[float, float]:
    """Returns the variance of the sums of full rows as a multiple of the columns' own, about 1 or
    more of labels and less of parts of a number; and how often independent columns have so little.
    """
    full = matrix[~missing.any(axis=1)]
    own = float(full.var(axis=0).sum()) if len(full) >= min(MANY_ROWS, len(matrix)) else 0.0
    ratio = float(full.sum(axis=1).var()) / own if own else 1.0
    return ratio, float(chdtr(len(full) - 1, ratio * len(full))) if own else 1.0


def like_counts(matrix: NDArray[np.int64], missing: NDArray[np.bool_], columns: list[str]) -> str:
    """Returns what makes numbers, 0 where there are none, look like a vote count a class: columns
    that are named as answers, rows with one sum or whose numbers fall with how many there are
    (blanks being zeros) or with the others, or full columns that agree less than by chance, as
    those of annotators do not; "" where nothing does.
    """
    sums = matrix.sum(axis=1)
    if matrix.min(initial=0) < 0 or missing.shape[1] < 2:
        return ""
    differ = len(np.unique(matrix[~missing])) > 1
    some = len(missing) >= (PERCENT_ROWS if sums[:1] in (100, 1000) else SUM_ROWS)
    if differ and some and sums[0] and (sums == sums[0]).all():
        return f"numbers that sum to {sums[0]} in every row"
    if differ and len(missing) >= MANY_ROWS:
        if total := _rounded_total(matrix, sums):
            return f"numbers that sum to {total} in every row, but for rounding"
        times, beyond = _agreement(matrix, missing)
        if beyond < -BEYOND and not missing.any():
            return "numbers whose columns agree less than by chance"
        parts = beyond < BEYOND and _spread(matrix, missing)[1] < SELDOM
        if parts and not _zeros_are_none(matrix, missing):
            return "numbers that are the smaller the larger others of the row"
        if times < LITTLE and matrix[~missing].min() > 0 and _are_parts(matrix, missing):
            return "numbers that are the smaller the more cells of the row are filled"
    if columns and {name.strip().lower() for name in columns} <= ANSWERS:
        return "numbers in columns that are named as answers"
    return ""


def _rounded_total(matrix: NDArray[np.int64], sums: NDArray[np.int64]) -> int:
    """Returns of how many parts the rows are rounded shares, 100 or 1,000, or 0: R shares
    that are each rounded by half a part at the most miss the sum by sqrt(R / 12) on average.
    More than annotators' codes whose sum is near by chance would be taken for shares.
    """
    most = 1.25 + 1.5 * np.sqrt(matrix.shape[1] / 12)
    return next((t for t in (100, 1000) if (np.abs(sums - t) <= most).all()), 0)


def _agreement(matrix: NDArray[Any], missing: NDArray[np.bool_]) -> tuple[float, float]:
    """Returns how often pairs of cells of a row hold equal numbers, as a multiple of what their
    columns' shares of each number would make it; and by how many deviations that is more.
    """
    there = (~missing).astype(np.float64)
    both = there.T @ there
    equal, expected = np.zeros(len(matrix)), 0.0
    for value in np.unique(matrix[~missing]):
        here = ((matrix == value) & ~missing).astype(np.float64)
        share = here.sum(axis=0) / np.maximum(there.sum(axis=0), 1.0)
        a_row = here.sum(axis=1)
        equal += a_row * (a_row - 1)
        expected += float(share @ both @ share - (share**2 * np.diag(both)).sum())
    more = float(equal.sum()) - expected
    error = float(equal.std()) * np.sqrt(len(matrix)) + 1e-6
    return float(equal.sum()) / expected if expected else 1.0, more / error


def _are_parts(
    matrix: NDArray[np.int64], missing: NDArray[np.bool_], seldom: float = SELDOM
) -> bool:
    """Whether the means of rows fall with how many cells these have, beyond chance (one side, by
    default 0.1 %), as those of parts of one number do.
    """
    sizes = (~missing).sum(axis=1).astype(np.float64)
    means = matrix.sum(axis=1)[sizes > 0] / sizes[sizes > 0]
    sizes, rows = sizes[sizes > 0], len(means)
    if rows < LEAST_ROWS or not sizes.std() or not means.std():
        return False
    slope = float(np.corrcoef(sizes, means)[0, 1])
    return bool(
        slope < 0
        and stdtr(rows - 2, slope * np.sqrt((rows - 2) / max(1 - slope**2, 1e-12))) < seldom
    )
