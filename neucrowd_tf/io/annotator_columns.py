"""Which columns of a table may be an annotator each, and what else they could be."""

from __future__ import annotations

import functools
import itertools
import re

import numpy as np

from neucrowd_tf.declare.types import Texts
from neucrowd_tf.io.column_names import is_id, is_missing, is_person, is_second
from neucrowd_tf.io.column_values import is_mean, is_recoded
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table
from neucrowd_tf.names import places_of, plain_integers, positions, without

MOST_WIDE = 40  # distinct values of all columns of a wide table
FEWEST_ROWS = 6  # before the variance of the rows' sums says anything
ALIKE = 0.4  # of the variance that sums of independent columns have: counts vary less
TOGETHER_SUMS = 1.2  # of the same variance: annotators' columns vary more
FEWEST_AGREED = 30  # rows, before it is no chance that an annotator agrees with nobody
BY_CHANCE = 1.5  # standard deviations within which a column's agreement with the others is
TOGETHER = 3.0  # standard deviations above chance of columns that agree
WHOLE = re.compile(r"\d{1,6}")


def groups_of(
    table: Table, options: TableOptions, columns: Texts, *, named: bool = False, near: bool = False
) -> list[list[str]]:
    """Returns groups of columns that may be an annotator each: linked by values they share.

    Args:
        table: the table.
        options: what a missing label is.
        columns: the candidates. Ids, second codings of another column and columns of many values
            are in no group.
        named: whether columns that have names of other roles are in groups too.
        near: whether neighbouring whole numbers link columns too, as a scale's items do.
    """
    values: dict[str, set[str]] = {}
    for column in columns:
        texts = _values_of(table, options, column)
        of_other_role = not named and is_second(column, "task", "label")
        many = len(texts) == len(table) > 5 or not 0 < len(texts) <= MOST_WIDE
        if many or of_other_role or is_id(column):
            continue
        if near and plain_integers([*texts]):
            for number in list(map(int, texts)):
                texts |= {str(number - 1), str(number + 1)}
        for other, others in values.items():
            shared = not near and not texts.isdisjoint(others)
            if is_recoded(table, column, other, shared):
                break
        else:
            values[column] = texts
    groups: list[list[str]] = []
    for column, texts in values.items():
        joined = [column]
        for group in list(groups):
            if not texts.isdisjoint(itertools.chain(*map(values.__getitem__, group))):
                groups.remove(group)
                joined = group + joined
        groups.append(joined)
    alike = []
    for group in groups:
        group = _without_means(table, group, values, columns)
        texts = set().union(*map(values.__getitem__, group))
        if len(group) > 1 and len(texts) <= MOST_WIDE:
            alike.append(group)
    return alike


def _values_of(table: Table, options: TableOptions, column: str) -> set[str]:
    """Returns the labels that a column has; 1.0 is 1."""
    values = set()
    for text in table.distinct(column):
        if not is_missing(text, options):
            values.add(re.sub(r"^(-?\d+)\.0+$", r"\1", text))
    return values


def _without_means(
    table: Table, group: list[str], values: dict[str, set[str]], columns: Texts
) -> list[str]:
    """Returns a group in the table's order, without the means of its columns of whole numbers."""
    whole = [column for column in group if plain_integers([*values[column]])]
    if len(whole) > 1:
        is_theirs = functools.partial(is_mean, table, others=whole)
        group = whole + list(itertools.filterfalse(is_theirs, without(group, whole)))
    return sorted(group, key=columns.index)


def numbers_in(table: Table, columns: Texts) -> list[np.ndarray] | None:
    """Returns the columns as whole numbers; None if a cell has another value."""
    numbers = []
    for column in columns:
        texts, codes = table.codes(column)
        if len(texts) > 1000 or not all(map(WHOLE.fullmatch, texts)):
            return None
        numbers.append(np.array(list(map(int, texts)))[codes])
    return numbers


