"""The layouts of tables of labels, and a matrix, as `LabelColumns`; and proposals, tried."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from neucrowd_tf.declare.picking import attributes_of, starting_with
from neucrowd_tf.declare.types import Array, Indices, Texts
from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.asking import Asked, Proposal, as_list
from neucrowd_tf.io.checks import Rejection, broken, error
from neucrowd_tf.io.coding import CodedLabels
from neucrowd_tf.io.column_names import few, is_part, is_text, is_total
from neucrowd_tf.io.column_values import are_many, further_annotators, is_fact, split_items
from neucrowd_tf.io.columns import Column, LabelColumns
from neucrowd_tf.io.roles import VOTES, Roles, ask_about_questions, ask_about_repeats, decide
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table, check_header_again, count_of
from neucrowd_tf.io.times import time_column
from neucrowd_tf.io.values import numbers_of
from neucrowd_tf.names import without

ONES = ("1", "1.0", "true", "yes", "x")  # cells of a one-hot column that name the class
LONG_TEXT = 20  # mean characters from which a column without a text's name has texts
MOST_QUESTIONS = 2  # that may follow a proposal, each answered by further flags
MOST_TRIED = 100_000  # rows that are read to try a proposal
# Problems that a user solves by a flag, or by correcting cells, once the roles are known.
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
    with _answered(table, options):
        columns = _columns_of(table, options)
    ask = columns.ask_about_repeats
    return dataclasses.replace(columns, ask_about_repeats=_answered(table, options)(ask))


@contextlib.contextmanager
def _answered(table: Table, options: TableOptions) -> Iterator[None]:
    """Within, or in a function that it decorates, a question has the proposals that are read."""
    try:
        yield
    except Asked as asked:
        raise asked.answered(functools.partial(completed, table, options)) from None


def settle(table: Table, options: TableOptions) -> tuple[Roles, LabelColumns] | None:
    """Returns the roles of a table that is read by parts, and its first labels, which decide them.

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
        return decide(table, options), columns
    return None


