"""The layouts of tables of labels, and a matrix, as `LabelColumns`; and proposals, tried."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.declare.types import Array, Indices, Texts
from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.asking import Asked, Proposal, as_list
from neucrowd_tf.io.checks import Rejection, broken, error
from neucrowd_tf.io.coding import CodedLabels
from neucrowd_tf.io.column_names import few, is_part, is_text, is_total, without
from neucrowd_tf.io.column_values import are_many, is_fact, split_items
from neucrowd_tf.io.columns import Column, LabelColumns
from neucrowd_tf.io.roles import Roles, ask_about_questions, ask_about_repeats, decide
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table, check_header_again
from neucrowd_tf.io.times import time_column
from neucrowd_tf.io.values import numbers_of

ONES = ("1", "1.0", "true", "yes", "x")  # cells of a one-hot column that name the class
LONG_TEXT = 20  # characters of a column of texts with another name, on average
MOST_QUESTIONS = 2  # that a proposal may lead to, and answers with further flags
MOST_TRIED = 100_000  # rows of which a proposal is read
# What a user can answer with a flag or by correcting cells after the roles are known.
OF_VALUES = frozenset(
    ("multi_label", "ratings", "similar_names", "bad_characters", "cut_id", "row_length",
     "unknown_class", "duplicate_pair", "header_again")
)  # fmt: skip
LAYOUTS = {
    "long": "long table",
    "wide": "wide table",
    "respondents": "table with a row per annotator",
    "one_hot": "one-hot table",
    "votes": "table of vote counts",
    "pairs": "table with several annotators per row",
    "matrix": "matrix without a header",
}


def columns_of(table: Table, options: TableOptions) -> LabelColumns:
    """Returns items, annotators and labels of a table.

    Raises:
        DataError: roles that have to be named, with what can be read, or rows that are not those of
            a table.
    """
    try:
        columns = _columns_of(table, options)
    except Asked as asked:
        raise asked.answered(functools.partial(completed, table, options)) from None
    ask = columns.ask_about_repeats

    def answered(*repeats: Any) -> None:
        try:
            ask(*repeats)
        except Asked as asked:
            raise asked.answered(functools.partial(completed, table, options)) from None

    return dataclasses.replace(columns, ask_about_repeats=answered)


def settle(table: Table, options: TableOptions) -> Roles | None:
    """Returns the roles of a table that is read by parts, decided from its first rows.

    None if the rows are not all of labels.

    Raises:
        DataError: see `columns_of`.
    """
    columns = columns_of(table, options)
    try:
        CodedLabels(columns, options, table.path)
    except Rejection as rejection:  # what is wrong with values is told of the whole file
        if rejection.check == "several_questions":
            raise
    whole, _ = _without_extra_rows(table, options)
    if len(whole) == len(table):
        return decide(table, options)
    return None


def completed(
    table: Table, options: TableOptions, proposal: Proposal, depth: int = MOST_QUESTIONS
) -> Proposal | None:
    """Returns a proposal with what it still lacks, or None if it does not read the table.

    The proposal is read as the command would read it, from the first rows. What it may still lead
    to is a question about the label, or a flag that says how values are written.
    """
    flags = TableOptions.of(**proposal)
    tried = dataclasses.replace(options, **{name: getattr(flags, name) for name in proposal})
    start = table.start(MOST_TRIED)
    try:
        if flags.header == "first":
            read = start
        else:
            read = start.without_header()
        CodedLabels(_columns_of(read, tried), tried, table.path)
    except Asked as asked:
        for further in asked.proposals if depth else ():
            whole = completed(table, options, {**proposal, **further}, depth - 1)
            if whole is not None:
                return whole
        if asked.check == "which_label":
            return proposal
        return None
    except UsageError:
        return None
    except Rejection as rejection:
        if rejection.check in OF_VALUES:
            return proposal
        return None
    return proposal


def _columns_of(table: Table, options: TableOptions) -> LabelColumns:
    """Returns the labels of a table; see `columns_of`.

    Raises:
        Asked: roles that have to be named.
        DataError: rows that are not those of a table.
    """
    if not len(table):
        raise error("no_labels", table.path, problem="; there are no rows")
    table, notes = _without_extra_rows(table, options)
    roles = decide(table, options)
    check_header_again(table)
    role_columns = {"task": ",".join(roles.task) or "the row's number"}
    if roles.layout in ("long", "one_hot"):
        long = roles.layout == "long"
        labels = table.coded(roles.label) if long else _one_hot(table, roles, options)
        items = table.coded(roles.task)
        annotators = table.coded(roles.worker)
        columns = LabelColumns(items, annotators, labels, table.place)
        role_columns["worker"] = ",".join(roles.worker)
    else:
        columns = _of_cells(table, roles)
    if roles.layout == "respondents":
        columns = dataclasses.replace(columns, items=columns.annotators, annotators=columns.items)
        role_columns = {"task": "the column", "worker": ",".join(roles.worker)}
    if roles.layout in ("long", "one_hot", "votes"):
        role_columns["label"] = ",".join(roles.label)
    used = {*roles.task, *roles.worker, *roles.label}
    if empty := [name for name in table.columns if name not in used and not table.distinct(name)]:
        notes += (f"Columns without values: {few(empty)}.",)
    times: Column = ()
    others = without(table.columns, used)
    if roles.layout in ("long", "one_hot"):
        ask_about_questions(table, options, roles)
        notes += _restarts(table, roles)
        width = 1
        timed, is_read = time_column(table, others, (roles.task, roles.worker))
        if timed is not None:
            used |= {timed} if is_read else set()
            times = table.codes(timed)
            role_columns["time"] = timed
    else:
        width = len(roles.label)

    def ask(keys: Indices, places: Indices, counts: tuple[int, int]) -> None:
        ask_about_repeats(table, options, roles, keys, places // width, counts)

    return dataclasses.replace(
        columns,
        texts=_texts(table, roles.task, others),
        times=times,
        ask_about_repeats=ask,
        rows_are_answers=roles.layout in ("long", "one_hot"),
        layout=LAYOUTS[roles.layout],
        roles=role_columns,
        reason=roles.reason,
        unused=tuple(name for name in table.columns if name not in {*used, *empty}),
        notes=notes,
        wrong=table.wrong,
    )


def _restarts(table: Table, roles: Roles) -> tuple[str, ...]:
    """Returns a line for each column of parts in each of which the items' ids may start again.

    Then one id is of several items, each with annotators of its own.
    """
    notes = []
    used = {*roles.task, *roles.worker, *roles.label}
    for column in table.columns:
        if column in used or not is_part(column):
            continue
        split, size = split_items(table, roles.task, column)
        if are_many(split, size) and is_fact(table, roles.worker, column):
            flag = f"--task_column={shlex.quote(as_list([column, *roles.task]))}"
            rows = f"{split:,} of {size:,} items have several values of {column}, no annotator has"
            notes.append(f"{rows}. If item ids start again in each {column}: {flag}.")
    return tuple(notes)


def _texts(table: Table, task: Texts, columns: Texts) -> dict[str, str]:
    """Returns what was labelled by item: a column called text, url or so, or one of long texts."""
    if task:
        names, items = table.coded(task)
    else:
        names, items = ([], np.arange(len(table)))
    size = len(names) or len(table)
    lengths: dict[str, float] = {}
    for column in columns:
        texts, codes = table.codes(column)
        several = len(texts) - texts.count("") > 1
        if several and len(np.unique(items * len(texts) + codes)) == size:  # one for each item
            length = sum(map(len, texts)) / len(texts)
            if length >= LONG_TEXT or is_text(column):
                lengths[column] = length
    if not lengths:
        return {}
    named = list(filter(is_text, lengths))
    cells = table[named[0] if named else max(lengths, key=lengths.__getitem__)]
    ids = table.joined(task) if task else map(str, range(len(table)))
    return {item: text for item, text in zip(ids, cells, strict=True) if text}


def _without_extra_rows(table: Table, options: TableOptions) -> tuple[Table, tuple[str, ...]]:
    """Returns a table without further lines of headers, and with the rows of one question.

    A note says what was left out.
    """
    columns = table.columns
    rows = [*range(len(table))]
    headers = _further_headers(table)
    rows = rows[headers:]
    notes: tuple[str, ...] = ()
    if headers:
        notes = (f"Further headers are left out: {', '.join(map(table.place, range(headers)))}.",)
    while table.header and rows and _is_of_sums(table, rows[-1]):
        row = rows.pop()
        name = table[columns[0]][row]
        notes += (f"{table.place(row).capitalize()} ({name}) has sums and is left out.",)
    if options.question is not None:
        column, _, value = options.question.partition("=")
        if column not in columns or value not in table.distinct(column):
            raise UsageError(f"--question: {table.path}: write it as column=value.")
        cells = table[column]
        names = [name for name in columns if name != column]
        rows = [row for row in rows if cells[row] == value]
        columns = tuple(names)
    if len(rows) == len(table) and columns == table.columns:
        return table, notes
    return table.rows(rows).only(columns), notes


def _is_of_sums(table: Table, row: int) -> bool:
    """Whether a row is named as sums of the rows above, and has numbers that are no labels there.

    The table has a row per item, whose name comes first.
    """
    item, *others = table.columns
    names, codes = table.codes(item)
    if not others or len(names) < len(codes) or not is_total(names[codes[row]]):
        return False
    above: set[str] = set()
    cells = []
    for column in others:
        *texts, cell = table[column][: row + 1]
        above |= {*texts}
        cells += [cell] if cell else []
    return numbers_of(cells) is not None and not above.issuperset(cells)


def _further_headers(table: Table) -> int:
    """Returns how many rows are headers too: two of Qualtrics', one of other forms.

    A second header has cells that no other row has, in columns whose values repeat, and is empty
    (or a text) where every other row has an id (or a number).
    """
    if any(text.startswith('{"ImportId"') for text in table.codes(table.columns[0])[0][:3]):
        return 2
    if not table.header or len(table) < 3:
        return 0
    repeating = unlike = False
    for column in table.columns:
        texts, codes = table.codes(column)
        text = texts[codes[0]]
        if text and (codes[1:] == codes[0]).any():
            return 0
        others = [other for at, other in enumerate(texts) if at != codes[0]]
        repeating |= bool(text) and 0 < len(others) <= (len(table) - 1) / 2
        filled = all(others) and not (codes[1:] == codes[0]).any()
        numbers = numbers_of(others) is not None and numbers_of([text]) is None
        unlike |= filled and bool(others) and (not text or numbers)
    return int(repeating and unlike)


def _of_cells(table: Table, roles: Roles) -> LabelColumns:
    """Returns the labels, or counts of votes, of a table with several in a row."""
    width = len(roles.label)
    counts = None
    ids = roles.worker if roles.layout == "respondents" else roles.task
    if ids:
        items = table.joined(ids)
    else:
        items = list(map(str, range(len(table))))
    cells = _interleaved(table, roles.label)
    annotators: Texts = list(roles.label) * len(table)

    def place(at: int) -> str:
        return f"{table.place(at // width)}, column {roles.label[at % width]!r}"

    if roles.layout == "votes":
        for at, cell in enumerate(cells):
            if not re.fullmatch(r"\s*(\d{1,9}(\.0)?)?\s*", cell):
                column = roles.label[at % width]
                raise error("bad_count", table.path, place(at), column=column, value=cell)
        counts = [int(float(cell.strip() or 0)) for cell in cells]
        annotators = []
        cells = [_class_of(column, roles.label) for column in roles.label] * len(table)
    elif roles.layout == "pairs":
        annotators = _interleaved(table, roles.worker)
    return LabelColumns(
        items=np.repeat(np.array(items, dtype=object), width).tolist(),
        annotators=annotators,
        labels=cells,
        place=place,
        counts=counts,
        annotators_in_columns=roles.layout in ("wide", "matrix"),
        coded=not table.header,
        rows=() if ids else tuple(items),
    )


def _interleaved(table: Table, columns: Texts) -> list[str]:
    """Returns the cells of several columns, row by row."""
    rows = zip(*map(table.__getitem__, columns), strict=True)
    return list(itertools.chain.from_iterable(rows))


def _class_of(column: str, columns: Texts) -> str:
    """Returns the class that a column of counts or of 0 and 1 is about, without a common start."""
    start = os.path.commonprefix([*columns])  # noqa: RUF071
    cut = max(start.rfind(sign) for sign in "._ :") + 1
    if len(columns) > 1:
        return column[cut:]
    return column


def _one_hot(table: Table, roles: Roles, options: TableOptions) -> list[str] | list[list[str]]:
    """Returns the class of which the column is 1 in each row."""
    names = [_class_of(column, roles.label) for column in roles.label]
    chosen: list[list[str]] = [[] for _ in range(len(table))]
    for name, column in zip(names, roles.label, strict=True):
        for cell, of_row in zip(table[column], chosen, strict=True):
            if cell.strip().lower() in ONES:
                of_row.append(name)
    if options.multi_label is not None:
        return chosen
    for row, of_row in enumerate(chosen):
        if len(of_row) != 1:
            listed = ", ".join(roles.label)
            raise error("one_hot", table.path, table.place(row), count=len(of_row), columns=listed)
    return list(itertools.chain.from_iterable(chosen))


def of_matrix(matrix: Array, path: Path) -> LabelColumns:
    """Returns the labels of an `[N, R]` array of class codes; -1 is missing."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "iu":
        problem = f"expected a matrix of whole numbers, received shape {matrix.shape}"
        raise broken(path, f"{problem} of {matrix.dtype}")
    names = tuple(map(str, range(matrix.shape[1])))
    cells = [list(map(str, column)) for column in matrix.T.tolist()]
    table = Table(path, names, cells, header=False)
    return dataclasses.replace(_of_cells(table, Roles("matrix", label=names)), layout="matrix")