def are_persons(columns: Texts) -> bool:
    """Whether columns are named as one annotator each: `rater1, rater2`."""
    return all(is_person(re.sub(r"[\W\d_]+$", "", column)) for column in columns)


def sums_of(table: Table) -> tuple[str, list[str]]:
    """Returns a column that neighbouring columns sum to in every row, and these columns.

    Columns that are named as annotators are not counts.
    """
    numbers = {}
    for column in table.columns:
        whole = numbers_in(table, [column])
        if whole is not None:
            numbers[column] = whole[0]
    for total in numbers if len(table) > 1 else ():
        names = without(numbers, [total])
        for first, name in enumerate(names):
            running = numbers[name]
            for last in range(first + 1, len(names)):
                running = running + numbers[names[last]]
                addends = names[first : last + 1]
                equal = running.any() and (running == numbers[total]).all()
                if equal and not are_persons(addends):
                    return total, addends
    return "", []


def vary_together(table: Table, columns: Texts) -> bool:
    """Whether columns of whole numbers are high in the same rows, as those of annotators are."""
    numbers = numbers_in(table, columns)
    if numbers is None or len(table) < FEWEST_ROWS:
        return False
    alone = np.var(numbers, axis=1).sum()
    return bool(np.sum(numbers, axis=0).var() > TOGETHER_SUMS * alone)


def exclude_each_other(table: Table, columns: Texts) -> str:
    """Returns what says that columns of whole numbers are counts of votes or classes, or "".

    The columns of annotators vary together, so that their sums vary more than those of columns
    that are independent. The more votes a class gets, the fewer are left for the others.
    """
    numbers = numbers_in(table, columns)
    if not numbers or len(columns) < 2 or not len(table) or are_persons(columns):
        return ""
    sums = np.sum(numbers, axis=0)
    if np.min(numbers) > 0 or np.ptp(numbers) == 0:
        return ""
    if np.ptp(sums) == 0 and (len(columns) > 2 or len(table) > 2):
        return f"sum to {str(sums[0])!r} in every row"
    if len(table) >= FEWEST_ROWS and sums.var() < ALIKE * np.var(numbers, axis=1).sum():
        return "have high numbers in different rows"
    return ""


def strays(table: Table, columns: Texts) -> list[str]:
    """Returns the columns that agree with the others by chance alone, which agree with each other.

    They may be features of items that have the labels' values.
    """
    size = len(columns)
    if len(table) < FEWEST_AGREED:
        return []
    upper = np.zeros((2, size, size))
    for one, other in itertools.combinations(range(size), 2):
        upper[:, one, other] = _agreement(table, columns[one], columns[other])
    pairs = upper + upper.swapaxes(1, 2)
    beyond_chance, variance = pairs
    stray = []
    for at, column in enumerate(columns):
        rest = np.arange(size) != at
        others_agree, others_vary = pairs[:, rest][:, :, rest].sum(axis=(1, 2))
        alone = abs(beyond_chance[at].sum()) < BY_CHANCE * np.sqrt(variance[at]).sum()
        if alone and others_agree / 2 > TOGETHER * np.sqrt(others_vary / 2):
            stray.append(column)
    return stray


def _agreement(table: Table, one: str, other: str) -> tuple[float, float]:
    """Returns in how many more rows than by chance two columns agree, and its variance."""
    texts, codes = table.codes(one)
    other_texts, other_codes = table.codes(other)
    code_of = positions(texts) | {"": -1}
    recoded = places_of(other_texts, code_of)[other_codes]
    filled = np.array(list(map(bool, texts)))[codes] & (recoded >= 0)
    count = max(int(filled.sum()), 1)
    shares = np.bincount(codes[filled], minlength=len(texts)) / count
    other_shares = np.bincount(recoded[filled], minlength=len(texts)) / count
    by_chance = float(shares @ other_shares)
    agreed = float((codes == recoded)[filled].sum())
    return agreed - count * by_chance, count * by_chance * (1 - by_chance)