def completed(
    table: Table, options: TableOptions, proposal: Proposal, depth: int = MOST_QUESTIONS
) -> Proposal | None:
    """Returns a proposal with what it still lacks, or None if it does not read the table.

    The proposal is read as the command would read it, from the first rows. What it may still lead
    to is a question about the label, or a flag that says how values are written.
    """
    flags = TableOptions.of(**proposal)
    tried = dataclasses.replace(options, **attributes_of(flags, proposal))
    start = table.start(MOST_TRIED)
    try:
        if flags.header == "none":
            start = start.without_header()
        CodedLabels(_columns_of(start, tried), tried, table.path)
    except Asked as asked:
        for further in asked.proposals if depth else ():
            whole = completed(table, options, {**proposal, **further}, depth - 1)
            if whole is not None:
                return whole
        if asked.check != "which_label":
            return None
    except UsageError:
        return None
    except Rejection as rejection:
        if rejection.check not in OF_VALUES:
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
    others = without(table.columns, roles.columns)
    empty = list(itertools.filterfalse(table.size, others))
    unused = without(others, empty)
    if empty:
        notes += (f"Columns without values: {few(empty)}.",)
    times: Column = ()
    further: tuple[str, ...] = ()
    width = 1
    row_is_answer = roles.layout in ("long", "one_hot")
    if row_is_answer:
        labels = _one_hot(table, roles, options)
        items = table.coded(roles.task)
        annotators = table.coded(roles.worker)
        columns = LabelColumns(items, annotators, labels, table.place)
        role_columns["worker"] = ",".join(roles.worker)
        ask_about_questions(table, options, roles)
        notes += _restarts(table, roles)
        if roles.layout == "long":
            further = further_annotators(table, roles.task, roles.label, others)
        timed, is_read = time_column(table, others, (roles.task, roles.worker))
        if timed is not None:
            times = table.codes(timed)
            role_columns["time"] = timed
            unused = without(unused, [timed] * is_read)
    else:
        columns = _of_cells(table, roles)
        width = len(roles.label)
    if roles.layout == "respondents":
        columns = dataclasses.replace(columns, items=columns.annotators, annotators=columns.items)
        role_columns = {"task": "the column", "worker": ",".join(roles.worker)}
    if row_is_answer or roles.layout == "votes":
        role_columns["label"] = ",".join(roles.label)

    def ask(keys: Indices, places: Indices, counts: tuple[int, int]) -> None:
        ask_about_repeats(table, options, roles, keys, places // width, counts)

    return dataclasses.replace(
        columns,
        texts=_texts(table, roles.task, others),
        times=times,
        ask_about_repeats=ask,
        rows_are_answers=row_is_answer,
        layout=LAYOUTS[roles.layout],
        roles=role_columns,
        reason=roles.reason,
        unused=tuple(unused),
        further=further,
        notes=notes,
        wrong=table.wrong,
    )


def _restarts(table: Table, roles: Roles) -> tuple[str, ...]:
    """Returns a line for each column of parts in each of which the items' ids may start again.

    Then one id is of several items, each with annotators of its own.
    """
    notes = []
    for column in filter(is_part, without(table.columns, roles.columns)):
        split, size = split_items(table, roles.task, column)
        if are_many(split, size) and is_fact(table, roles.worker, column):
            flag = f"--task_column={shlex.quote(as_list([column, *roles.task]))}"
            rows = f"{split:,} of {size:,} items have several values of {column}, no annotator has"
            notes.append(f"{rows}. If item ids start again in each {column}: {flag}.")
    return tuple(notes)


def _texts(table: Table, task: Texts, columns: Texts) -> dict[str, str]:
    """Returns what was labelled by item: a column called text, url or so, or one of long texts."""
    names = list(map(str, range(len(table))))
    items = np.arange(len(table))
    if task:
        names, items = table.coded(task)
    lengths: dict[str, float] = {}
    for column in columns:
        texts, _ = table.codes(column)
        one_of_each = len(np.unique(table.within(items, column))) == len(names)
        if one_of_each and table.size(column) > 1:
            length = sum(map(len, texts)) / len(texts)
            if length >= LONG_TEXT or is_text(column):
                lengths[column] = length
    if not lengths:
        return {}
    named = next(filter(is_text, lengths), max(lengths, key=lengths.__getitem__))
    rows = zip(items.tolist(), table[named], strict=True)
    return {names[item]: text for item, text in rows if text}


def _without_extra_rows(table: Table, options: TableOptions) -> tuple[Table, tuple[str, ...]]:
    """Returns a table without further lines of headers, and with the rows of one question.

    A note says what was left out.
    """
    columns = list(table.columns)
    headers = _further_headers(table)
    rows = [*range(headers, len(table))]
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
        rows = [row for row in rows if cells[row] == value]
        columns.remove(column)
    if len(rows) == len(table) and len(columns) == len(table.columns):
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
    *above, cells = table.start(row + 1).cells_by_row(others)
    numbers = list(filter(None, cells))
    return numbers_of(numbers) is not None and not set().union(*above).issuperset(numbers)


def _further_headers(table: Table) -> int:
    """Returns how many rows are headers too: two of Qualtrics', one of other forms.

    A second header has cells that no other row has, in columns whose values repeat, and is empty
    (or a text) where every other row has an id (or a number).
    """
    if starting_with(table.codes(table.columns[0])[0][:3], '{"ImportId"'):
        return 2
    if not table.header or len(table) < 3:
        return 0
    repeating = unlike = False
    for column in table.columns:
        texts, codes = table.codes(column)
        text = texts[codes[0]]
        if text and (codes[1:] == codes[0]).any():
            return 0
        others = without(texts, [text])
        repeating |= bool(text) and 0 < len(others) <= (len(table) - 1) / 2
        filled = bool(others) and all(others) and not (codes[1:] == codes[0]).any()
        numbers = numbers_of(others) is not None and numbers_of([text]) is None
        unlike |= filled and (not text or numbers)
    return int(repeating and unlike)


def _of_cells(table: Table, roles: Roles) -> LabelColumns:
    """Returns the labels, or counts of votes, of a table with several in a row."""
    width = len(roles.label)
    counts = None
    ids = roles.worker if roles.layout == "respondents" else roles.task
    items: Texts = table.joined(ids) if ids else list(map(str, range(len(table))))
    cells = _interleaved(table, roles.label)
    annotators: Texts = list(roles.label) * len(table)

    def place(at: int) -> str:
        return f"{table.place(at // width)}, column {roles.label[at % width]!r}"

    if roles.layout == "votes":
        counts = []
        for at, cell in enumerate(cells):
            count = count_of(cell)
            if count is None:
                column = roles.label[at % width]
                raise error("bad_count", table.path, place(at), column=column, value=cell)
            counts.append(count)
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
    return list(itertools.chain.from_iterable(table.cells_by_row(columns)))


def _class_of(column: str, columns: Texts) -> str:
    """Returns the class that a column of counts or of 0 and 1 is about, without a common start."""
    start = os.path.commonprefix([*columns])  # noqa: RUF071
    cut = max(map(start.rfind, "._ :")) + 1
    if start.lower().startswith(VOTES):
        cut = len(VOTES)
    if len(columns) > 1:
        return column[cut:]
    return column


def _one_hot(
    table: Table, roles: Roles, options: TableOptions
) -> Column | Sequence[str | list[str]]:
    """Returns the labels of a column, or the class of which the column is 1 in each row."""
    if roles.layout == "long":
        return table.coded(roles.label)
    chosen: list[list[str]] = [[] for _ in range(len(table))]
    for column in roles.label:
        name = _class_of(column, roles.label)
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


def of_annotators(table: Table, items: Texts, labels: Texts) -> LabelColumns:
    """Returns the labels of a table with columns of items and a column per annotator."""
    return _of_cells(table, Roles("wide", tuple(items), (), tuple(labels)))


def of_matrix(matrix: Array, path: Path, options: TableOptions) -> LabelColumns:
    """Returns the labels of an `[N, R]` array of class codes; -1 is missing.

    Raises:
        DataError: another array, or a code that is below -1, or is -1 without a sign.
    """
    if matrix.ndim != 2 or matrix.dtype.kind not in "iu":
        problem = f"expected a matrix of whole numbers, received shape {matrix.shape}"
        raise broken(path, f"{problem} of {matrix.dtype}")
    codes = np.unique(matrix)
    odd = codes[(codes < -1) | ((codes == np.iinfo(codes.dtype).max) & (codes.dtype.kind == "u"))]
    if len(odd) and options.missing is None:
        advice = f"write classes from 0 and -1 if a label is missing, or name {odd[0]} in --missing"
        raise broken(path, f"{odd[0]} is no class; {advice}")
    names = tuple(map(str, range(matrix.shape[1])))
    table = Table(path, names, matrix.T.astype(str).tolist(), header=False)
    return dataclasses.replace(_of_cells(table, Roles("matrix", label=names)), layout="matrix")
