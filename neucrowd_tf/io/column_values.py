"""What the values of columns say: answers, questions, one-hot classes, counts, free text."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.declare.types import Indices, Texts
from neucrowd_tf.io.checks import error
from neucrowd_tf.io.column_names import is_gold, is_status, is_summary
from neucrowd_tf.io.table import Table
from neucrowd_tf.names import among, without

ROUNDED = 0.051  # a mean with one digit may be so far from the exact one
MOST_ANSWERS = 20  # distinct values of a column of answers that is inferred
MOST_CLASSES = 1000  # of a label column that another column may split into questions
MOST_REPEATED = 0.1  # share of pairs that may have several labels without a question
FEW = 2  # annotators within whom a column may be constant by chance
MOST_JOINED = 3  # columns that tell rows apart together


def check_free_text(path: Path, column: str, count: int, labels: int) -> None:
    """Raises DataError if more than half of the labels, and more than 20, are different.

    Args:
        path: the file.
        column: the column of labels.
        count: how many are different.
        labels: how many there are.
    """
    if count > max(MOST_ANSWERS, labels / 2):
        raise error("free_text", path, column=column, count=count, labels=labels)


def answers_of(
    table: Table, item: Texts, annotator: Texts, columns: Texts
) -> tuple[list[str], list[str]]:
    """Returns the columns that can be answers, and those that name the questions of repeated rows.

    A column of at most 20 values that differs between rows of one item can be an answer. A column
    that tells apart all repeated rows of each item and annotator names a question.

    Args:
        table: the table.
        item: columns of items.
        annotator: columns of annotators.
        columns: the candidates.
    """
    _, items = table.coded(item)
    annotators, workers = table.coded(annotator)
    size = int(items.max(initial=-1)) + 1
    pair = items * len(annotators) + workers
    pairs = _count(pair)
    answers = []
    questions = []
    for column in columns:
        texts, codes = table.codes(column)
        present = np.array(list(map(str.strip, texts)), dtype=object).astype(bool)[codes]
        if not 2 <= table.size(column) <= MOST_ANSWERS:
            continue
        if _count(table.within(items, column)[present]) == _count(items[present]):
            continue  # constant within each item
        apart = _count(table.within(pair, column)) == len(codes)
        if apart and len(codes) >= 1.5 * pairs:
            questions.append(column)
        elif size < len(codes) and not is_fact(table, annotator, column):
            answers.append(column)
    return answers, questions


def repeats(keys: Indices) -> tuple[int, int]:
    """Returns how many keys occur several times, and how many there are."""
    _, counts = np.unique(keys, return_counts=True)
    return int((counts > 1).sum()), len(counts)


def are_many(repeated: int, size: int) -> bool:
    """Whether more than a tenth of the pairs of item and annotator have several labels."""
    return repeated > size * MOST_REPEATED


def telling_columns(table: Table, keys: Indices, rows: Indices) -> list[str]:
    """Returns the fewest columns that tell apart rows of one key, [] if none do.

    A column whose values are mostly different (an id, a text) tells all rows apart: it is not one.

    Args:
        table: the columns that may tell.
        keys: `[L]` codes of the pairs of item and annotator.
        rows: `[L]` row of the table of each.
    """
    sizes = {column: len(table.codes(column)[0]) for column in table.columns}
    possible = [column for column, size in sizes.items() if 2 <= size <= len(table) / 2]

    def counts(columns: Texts) -> tuple[int, int]:
        refined = keys
        for column in columns:
            _, refined = np.unique(refined, return_inverse=True)
            refined = refined * sizes[column] + table.codes(column)[1][rows]
        return repeats(refined)

    def tell(columns: Texts) -> bool:
        return not are_many(*counts(columns))

    singles = [column for column in possible if tell([column])]
    if singles:
        return [min(singles, key=sizes.__getitem__)]
    chosen: list[str] = []
    while not tell(chosen):
        parts = {column: counts([*chosen, column])[1] for column in without(possible, chosen)}
        best = max(parts, key=parts.__getitem__, default="")
        if len(chosen) == MOST_JOINED or not best or parts[best] == counts(chosen)[1]:
            return []
        chosen.append(best)
    needed = [column for column in chosen if not tell(without(chosen, [column]))]
    if tell(needed):
        chosen = needed
    return among(table.columns, chosen)


def is_constant(table: Table, key: Texts, column: str) -> bool:
    """Whether a column never differs within an item or annotator, and some have several rows."""
    _, items = table.coded(key)
    count = _count(items)
    return count < len(items) and _count(table.within(items, column)) == count


def further_annotators(table: Table, item: Texts, label: Texts, columns: Texts) -> tuple[str, ...]:
    """Returns the columns that may have an annotator's labels: one of the classes for each item.

    Args:
        table: a long table.
        item: columns of items.
        label: the column of labels.
        columns: the candidates.
    """
    classes = set(table.distinct(*label))
    further = []
    for column in columns:
        about = is_gold(column) or is_status(column) or is_summary(column)
        if not about and 2 <= table.size(column) <= max(MOST_ANSWERS, len(classes)):
            shared = classes.intersection(table.distinct(column))
            if 2 * len(shared) > table.size(column) and is_constant(table, item, column):
                further.append(column)
    return tuple(further)


def is_fact(table: Table, annotator: Texts, column: str) -> bool:
    """Whether a column never differs within an annotator, of whom there are several."""
    annotators, _ = table.coded(annotator)
    return len(annotators) > FEW and is_constant(table, annotator, column)


def split_items(table: Table, item: Texts, column: str) -> tuple[int, int]:
    """Returns of how many items a column parts the rows, and how many items there are."""
    names, items = table.coded(item)
    texts, _ = table.codes(column)
    if len(texts) < 2:
        return 0, len(names)
    return repeats(np.unique(table.within(items, column)) // len(texts))


def parts_classes(table: Table, column: str, label: Texts) -> bool:
    """Whether rows with different values of a column have different labels, several for a value."""
    texts, codes = table.codes(column)
    names, labels = table.coded(label)
    if not 2 <= len(texts) <= MOST_ANSWERS or not len(texts) < len(names) <= MOST_CLASSES:
        return False
    return _count(codes * len(names) + labels) == len(names)


def is_recoded(table: Table, column: str, other: str, shared: bool) -> bool:
    """Whether a column says in other values what another says: each value there has one here.

    Args:
        table: the table.
        column: the column that may be a second coding.
        other: the other one.
        shared: whether they have a value in common. Otherwise only the name tells.
    """
    (texts, codes), (others, other_codes) = table.codes(column), table.codes(other)
    pairs = set(zip(codes.tolist(), other_codes.tolist(), strict=True))
    if len(pairs) > len(others) or all(texts[code] == others[of] for code, of in pairs):
        return False
    named = re.match(re.escape(other) + r"[\W_]", column) is not None
    return len(texts) > 1 and (named or (shared and len(pairs) == len(texts) <= len(table) / 3))


def is_mean(table: Table, column: str, others: Texts) -> bool:
    """Whether a column has fractions, and in every row the others' mean, exact or rounded."""
    numbers = []
    for name in (column, *others):
        texts, codes = table.codes(name)
        values = np.full(len(texts), np.nan)
        for at, text in enumerate(texts):
            if re.fullmatch(r"-?\d+(\.\d+)?", text):
                values[at] = float(text)
        numbers.append(values[codes])
    known = np.isfinite(numbers)
    rows = known[0] & known[1:].any(axis=0)
    values = numbers[0][rows]
    means = np.nanmean(np.array(numbers[1:])[:, rows], axis=0)
    return bool((values % 1 > 0).any() and np.abs(values - means).max() < ROUNDED)


