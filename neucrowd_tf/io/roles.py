"""Which columns are items, annotators and labels: from flags, aliases and what differs.

Nothing is guessed. If a role is missing, the error lists the columns with their numbers of distinct
values, and ends with a command to paste.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, NoReturn

import numpy as np

from neucrowd_tf.declare.picking import mapped
from neucrowd_tf.declare.types import Indices, Texts
from neucrowd_tf.io.annotator_columns import (
    exclude_each_other,
    groups_of,
    strays,
    sums_of,
    vary_together,
)
from neucrowd_tf.io.asking import RUNNING, WORDS, Asked, Proposal, as_list, command_line
from neucrowd_tf.io.checks import error
from neucrowd_tf.io.column_names import (
    MISSING,
    answer_of,
    are_answers,
    called,
    crossed,
    flagged_columns,
    is_asked,
    is_gold,
    is_id,
    is_judge,
    is_known,
    is_model,
    is_person,
    is_question,
    is_second,
    is_status,
    is_summary,
    is_text,
    is_which_model,
    named_columns,
    repeated_codings,
    second_tier,
    unlike_names,
)
from neucrowd_tf.io.column_values import (
    MOST_ANSWERS,
    answers_of,
    are_many,
    are_several_classes,
    check_free_text,
    is_constant,
    is_fact,
    one_hot_groups,
    parts_classes,
    repeats,
    split_items,
    telling_columns,
)
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table, numbers_from_1
from neucrowd_tf.io.values import numbers_of
from neucrowd_tf.names import ROLES, among, folded, plain_integers, roles_of, without

__all__ = ["RUNNING", "WORDS", "Roles", "as_list", "command_line", "decide"]

VOTES = "votes_"
FORM_TIMES = ("starttime", "startdate", "submitdate", "datestamp")  # of a row per respondent
FEWEST_REPEATED = 5  # pairs that never repeat a label: with fewer it may be chance
DISTINCT = "Columns and their distinct values: "
LAST_LABEL = "The last label of each pair: --duplicates=last"
LAST_ROW = "If the last row of an item counts"
# Columns of relabel.csv, of which the first two tell that a table is one.
PLANNED = ("priority", "gain", "reason", "cost")
COMPLETE = 0.9  # share of the pairs of items and questions that occur if a column has questions


class Roles(NamedTuple):
    """Which columns have which role, and how the table is laid out.

    Attributes:
        layout: "pairs" has columns `ScoreK` and `WorkerK`; "respondents" has a row per annotator
            and a column per item; the others are as their names say.
        task: columns of items; () if items are numbered by their rows.
        worker: columns of annotators.
        label: columns of labels, counts or annotators.
        reason: why this is the column of labels, if neither a flag nor an alias says so.
    """

    layout: Literal["long", "wide", "respondents", "one_hot", "votes", "pairs", "matrix"]
    task: tuple[str, ...] = ()
    worker: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    reason: str = ""

    @property
    def columns(self) -> set[str]:
        """Those that have a role."""
        return {*self.task, *self.worker, *self.label}


def decide(table: Table, options: TableOptions) -> Roles:
    """Returns the roles of a table's columns.

    Raises:
        Asked: what has to be named, with proposals.
        DataError: a flag that names no column.
    """
    return _Decision(table, options).roles()


def ask_about_repeats(
    table: Table,
    options: TableOptions,
    roles: Roles,
    keys: Indices,
    rows: Indices,
    counts: tuple[int, int],
) -> None:
    """Asks if columns tell apart the rows of items and annotators that repeat.

    The rows of a wide table may not repeat items at all.

    Args:
        table: the table.
        options: as its roles were decided.
        roles: the roles.
        keys: `[L]` code of the item and annotator of each label.
        rows: `[L]` row of the table of each.
        counts: how many pairs of item and annotator have several labels, and how many there are.

    Raises:
        Asked: which rows are meant.
    """
    decision = _Decision(table, options)
    others = without(table.columns, roles.columns)
    telling = telling_columns(table.only(others), keys, rows) if others else []
    if telling or roles.layout == "wide":
        decision.ask_which_rows(roles, telling, counts)
    enough = roles.layout == "long" and counts[0] >= FEWEST_REPEATED
    if enough and are_several_classes(table, keys, rows, *roles.label):
        decision.ask_about_classes(roles, counts)


def ask_about_questions(table: Table, options: TableOptions, roles: Roles) -> None:
    """Asks if a column names questions of which each annotator, or nearly each, answers one.

    Its values differ within items, and it is named as questions or each of its values has labels
    of its own. Where pairs of item and annotator repeat, `ask_about_repeats` asks.

    Raises:
        Asked: which rows are meant.
    """
    if roles.layout != "long" or options.duplicates is not None:
        return
    for column in without(table.columns, roles.columns):
        if not is_asked(column):
            own = parts_classes(table, column, roles.label)
            if not own or not is_fact(table, roles.worker, column):
                continue
        split = split_items(table, roles.task, column)
        if not are_many(*split):
            continue
        annotators, workers = table.coded(roles.worker)
        items = table.coded(roles.task)[1]
        if not are_many(*repeats(items * len(annotators) + workers)):
            _Decision(table, options).ask_about_question(roles, column, split)


class _Decision:
    """The state of a decision: the columns of each role so far, and the columns left.

    Attributes:
        flags: the columns that flags name, by role.
        taken: the columns of each role so far.
        aliases: the columns whose names are aliases of a role.
        unique: the columns with another text in each row.
        usable: the columns that could have a role.
        votes: the columns that are named as counts of votes, if there are several.
    """

    def __init__(self, table: Table, options: TableOptions) -> None:
        self.table = table
        self.options = options
        self.size = len(table)
        self.flags = {role: flagged_columns(table, options, role) for role in ROLES}
        self.taken = mapped(list, self.flags)
        self.aliases = roles_of(table.columns)
        self.unique = []
        self.usable = []
        self.votes: list[str] = []
        planned = among(PLANNED, table.columns) if {*PLANNED[:2]} <= {*table.columns} else []
        for column in table.columns:
            size = table.size(column)
            if size == self.size:
                self.unique.append(column)
            about = is_status(column) or is_gold(column) or is_summary(column) or column in planned
            if not about and (size or not self.size):
                self.usable.append(column)
            if column.lower().startswith(VOTES):
                self.votes.append(column)
        if len(self.votes) == 1:
            self.votes = []

    @property
    def free(self) -> list[str]:
        """Columns without a role that could have one."""
        return without(self.usable, {*itertools.chain.from_iterable(self.taken.values())})

    def _repeats(self, column: str) -> bool:
        """Whether each value of a column occurs twice on average."""
        return 2 * self.table.size(column) <= self.size

    def _several(self, columns: Iterable[str]) -> list[str]:
        """Returns the columns that have several values, of which some occur again."""
        return [column for column in columns if 2 <= self.table.size(column) < self.size]

    def roles(self) -> Roles:
        """Returns the roles; see `decide`."""
        taken = self.taken
        if self.options.votes_columns:
            return self._votes(self.options.votes_columns)
        self._check_first_line()
        if not self.table.header and not any(taken.values()):
            return self._matrix()
        if self.table.header:
            sure = self._pairs()
            if sure is None and not self.votes:
                self._check_answers()
                sure = self._same_values()
            if sure is not None:
                return sure
            self._take_aliases()
            if self.votes and not taken["worker"] and not taken["label"]:
                if sums_of(self.table)[0] in self.votes:
                    self._check_votes()
                ids = without(filter(is_id, self.unique), self.votes)
                taken["task"] = taken["task"] or _only(ids)
                return self._votes(self.votes)
        item, annotator, label = map(tuple, taken.values())
        if len(label) > 1 and not annotator:
            return Roles("wide", item, (), label)
        if len(label) > 1 and item:
            return Roles("one_hot", item, annotator, label)
        sure = None
        if annotator:
            sure = self._respondents()
            if sure is None and len(label) <= 1:
                return self._long()
        elif item and not label:
            sure = self._wide(item)
        if sure is None and self.flags["label"] and not annotator:
            sure = self._single(label[0])
        if sure is not None:
            return sure
        return self._ask()

    def _check_answers(self) -> None:
        """Asks if columns of whole numbers are counts of votes: if two are named yes and no."""
        taken = self.taken
        free = self.free
        items = taken["task"] or self.aliases["task"]
        numbers = []
        for column in without(free, items):
            is_number = is_id(column) and answer_of(column) != "no"
            if not is_number and plain_integers(self.table.distinct(column)):
                numbers.append(column)
        others = taken["worker"] or taken["label"] or roles_of(free)["worker"]
        if not others and are_answers(numbers):
            self._check_votes()
            self._ask_about_votes(numbers, "are named as answers and have whole numbers")

    def _take_aliases(self) -> None:
        """Takes columns whose names are aliases of a role that no flag names."""
        for role in ROLES:
            if self.taken[role]:
                continue
            free = self.free
            named = among(free, self.aliases[role])
            if role == "label" and (len(named) > 1 or not self.taken["worker"]):
                rest = without(free, named)
                if len(named) > 1 or groups_of(self.table, self.options, rest):
                    named = list(itertools.filterfalse(self._is_judged, named))
            if len(named) > 1:
                self._ask_which(role, named)
            self.taken[role] = named

    def _ask_which(self, role: str, named: Texts) -> NoReturn:
        """Asks which of several columns with aliases of a role is meant."""
        proposals: list[Proposal] = []
        if role == "task":
            larger = max(named, key=self.table.size)
            for column in without(named, [larger]):
                proposals += self._question(column, [larger])
        if role == "worker":  # a column with the values of others is one annotator's labels
            alike = itertools.chain(*groups_of(self.table, self.options, self.free, named=True))
            if people := _only(without(named, set(alike))):
                proposals.append(_columns({role: people}))
        if ids := _only([*filter(is_id, named)]):
            proposals.append(_columns({role: ids}))
        first, second, *_ = named
        self._error(
            "two_columns",
            self._listed(role),
            proposals,
            open_roles=[role],
            first=first,
            second=second,
            role=WORDS[role],
        )

    def _is_judged(self, column: str) -> bool:
        """Whether a column is a text that others judge: of most items, and one for each item."""
        items = self.taken["task"] or called(self.free, "id")
        size = self.size
        if items:
            size = len(self.table.coded(items)[0])
        alike = size == self.size or is_constant(self.table, items, column)
        return alike and self.table.size(column) > max(size / 2, 5)

    def _error(
        self,
        check: str,
        columns: str,
        proposals: Sequence[Proposal] = (),
        alternatives: Mapping[str, Proposal] | None = None,
        *,
        open_roles: Texts = (),
        known: Mapping[str, Texts] | None = None,
        advice: Texts = (),
        **words: str,
    ) -> NoReturn:
        """Raises the question of a check, with the columns and further words; see `Asked`."""
        words["columns"] = columns
        raise Asked(
            check,
            self.table.path,
            words,
            proposals,
            alternatives,
            open_roles,
            _columns(known or {}),
            _columns(self.flags),
            advice,
        )

    def _long(self) -> Roles:
        """Returns the roles of a table with a column of annotators."""
        table = self.table
        taken = self.taken
        reason = ""
        if not taken["task"]:
            ids = called(self.free, "id")
            if ids and ids[0] not in self.unique:
                taken["task"] = ids
        label = taken["label"]
        if taken["task"] and self.free and not self.flags["label"]:
            columns = without(self.free, {*filter(is_id, self.unique)})
            if not label:
                self._check_filled()
            answers, questions = answers_of(table, taken["task"], taken["worker"], columns + label)
            if label and answers and self._is_judged(label[0]):
                label = taken["label"] = []
            if label:
                self._check_label(label[0], answers, questions)
            elif len(answers) == 1:
                taken["label"] = answers
                reason = "the only column of few values that differs between rows of an item"
            elif answers:
                self._which(answers, "several columns could be the label")
        if not all(taken.values()):
            return self._ask()
        item, annotator, labels = map(tuple, taken.values())
        return Roles("long", item, annotator, labels, reason)

    def _check_filled(self) -> None:
        """Raises DataError if the column of labels by its name, or every further one, is empty."""
        empty = list(itertools.filterfalse(self.table.size, self.table.columns))
        blank = among(empty, self.aliases["label"]) or empty * (not self.free)
        if blank:
            problem = f"; fill in the column {blank[0]!r}, it is empty, or name another one with"
            raise error("no_labels", self.table.path, problem=f"{problem} --label_column")

    def _check_label(self, label: str, answers: list[str], questions: list[str]) -> None:
        """Asks if the column that an alias takes is the true label or a question's name."""
        others = without(answers, [label])
        if label in questions:
            problem = f"{label!r} names a question, not an answer: it differs between all rows of"
            self._which(others, f"{problem} an item and annotator")
        constant = is_constant(self.table, self.taken["task"], label)
        if folded(label) == "label" and others and constant:
            problem = f"{label!r} never differs within an item, so it may be the true label"
            theirs = _columns({"label": [label]})
            self._which(others, problem, {"If it has the annotators' labels": theirs})

    def _which(
        self, answers: list[str], problem: str, alternatives: Mapping[str, Proposal] | None = None
    ) -> NoReturn:
        self.taken["label"] = []
        proposals = []
        if patterns := _only(answers) or _only(one_hot_groups(self.table, self.free)):
            proposals = [{"label_column": patterns[0]}]
        columns = DISTINCT + self._counts(answers or self.free)
        self._error(
            "which_label", columns, proposals, alternatives, open_roles=["label"], problem=problem
        )

    # ------------------------------------------------------------- other layouts

    def _votes(self, names: Texts) -> Roles:
        columns = named_columns(self.table.path, self.table.columns, names, "votes_columns")
        items = self.taken["task"] or _only(without(self.aliases["task"], columns))
        return Roles("votes", tuple(items), (), tuple(columns))

    def _pairs(self) -> Roles | None:
        """Returns the roles of columns `ScoreK` and `WorkerK`, if there are such."""
        if self.taken["worker"] or self.taken["label"]:
            return None
        groups: dict[str, list[str]] = defaultdict(list)
        for column in self.table.columns:
            if (numbered := re.fullmatch(r"(.*\D)\d+", column.strip())) is not None:
                groups[numbered[1]].append(column)
        stems = [stem for stem, columns in groups.items() if len(columns) > 1]
        aliases = roles_of(stems)
        labels = aliases["label"] or second_tier(stems, "label")
        if len(aliases["worker"]) != 1 or len(labels) != 1:
            return None
        annotators = groups[aliases["worker"][0]]
        scores = groups[labels[0]]
        if len(annotators) != len(scores):
            return None
        others = without(self.table.columns, {*annotators, *scores})
        ids = _only(roles_of(others)["task"] or called(others, "id"))
        item = self.taken["task"] or among(ids, self.unique)
        return Roles("pairs", tuple(item), tuple(annotators), tuple(scores))

    def _wide(self, item: Texts, *, named: bool = False) -> Roles | None:
        """Returns the roles of unique items and columns of annotators, if all others are such."""
        columns = without(self.free, {*item, *second_tier(self.free, "task")})
        annotators = second_tier(columns, "worker")
        if (annotators and not named) or not self.table.is_unique(item):
            return None
        if groups_of(self.table, self.options, columns, named=named) != [columns]:
            return None
        self._check_votes()
        self._check_annotators(columns, item)
        return Roles("wide", tuple(item), (), tuple(columns))

    def _same_values(self) -> Roles | None:
        """Returns the roles of an id and columns with one set of values, whatever their names."""
        annotators = self.aliases["worker"]
        items = self.taken["task"] or self.aliases["task"]
        if not items:
            ids = filter(is_id, self.free)
            items = without(ids, {*annotators, *second_tier(self.free, "worker")})
        others = self.taken["worker"] or self.taken["label"] or self._times()
        if others or len(items) != 1 or not all(map(is_model, annotators)):
            return None
        columns = without(self.free, items)
        if len(columns) == 1 and is_model(columns[0]):
            return self._single(columns[0])
        if (judge := self._judge(columns)) and (single := self._single(judge)) is not None:
            return single
        roles = self._wide(items, named=True)
        if roles is None:
            return None
        values = [{*self.table.distinct(column)} - MISSING for column in roles.label]
        if all(map(max(values, key=len).issuperset, values)):
            return roles
        return None

    def _judge(self, columns: Texts) -> str:
        """Returns the column of a judge's labels if all others are texts, otherwise ""."""
        label = _only(list(filter(self._repeats, columns)))
        if not label or not is_judge(label[0]):
            return ""
        for column in itertools.filterfalse(is_id, without(columns, label)):
            if numbers_of(self.table.distinct(column)):
                return ""
        if any(map(is_model, self.table.distinct(label[0]))):
            return ""
        return label[0]

    def _times(self) -> list[str]:
        """Returns the columns of times that a form has, if each row has another."""
        first = among(self.table.columns[:1], self.unique)
        return called(self.unique, *FORM_TIMES) + called(first, "timestamp")

    def _respondents(self) -> Roles | None:
        """Returns the roles of a row per annotator, if a flag names a column of such."""
        worker = self.flags["worker"]
        groups = [self.flags["label"]]
        if self.taken["task"] or not worker:
            return None
        if len(groups[0]) < 2:
            groups = groups_of(self.table, self.options, self.free, near=True)
        if len(groups) > 1:
            self._which_group(groups)
        if not groups or not self.table.is_unique(worker):
            return None
        facts = unlike_names(groups[0])
        if facts and not self.flags["label"]:
            self._ask_without(groups[0], facts, "may be about the annotators, and no item", "item")
        return Roles("respondents", (), tuple(worker), tuple(groups[0]))

    def _labels(self, columns: Texts, item: Texts) -> Proposal:
        """Returns the flags of columns of labels, and of items if these are not taken."""
        if self.taken["task"]:
            item = ()
        return _columns({"task": item, "label": columns})

    def _which_group(self, groups: Sequence[list[str]], item: Texts = ()) -> NoReturn:
        """Asks for one of several groups of columns, of which the items may be known."""
        problem = f"{len(groups)} groups of columns have different values"
        columns = f"Groups: {'; '.join(map(as_list, groups))}"
        self._error("which_label", columns, [self._labels(groups[0], item)], problem=problem)

    def _check_annotators(self, columns: Texts, item: Texts) -> None:
        """Asks if columns may be classes, questions, features or further codings."""
        if reason := exclude_each_other(self.table, columns):
            self._ask_about_votes(columns, reason)
        parts = crossed(columns)
        if parts is not None:
            firsts, lasts = parts
            shown = [", ".join(map(_bare, side)) for side in parts]
            if "" in lasts:  # names with and without an ending: it is no annotator
                ways: dict[str, Texts] = {"Those without the ending": firsts}
            else:
                ways = {
                    f"If {shown[1]} are questions": [first + lasts[0] for first in firsts],
                    f"If {shown[0]} are questions": list(map(firsts[0].__add__, lasts)),
                }
            ways["If each column is an annotator"] = columns
            problem = f"columns' names join two lists ({'; '.join(shown)}), so one may be of"
            self._error(
                "which_label",
                f"Columns: {self._counts(columns)}",
                (),
                mapped(functools.partial(self._labels, item=item), ways),
                open_roles=["label"],
                problem=f"{problem} questions",
            )
        others = repeated_codings(columns)
        problem = "may be further codings by annotators of other columns"
        if not others:
            others = unlike_names(columns) or strays(self.table, columns)
            problem = "may be about the items, and of no annotator"
        if others:
            self._ask_without(columns, others, problem, "annotator", item)

    def _ask_without(
        self, columns: Texts, others: Texts, problem: str, noun: str, item: Texts = ()
    ) -> NoReturn:
        """Asks if some columns that look like an annotator or item each look wrong."""
        rest = without(columns, others)
        self._error(
            "which_label",
            f"Columns: {self._counts(columns)}",
            [self._labels(rest, item)] * (len(rest) > 1),
            {f"If each column is an {noun}": self._labels(columns, item)},
            problem=f"{', '.join(others)} {problem}",
        )

    def _single(self, label: str, *, asked: bool = False) -> Roles | None:
        """Returns the roles of one annotator, after whom the column of labels is named.

        Other columns have to be texts, if neither flags name items and labels nor it is asked.
        """
        others = without(self.free, [label])
        item = self.taken["task"]
        if not item:
            unique = among(self.unique, others)
            named = roles_of(unique)["task"]
            ids = list(itertools.filterfalse(is_text, named)) or list(filter(is_id, unique))
            item = _only(ids or among(unique, named + second_tier(unique, "task")))
        sure = asked or (self.flags["task"] and self.flags["label"])
        are_texts = not any(map(self._repeats, without(others, item)))
        if item and (sure or are_texts) and self.table.is_unique(item):
            return Roles("wide", tuple(item), (), (label,))
        return None

    def ask_which_rows(self, roles: Roles, telling: Texts, counts: tuple[int, int]) -> NoReturn:
        """Asks which rows are meant; see `ask_about_repeats`."""
        wide = roles.layout == "wide"
        item = ",".join(roles.task) or "the row's number"
        if wide:
            problem = f"rows repeat the item ({item}), so the table is not wide"
            advice = "Name the annotators' column with --worker_column and one column of labels."
        else:
            problem = f"{_pairs_of(roles, counts)} have several labels"
            advice = LAST_LABEL
        if telling:
            verb = "tell" if telling[1:] else "tells"
            problem += f"; {', '.join(telling)} {verb} their rows apart"
        questions = list(filter(is_question, telling))
        asked = _only(telling) or _only(questions)
        beside = [*roles.task, *without(telling, asked)]
        question: list[Proposal] = []
        if asked:
            question = self._question(asked[0], beside)
        items: Proposal = {"task_column": as_list([*roles.task, *telling])}
        people = [_columns({"worker": [column]}) for column in filter(is_person, telling)]
        proposals = [items] * bool(telling)
        if wide and (people or not any(map(is_which_model, telling))):
            proposals = people + question
        elif question and questions and len(telling) > 1:
            proposals = [{"task_column": as_list(beside), **question[0]}]
        elif question and questions:
            proposals = [*question, items]
        alternatives: dict[str, Proposal] = {}
        if question and not people:
            alternatives = {"One of them": question[0]}
        elif wide and not telling and not one_hot_groups(self.table, roles.label):
            alternatives = {LAST_ROW: {"duplicates": "last"}}
        self._error(
            "several_questions", "", proposals, alternatives, advice=[advice], problem=problem
        )

    def ask_about_question(self, roles: Roles, column: str, split: tuple[int, int]) -> NoReturn:
        """Asks for one question; see `ask_about_questions`."""
        rows = f"{split[0]:,} of {split[1]:,} items have several values of {column}"
        self._error(
            "several_questions",
            "",
            [{"question": f"{column}={self.table.distinct(column)[0]}"}],
            {"If each question is an item": {"task_column": as_list([*roles.task, column])}},
            advice=["If all rows answer one question: --duplicates=last"],
            problem=f"{rows}, so that its rows may answer several questions",
        )

    def ask_about_classes(self, roles: Roles, counts: tuple[int, int]) -> NoReturn:
        """Asks about rows that may each have one of several classes of an answer."""
        problem = (
            f"{_pairs_of(roles, counts)} have several labels, never one twice,"
            " so that each row may be one of several classes"
        )
        advice = (
            "For a yes/no question per class, write an answer in one cell: --multi_label='|'",
            LAST_LABEL,
        )
        self._error("several_questions", "", advice=advice, problem=problem)

    def _question(self, column: str, item: Texts) -> list[Proposal]:
        """Returns the rows of the first value of a column; [] if its values depend on the item.

        Every item has to be asked nearly each of the questions.
        """
        values = self.table.distinct(column)
        items = len(self.table.coded(item)[0])
        asked = len(set(zip(self.table.joined(item), self.table[column], strict=True)))
        if values[1:] and asked >= COMPLETE * len(values) * items:
            return [{"question": f"{column}={values[0]}"}]
        return []

    # ------------------------------------------------------------- no header

    def _check_first_line(self) -> None:
        """Raises DataError if each value of the first line occurs again in its column."""
        table = self.table
        if not table.header or len(table) < 2 or any(map(is_known, table.columns)):
            return
        for name in table.columns:
            if name.startswith("column ") or name not in table[name]:
                return
        columns = "Columns: " + self._counts(table.columns, numbered=True)
        problem = "each of its values occurs again in its column"
        proposals, advice = self._headerless()
        self._error("no_header", columns, proposals, advice=advice, problem=problem)

    def _headerless(self) -> tuple[list[Proposal], tuple[str, ...]]:
        """Returns the proposal for a table without a header, and what to check."""
        names = numbers_from_1(len(self.table.columns))
        if len(names) not in (3, 4) or any(self.taken.values()):
            return [{"header": "none"}], ()
        sizes = map(self.table.size, self.table.columns)
        label, *_, worker, item = sorted(zip(sizes, names, strict=True))
        roles = _columns({"task": item[1:], "worker": worker[1:], "label": label[1:]})
        return [{"header": "none", **roles}], (
            "Check which column is the item: the command names the one with most values.",
            f"If each column is an annotator: --header=none --label_column={','.join(names)}",
        )

    def _matrix(self) -> Roles:
        columns = list(self.table.columns)
        alike = groups_of(self.table, self.options, columns)
        if len(columns) not in (3, 4) and alike == [columns]:
            return Roles("matrix", (), (), tuple(columns))
        proposals, advice = self._headerless()
        self._error(
            "missing_role",
            DISTINCT + self._counts(columns),
            proposals,
            open_roles=ROLES,
            advice=advice,
            roles="item, annotator and label",
        )

    # ------------------------------------------------------------- asking

    def _ask(self) -> NoReturn:
        """Asks for all missing roles."""
        missing = list(itertools.filterfalse(self.taken.get, ROLES))
        if "label" in missing:
            self._check_filled()
        if "worker" in missing:
            self._check_votes()
        likely = self._likely(missing)
        proposals = self._proposals(missing, likely)
        if missing == ["label"] and len(proposals) == 1:
            (column,) = proposals[0].values()
            if column in self.table.columns:
                texts, codes = self.table.codes(column)
                check_free_text(self.table.path, column, len(texts), len(codes))
        *nouns, last = map(WORDS.__getitem__, missing)
        advice = []
        has_lines = self.table.header and self.table.lines is not None
        if has_lines and not any(map(is_known, self.table.columns)):
            advice = ["If the first line is data: --header=none."]
        others: dict[str, Proposal] = {}
        if "worker" in missing and (judge := self._of_one_judge()) is not None:
            rest = without(self.free, {*judge.task, *judge.label})
            annotators = _only(list(filter(self.table.size, filter(self._repeats, rest))))
            if annotators:
                whole = {"task": judge.task, "worker": annotators, "label": judge.label}
                others = {f"If {annotators[0]} names annotators": _columns(whole)}
        known: dict[str, list[str]] = {}
        if len(likely.get("label", ())) > 1:
            others |= self._last_rows(likely)
        elif len(likely) < len(missing):
            known = dict(likely)
            if known.get("worker") != self._people()[:1]:
                known.pop("worker", None)
        self._error(
            "missing_role",
            self._listed(*missing),
            proposals,
            others,
            open_roles=without(missing, known),
            known=known,
            advice=advice,
            roles=", ".join(nouns) + " and " * bool(nouns) + last,
        )

    def _last_rows(self, likely: Mapping[str, list[str]]) -> dict[str, Proposal]:
        """Returns flags for a wide table whose items repeat, if no column tells the rows apart."""
        item = self.taken["task"] or likely.get("task", [])
        if not item or self.table.is_unique(item) or self.options.duplicates is not None:
            return {}
        others = without(self.table.columns, {*item, *likely["label"]})
        _, items = self.table.coded(item)
        if others and telling_columns(self.table.only(others), items, np.arange(self.size)):
            return {}
        return {LAST_ROW: {**_columns(likely), "duplicates": "last"}}

    def _proposals(self, missing: list[str], likely: Mapping[str, list[str]]) -> list[Proposal]:
        """Returns what may fill the missing roles, likely ones first."""
        proposals: list[Proposal] = [_columns(likely)] * bool(likely)
        if "worker" in missing:
            proposals = [*self._by_people(missing), *proposals]
            judge = self._of_one_judge()
            if judge is not None:
                alone = _columns({"task": judge.task, "label": judge.label})
                (label,) = judge.label
                first = label in self._judges() and label not in likely.get("label", ())
                proposals.insert(0 if first else len(proposals), alone)
        return proposals

    def _judges(self) -> list[str]:
        """Returns the columns named as a judge whose values are few and no models."""
        judges = []
        for column in filter(self._repeats, filter(is_judge, self.free)):
            values = self.table.distinct(column)
            if 2 <= len(values) <= MOST_ANSWERS and not any(map(is_model, values)):
                judges.append(column)
        return judges

    def _people(self) -> list[str]:
        """Returns columns that may name annotators who label several items, likely ones first.

        A column that is constant within each value of another such column is a fact about
        annotators, not their name.
        """
        columns = self._several(self.free)
        names = among(columns, {*filter(is_person, columns), *second_tier(columns, "worker")})
        people = []
        for column in sorted(names, key=is_person, reverse=True):
            size = self.table.size(column)
            larger = [other for other in names if self.table.size(other) > size]
            if not any(is_fact(self.table, [other], column) for other in larger):
                people.append(column)
        return people

    def _by_people(self, missing: Texts) -> Iterator[Proposal]:
        """Yields roles of a long table for each column that may name annotators."""
        people = self._people()
        labels = second_tier(self.free, "label")
        tasks: list[Texts] = [()]
        if "task" in missing:
            items = self._several(without(self.free, {*people, *labels}))
            tasks = list(zip(sorted(items, key=_may_be_item, reverse=True), strict=True))
        choices: list[Texts] = [()]
        if "label" in missing and labels:
            choices.append(labels[:1])
        for annotator, task, label in itertools.product(people, tasks, choices):
            yield _columns({"task": task, "worker": [annotator], "label": label})

    def _of_one_judge(self) -> Roles | None:
        """Returns the roles of one annotator, if one column can have the labels.

        It is named as a judge, as labels, or is the only one of few values.
        """
        judges = []
        if not self.flags["label"]:
            judges = self._judges()
        few_values = [c for c in self.free if 2 <= self.table.size(c) <= MOST_ANSWERS]
        columns = judges or self.taken["label"] or second_tier(few_values, "label") or few_values
        if len(columns) == 1:
            return self._single(columns[0], asked=True)
        return None

    def _likely(self, missing: list[str]) -> dict[str, list[str]]:
        """Returns a column for each missing role for which one is left."""
        alike = groups_of(self.table, self.options, self.free)
        likely = list(filter(_may_be_item, self.free))
        second = second_tier(self.unique, "worker")
        items = without(among(likely, self.unique), second)
        items = list(filter(is_id, items)) or items
        times = self._times()
        people = among(self.unique, second + self.taken["worker"])
        if "task" in missing and alike and (people or times) and (times or not items):
            return {"worker": (people or called(items, "id") or times)[:1]}
        item = self.taken["task"] or _only(likely)
        repeated = item and not self.table.is_unique(item) and self._people()
        if repeated or not alike or not {"worker", "label"} <= set(missing):
            return self._left_over(missing)
        if not items:
            grouped = set(itertools.chain.from_iterable(alike))
            items = among(without(self.unique, grouped), self.free)
        one = _only(items or _only(likely))
        if len(alike) > 1:
            self._which_group(alike, one)
        self._check_annotators(alike[0], one)
        filled = {"label": alike[0]}
        if "task" in missing and one:
            filled["task"] = one
        return filled

    def _left_over(self, missing: list[str]) -> dict[str, list[str]]:
        """Returns the column that is left for a role, by its name or as the last one."""
        filled: dict[str, list[str]] = {}
        people = self.taken["worker"]
        if "task" in missing and people:  # each annotator labels an item once
            repeated = without(self.free, self.unique)
            once = _only([c for c in repeated if self.table.is_unique([c, *people])])
            if once:
                filled["task"] = once
        for role in without(missing, filled):
            second = _only(second_tier(self.free, role))
            if second and second not in filled.values():
                filled[role] = second
        one_hot = _only(one_hot_groups(self.table, self.free))
        if "label" in missing and one_hot:
            filled.setdefault("label", one_hot)
        gaps = without(missing, filled)
        taken = set(itertools.chain.from_iterable(filled.values()))
        free = without(self.free, taken)
        if len(gaps) == 1 and len(free) == 1 and (gaps != ["worker"] or self._is_repeated(free[0])):
            filled[gaps[0]] = free
        elif gaps == ["task"] and free and all(folded(c).endswith(("id", "ids")) for c in free):
            filled["task"] = free
        return filled

    def _is_repeated(self, column: str) -> bool:
        """Whether a column may name annotators: its values repeat, and those of items do too."""
        return column not in self.unique and self._of_one_judge() is None

    def _check_votes(self) -> None:
        """Asks if columns are votes: they sum to another in every row, or have such names."""
        total, names = sums_of(self.table)
        if not names:
            if self.votes:
                self._ask_about_votes(self.votes, f"begin with {VOTES!r}")
            return
        reason = f"sum to {total!r} in every row"
        if not vary_together(self.table, names):
            self._ask_about_votes(names, reason)
        alternatives = {
            "If each column is an annotator": _columns({"label": names}),
            "If they are counts of votes": {"votes_columns": as_list(names)},
        }
        problem = f"{', '.join(names)} {reason}"
        columns = self._listed("label")
        self._error("which_label", columns, (), alternatives, open_roles=["label"], problem=problem)

    def _ask_about_votes(self, columns: Texts, reason: str) -> NoReturn:
        """Asks if columns are counts of votes, or classes."""
        flags = {"votes_columns": as_list(columns)}
        ids = without(filter(is_id, self.unique), columns)
        if len(ids) == 1 and not self.taken["task"] and not self.aliases["task"]:
            flags["task_column"] = ids[0]
        names = ", ".join(columns)
        self._error("vote_counts", self._listed("label"), [flags], names=names, reason=reason)

    def _listed(self, *roles: str) -> str:
        """Returns the columns with their numbers of distinct values; likely ones come first."""

        def rank(column: str) -> tuple[bool, bool, int]:
            size = self.table.size(column)
            return not is_second(column, *roles), size < 2, size

        columns = itertools.filterfalse(is_status, self.table.columns)
        text = DISTINCT + self._counts(sorted(columns, key=rank))
        if "label" in roles and (groups := one_hot_groups(self.table, self.free)):
            text += f". One-hot columns: {', '.join(groups)}"
        return text

    def _counts(self, columns: Texts, *, numbered: bool = False) -> str:
        counts = []
        for number, column in enumerate(columns, 1):
            title = number if numbered else column
            counts.append(f"{title} {self.table.size(column):,}")
        return ", ".join(counts)


def _only(columns: Texts) -> list[str]:
    """Returns the columns if there is one, otherwise none."""
    if len(columns) == 1:
        return list(columns)
    return []


def _may_be_item(column: str) -> bool:
    return is_second(column, "task") or is_id(column)


def _pairs_of(roles: Roles, counts: tuple[int, int]) -> str:
    """Returns how many pairs of item and annotator are meant, of how many there are."""
    item = ",".join(roles.task) or "the row's number"
    return f"{counts[0]:,} of {counts[1]:,} pairs of {item} and {','.join(roles.worker)}"


def _bare(part: str) -> str:
    """Returns a part of columns' names as a message shows it."""
    return part.strip(" _-.:") or "no ending"


def _columns(roles: Mapping[str, Texts]) -> dict[str, str]:
    """Returns the flags that name the columns of roles; those without columns are left out."""
    flags = {}
    for role, columns in roles.items():
        if columns:
            flags[f"{role}_column"] = as_list(columns)
    return flags