def are_several_classes(table: Table, keys: Indices, rows: Indices, label: str) -> bool:
    """Whether no key has a label twice, and keys have different sets of labels.

    An annotator who labels an item again mostly repeats the label. Keys with all labels each are of
    a column of questions.
    """
    texts, codes = table.codes(label)
    classes = len(np.unique(codes[rows]))
    pairs = _count(keys * len(texts) + codes[rows])
    return pairs == len(rows) != _count(keys) * classes


def _count(keys: Any) -> int:
    """Returns how many different keys there are; sorting is faster than NumPy's hashing."""
    ordered = np.sort(keys)
    return int((ordered[1:] != ordered[:-1]).sum()) + (len(keys) > 0)


def one_hot_groups(table: Table, columns: Texts) -> list[str]:
    """Returns patterns of columns of 0 and 1 of which exactly one is 1 in each row."""
    groups: dict[str, list[str]] = defaultdict(list)
    for column in columns:
        named = re.fullmatch(r"(.+?[._:])[^._:]+", column)
        if named is not None and {*table.distinct(column)} <= {"0", "1"}:
            groups[named[1]].append(column)
    chosen = []
    for start, names in groups.items():
        rows = table.cells_by_row(names)
        if len(names) > 1 and len(table) and all(row.count("1") == 1 for row in rows):
            chosen.append(f"{start}*")
    return chosen
