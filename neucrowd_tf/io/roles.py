"""Which columns are items, annotators and labels: from flags, aliases and what differs.

Nothing is guessed. If a role is missing, the error lists the columns with their numbers of distinct
values, and ends with a command to paste.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, NoReturn

from neucrowd_tf.declare.types import Indices, Texts
from neucrowd_tf.io.annotator_columns import (
    exclude_each_other,
    groups_of,
    strays,
    sums_of,
    vary_together,
)
from neucrowd_tf.io.asking import RUNNING, WORDS, Asked, Proposal, as_list, command_line
from neucrowd_tf.io.column_names import (
    MISSING,
    answer_of,
    are_answers,
    called_id,
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
    without,
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
from neucrowd_tf.io.table import Table
from neucrowd_tf.io.values import numbers_of
from neucrowd_tf.names import ROLES, folded, plain_integers, roles_of

__all__ = ["RUNNING", "WORDS", "Roles", "as_list", "command_line", "decide"]

VOTES = "votes_"
FORM_TIMES = ("starttime", "startdate", "submitdate", "datestamp")  # of a row per respondent
FEWEST_REPEATED = 5  # pairs that have other labels each time by more than chance
COMPLETE = 0.9  # of the pairs of items and questions, if a column names questions


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
    used = {*roles.task, *roles.worker, *roles.label}
    decision = _Decision(table, options)
    others = without(table.columns, used)
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
    for column in without(table.columns, {*roles.task, *roles.worker, *roles.label}):
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
    """The state of a decision: the columns of each role so far, and the columns left."""

    def __init__(self, table: Table, options: TableOptions) -> None:
        self.table = table
        self.options = options
        self.path = table.path
        self.size = len(table)
        self.unique = [c for c in table.columns if table.size(c) == self.size]
        self.flags = {role: flagged_columns(table, options, role) for role in ROLES}
        self.taken = {role: list(columns) for role, columns in self.flags.items()}
        self.usable = []  # columns that could have a role
        for column in table.columns:
            about = is_status(column) or is_gold(column) or is_summary(column)
            if not about and (table.size(column) or not self.size):
                self.usable.append(column)

    @property
    def free(self) -> list[str]:
        """Columns without a role that could have one."""
        used = set(itertools.chain.from_iterable(self.taken.values()))
        return without(self.usable, used)

    def roles(self) -> Roles:
        """Returns the roles; see `decide`."""
        if self.options.votes_columns:
            return self._votes(self.options.votes_columns)
        self._check_first_line()
        if not self.table.header and not any(self.taken.values()):
            return self._matrix()
        if self.table.header:
            sure = self._pairs()
            if sure is None:
                self._check_answers()
                sure = self._same_values()
            if sure is not None:
                return sure
            self._take_aliases()
            votes = [name for name in self.table.columns if name.lower().startswith(VOTES)]
            if len(votes) > 1 and not self.taken["worker"] and not self.taken["label"]:
                return self._votes(votes)
        item, annotator, label = (tuple(self.taken[role]) for role in ROLES)
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
        return self._ask([role for role in ROLES if not self.taken[role]])

    def _check_answers(self) -> None:
        """Asks if columns of whole numbers are counts of votes: if two are named yes and no."""
        ids = [c for c in self.free if is_id(c) and answer_of(c) != "no"]
        items = self.taken["task"] or roles_of(self.table.columns)["task"] or ids
        numbers = []
        for column in self.free:
            if column not in {*items, *ids} and plain_integers(self.table.distinct(column)):
                numbers.append(column)
        taken = self.taken["worker"] or self.taken["label"] or roles_of(self.free)["worker"]
        if not taken and are_answers(numbers):
            self._check_votes(["worker"])
            self._ask_about_votes(numbers, "are named as answers and have whole numbers")

    def _take_aliases(self) -> None:
        """Takes columns whose names are aliases of a role that no flag names."""
        hits = roles_of(self.table.columns)
        for role in ROLES:
            if self.taken[role]:
                continue
            free = self.free
            named = [column for column in hits[role] if column in free]
            if role == "label" and (len(named) > 1 or not self.taken["worker"]):
                rest = without(free, named)
                if len(named) > 1 or groups_of(self.table, self.options, rest):
                    named = [column for column in named if not self._is_judged(column)]
            if len(named) > 1:
                self._ask_which(role, named)
            self.taken[role] = named

    def _ask_which(self, role: str, named: Texts) -> NoReturn:
        """Asks which of several columns with aliases of a role is meant."""
        proposals: list[Proposal] = []
        if role == "task":
            larger = max(named, key=self.table.size)
            for column in named:
                question = None if column == larger else self._question(column, [larger])
                if question is not None:
                    proposals.append(question)
        ids = list(filter(is_id, named))
        if len(ids) == 1:
            proposals.append(_columns({role: ids}))
        words = {"first": named[0], "second": named[1], "role": WORDS[role]}
        words["columns"] = self._listed(role)
        self._error("two_columns", words, proposals, open_roles=[role])

    def _is_judged(self, column: str) -> bool:
        """Whether a column is a text that others judge: of most items, and one for each item."""
        items = self.taken["task"] or called_id(self.free)
        size = len(set(self.table.joined(items))) if items else self.size
        alike = size == self.size or is_constant(self.table, items, column)
        return alike and self.table.size(column) > max(size / 2, 5)

    def _error(
        self,
        check: str,
        words: Mapping[str, str],
        proposals: Sequence[Proposal] = (),
        alternatives: Mapping[str, Proposal] | None = None,
        *,
        open_roles: Texts = (),
        advice: Texts = (),
    ) -> NoReturn:
        """Raises the question of a check; see `Asked`."""
        named = _columns({role: columns for role, columns in self.flags.items() if columns})
        raise Asked(check, self.path, words, proposals, alternatives, open_roles, named, advice)

    def _long(self) -> Roles:
        """Returns the roles of a table with a column of annotators."""
        table = self.table
        taken = self.taken
        reason = ""
        if not taken["task"]:
            ids = called_id(self.free)
            if ids and ids[0] not in self.unique:
                taken["task"] = ids
        label = taken["label"]
        if taken["task"] and self.free and not self.flags["label"]:
            columns = [c for c in self.free if not is_id(c) or c not in self.unique]
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
        if missing := [role for role in ROLES if not taken[role]]:
            return self._ask(missing)
        item, annotator, labels = (tuple(taken[role]) for role in ROLES)
        return Roles("long", item, annotator, labels, reason)

    def _check_label(self, label: str, answers: list[str], questions: list[str]) -> None:
        """Asks if the column that an alias takes is the true label or a question's name."""
        others = [column for column in answers if column != label]
        if label in questions:
            problem = f"{label!r} names a question, not an answer: it differs between all rows of"
            self._which(others, f"{problem} an item and annotator")
        constant = is_constant(self.table, self.taken["task"], label)
        if folded(label) == "label" and others and constant:
            problem = f"{label!r} never differs within an item, so it may be the true label"
            self._which(others, problem)

    def _which(self, answers: list[str], problem: str) -> NoReturn:
        self.taken["label"] = []
        columns = f"Columns and their distinct values: {self._counts(answers or self.free)}"
        patterns = answers
        if len(answers) != 1:
            patterns = one_hot_groups(self.table, self.free)
        proposals = [{"label_column": patterns[0]}] if len(patterns) == 1 else []
        words = {"problem": problem, "columns": columns}
        self._error("which_label", words, proposals, open_roles=["label"])

    # ------------------------------------------------------------- other layouts

    def _votes(self, names: Texts) -> Roles:
        columns = named_columns(self.path, self.table.columns, names, "votes_columns")
        items = self.taken["task"]
        if not items:
            items = without(roles_of(self.table.columns)["task"], columns)
        if len(items) != 1 and not self.taken["task"]:
            items = []
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
        item = self.taken["task"]
        if not item:
            others = without(self.table.columns, {*annotators, *scores})
            item = roles_of(others)["task"] or called_id(others)
            if len(item) != 1 or item[0] not in self.unique:
                item = []
        return Roles("pairs", tuple(item), tuple(annotators), tuple(scores))

    def _wide(self, item: Texts, *, named: bool = False) -> Roles | None:
        """Returns the roles of unique items and columns of annotators, if all others are such."""
        columns = [c for c in self.free if c not in item and not is_second(c, "task")]
        people = not named and any(is_second(column, "worker") for column in columns)
        if people or not self.table.is_unique(item):
            return None
        if groups_of(self.table, self.options, columns, named=named) != [columns]:
            return None
        self._check_votes(["worker"])
        self._check_annotators(columns, item)
        return Roles("wide", tuple(item), (), tuple(columns))

    def _same_values(self) -> Roles | None:
        """Returns the roles of an id and columns with one set of values, whatever their names."""
        hits = roles_of(self.table.columns)
        items = self.taken["task"] or hits["task"]
        if not items:
            ids = [c for c in self.free if is_id(c) and c not in hits["worker"]]
            items = [column for column in ids if not is_second(column, "worker")]
        others = self.taken["worker"] or self.taken["label"] or self._times()
        if others or len(items) != 1 or not all(map(is_model, hits["worker"])):
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
        largest = max(values, key=len)
        return roles if all(texts <= largest for texts in values) else None

    def _judge(self, columns: Texts) -> str:
        """Returns the column of a judge's labels if all others are texts, otherwise ""."""
        few = [c for c in columns if 2 * self.table.size(c) <= self.size]
        if len(few) != 1 or not is_judge(few[0]):
            return ""
        for column in columns:
            values = self.table.distinct(column)
            if column != few[0] and not is_id(column) and numbers_of(values):
                return ""
        return "" if any(map(is_model, self.table.distinct(few[0]))) else few[0]

    def _times(self) -> list[str]:
        """Returns the columns of times that a form has, if each row has another."""
        names = [c for c in self.table.columns if folded(c) in FORM_TIMES]
        names += [c for c in self.table.columns[:1] if folded(c) == "timestamp"]
        return [column for column in names if column in self.unique]

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

    def _which_group(
        self, groups: Sequence[list[str]], task: Mapping[str, Texts] | None = None
    ) -> NoReturn:
        """Asks for one of several groups of columns, of which the items may be known."""
        problem = f"{len(groups)} groups of columns have different values"
        columns = f"Groups: {'; '.join(map(as_list, groups))}"
        words = {"problem": problem, "columns": columns}
        self._error("which_label", words, [_columns({**(task or {}), "label": groups[0]})])

    def _check_annotators(self, columns: Texts, item: Texts) -> None:
        """Asks if columns may be classes, questions, features or further codings."""
        reason = exclude_each_other(self.table, columns)
        if reason:
            self._ask_about_votes(columns, reason)
        task = {"task": item} if item and not self.taken["task"] else {}
        every = {"If each column is an annotator": _columns({**task, "label": columns})}
        words = {"columns": f"Columns: {self._counts(columns)}"}
        parts = crossed(columns)
        if parts is not None:
            firsts, lasts = parts
            shown = [", ".join(map(_bare, side)) for side in parts]
            words["problem"] = (
                f"columns' names join two lists ({'; '.join(shown)}), so one may be of questions"
            )
            if "" in lasts:  # names with and without an ending: it is no annotator
                ways = {"Those without the ending": firsts}
            else:
                ways = {
                    f"If {shown[1]} are questions": [first + lasts[0] for first in firsts],
                    f"If {shown[0]} are questions": [firsts[0] + last for last in lasts],
                }
            alternatives = {way: _columns({**task, "label": x}) for way, x in ways.items()}
            self._error("which_label", words, (), {**alternatives, **every}, open_roles=["label"])
        others = repeated_codings(columns)
        problem = "may be further codings by annotators of other columns"
        if not others:
            others = unlike_names(columns) or strays(self.table, columns)
            problem = "may be about the items, and of no annotator"
        if others:
            self._ask_without(columns, others, problem, "annotator", task)

    def _ask_without(
        self,
        columns: Texts,
        others: Texts,
        problem: str,
        noun: str,
        task: Mapping[str, Texts] | None = None,
    ) -> NoReturn:
        """Asks if some columns that look like an annotator or item each look wrong."""
        words = {"problem": f"{', '.join(others)} {problem}"}
        words["columns"] = f"Columns: {self._counts(columns)}"
        rest = without(columns, others)
        proposals = [_columns({**(task or {}), "label": rest})] if rest[1:] else []
        every = {f"If each column is an {noun}": _columns({**(task or {}), "label": columns})}
        self._error("which_label", words, proposals, every)

    def _single(self, label: str, *, asked: bool = False) -> Roles | None:
        """Returns the roles of one annotator, after whom the column of labels is named.

        Other columns have to be texts, if neither flags name items and labels nor it is asked.
        """
        others = [column for column in self.free if column != label]
        item = self.taken["task"]
        if not item:
            unique = [column for column in self.unique if column in others]
            named = roles_of(unique)["task"]
            item = [c for c in named if not is_text(c)] or list(filter(is_id, unique))
            item = item or [c for c in unique if c in named or is_second(c, "task")]
            if len(item) != 1:
                return None
        sure = asked or bool(self.flags["task"] and self.flags["label"])
        are_texts = all(2 * self.table.size(c) > self.size for c in others if c not in item)
        if (sure or are_texts) and self.table.is_unique(item):
            return Roles("wide", tuple(item), (), (label,))
        return None

    def ask_which_rows(self, roles: Roles, telling: Texts, counts: tuple[int, int]) -> NoReturn:
        """Asks which rows are meant; see `ask_about_repeats`."""
        wide = roles.layout == "wide"
        item = ",".join(roles.task) or "the row's number"
        advice = "The last label of each pair: --duplicates=last"
        if wide:
            problem = f"rows repeat the item ({item}), so the table is not wide"
            advice = "Name the annotators' column with --worker_column and one column of labels."
        else:
            pairs = f"{counts[0]:,} of {counts[1]:,} pairs of {item} and {','.join(roles.worker)}"
            problem = f"{pairs} have several labels"
        if telling:
            verb = "tell" if telling[1:] else "tells"
            problem += f"; {', '.join(telling)} {verb} their rows apart"
        parts = [column for column in telling if not is_question(column)]
        named = [column for column in telling if is_question(column)]
        question = self._question(telling[-1], roles.task) if len(telling) == 1 else None
        if parts and len(named) == 1:
            question = self._question(named[0], [*roles.task, *parts])
        asked: list[Proposal] = [question] if question else []
        items = {"task_column": as_list([*roles.task, *telling])}
        people: list[Proposal] = [_columns({"worker": [c]}) for c in telling if is_person(c)]
        proposals: list[Proposal] = [items] if telling else []
        if wide and (people or not any(map(is_which_model, telling))):
            proposals = people + asked
        elif question and parts and named:
            proposals = [{"task_column": as_list([*roles.task, *parts]), **question}]
        elif question and named:
            proposals = [question, items]
        alternatives = {"One of them": question} if question and not people else {}
        words = {"problem": problem}
        self._error("several_questions", words, proposals, alternatives, advice=[advice])

    def ask_about_question(self, roles: Roles, column: str, split: tuple[int, int]) -> NoReturn:
        """Asks for one question; see `ask_about_questions`."""
        rows = f"{split[0]:,} of {split[1]:,} items have several values of {column}"
        words = {"problem": f"{rows}, so that its rows may answer several questions"}
        items: Proposal = {"task_column": as_list([*roles.task, column])}
        question: Proposal = {"question": f"{column}={self.table.distinct(column)[0]}"}
        alternatives = {"If each question is an item": items}
        advice = ["If all rows answer one question: --duplicates=last"]
        self._error("several_questions", words, [question], alternatives, advice=advice)

    def ask_about_classes(self, roles: Roles, counts: tuple[int, int]) -> NoReturn:
        """Asks about rows that may each have one of several classes of an answer."""
        names = f"{','.join(roles.task)} and {','.join(roles.worker)}"
        problem = (
            f"{counts[0]:,} of {counts[1]:,} pairs of {names} have several labels, never one twice,"
            " so that each row may be one of several classes"
        )
        advice = (
            "For a yes/no question per class, write an answer in one cell: --multi_label='|'",
            "The last label of each pair: --duplicates=last",
        )
        self._error("several_questions", {"problem": problem}, advice=advice)

    def _question(self, column: str, item: Texts) -> Proposal | None:
        """Returns the rows of the first value of a column; None if its values depend on the item.

        Every item has to be asked nearly each of the questions.
        """
        values = self.table.distinct(column)
        items = self.table.joined(item)
        asked = len(set(zip(items, self.table[column], strict=True)))
        if values[1:] and asked >= COMPLETE * len(values) * len(set(items)):
            return {"question": f"{column}={values[0]}"}
        return None

    # ------------------------------------------------------------- no header

    def _check_first_line(self) -> None:
        """Raises DataError if each value of the first line occurs again in its column."""
        table = self.table
        if not table.header or len(table) < 2 or any(map(is_known, table.columns)):
            return
        for name in table.columns:
            if name.startswith("column ") or name not in table[name]:
                return
        columns = "Columns: " + self._counts([*table.columns], numbered=True)
        words = {"problem": "each of its values occurs again in its column", "columns": columns}
        proposals, advice = self._headerless()
        self._error("no_header", words, proposals, advice=advice)

    def _headerless(self) -> tuple[list[Proposal], tuple[str, ...]]:
        """Returns the proposal for a table without a header, and what to check."""
        names = [str(number) for number in range(1, len(self.table.columns) + 1)]
        if len(names) not in (3, 4) or any(self.taken.values()):
            return [{"header": "none"}], ()
        sizes = map(self.table.size, self.table.columns)
        label, *_, worker, item = (name for _, name in sorted(zip(sizes, names, strict=True)))
        roles = _columns({"task": [item], "worker": [worker], "label": [label]})
        return [{"header": "none", **roles}], (
            "Check which column is the item: the command names the one with most values.",
            f"If each column is an annotator: --label_column={','.join(names)}",
        )

    def _matrix(self) -> Roles:
        columns = list(self.table.columns)
        alike = groups_of(self.table, self.options, columns)
        if len(columns) not in (3, 4) and alike == [columns]:
            return Roles("matrix", (), (), tuple(columns))
        listed = "Columns and their distinct values: " + self._counts(columns)
        proposals, advice = self._headerless()
        words = {"roles": "item, annotator and label", "columns": listed}
        self._error("missing_role", words, proposals, open_roles=ROLES, advice=advice)

    # ------------------------------------------------------------- asking

    def _ask(self, missing: list[str]) -> NoReturn:
        """Asks for all missing roles."""
        self._check_votes(missing)
        proposals = self._proposals(missing)
        if missing == ["label"] and len(proposals) == 1:
            (column,) = proposals[0].values()
            if column in self.table.columns:
                texts, codes = self.table.codes(column)
                check_free_text(self.path, column, len(texts), len(codes))
        nouns = [WORDS[role] for role in missing]
        roles = ", ".join(nouns[:-1]) + " and " * bool(nouns[1:]) + nouns[-1]
        unknown = self.table.header and not any(map(is_known, self.table.columns))
        advice = ["If the first line is data: --header=none."] if unknown else []
        words = {"roles": roles, "columns": self._listed(*missing)}
        others: dict[str, Proposal] = {}
        if "worker" in missing and (judge := self._of_one_judge()) is not None:
            used = {*judge.task, *judge.label}
            few_values = [
                c for c in without(self.free, used) if 2 <= 2 * self.table.size(c) <= self.size
            ]
            if len(few_values) == 1:
                whole = {"task": judge.task, "worker": few_values, "label": judge.label}
                others = {f"If {few_values[0]} names annotators": _columns(whole)}
        self._error("missing_role", words, proposals, others, open_roles=missing, advice=advice)

    def _proposals(self, missing: list[str]) -> list[Proposal]:
        """Returns what may fill the missing roles, likely ones first."""
        likely = self._likely(missing)
        proposals: list[Proposal] = [_columns(likely)] if likely else []
        if "worker" in missing:
            people = map(_columns, self._by_people(missing))
            proposals = [*people, *proposals]
            judge = self._of_one_judge()
            if judge is not None:
                alone = _columns({"task": judge.task, "label": judge.label})
                label = judge.label[0]
                first = label in self._judges() and label not in likely.get("label", ())
                proposals.insert(0 if first else len(proposals), alone)
        return proposals

    def _judges(self) -> list[str]:
        """Returns the columns named as a judge whose values are few and no models."""
        judges = []
        for column in filter(is_judge, self.free):
            values = self.table.distinct(column)
            few_values = 2 <= len(values) <= min(MOST_ANSWERS, self.size / 2)
            if few_values and not any(map(is_model, values)):
                judges.append(column)
        return judges

    def _people(self) -> list[str]:
        """Returns columns that may name annotators who label several items, likely ones first.

        A column that is constant within each value of another such column is a fact about
        annotators, not their name.
        """
        size = self.table.size
        names = [c for c in self.free if is_person(c) or is_second(c, "worker")]
        names = [c for c in names if 2 <= size(c) < self.size]
        people = []
        for column in sorted(names, key=is_person, reverse=True):
            larger = [other for other in names if size(other) > size(column)]
            if not any(is_fact(self.table, [other], column) for other in larger):
                people.append(column)
        return people

    def _by_people(self, missing: Texts) -> list[dict[str, list[str]]]:
        """Returns roles of a long table for each column that may name annotators."""
        people = self._people()
        items: list[str] = []
        if "task" in missing:
            several = [c for c in self.free if c not in people and self.table.size(c) >= 2]
            likely = [c for c in several if is_second(c, "task") or is_id(c)]
            for column in dict.fromkeys((*likely, *several)):
                if self.table.size(column) < self.size and not is_second(column, "label"):
                    items.append(column)
        tasks = [{"task": [item]} for item in items] if "task" in missing else [{}]
        labels = [c for c in self.free if "label" in missing and is_second(c, "label")]
        roles = []
        for annotator in people:
            for task in tasks:
                filled = {"worker": [annotator], **task}
                roles.append(filled)
                if labels:
                    roles.append({**filled, "label": labels[:1]})
        return roles

    def _of_one_judge(self) -> Roles | None:
        """Returns the roles of one annotator, if one column can have the labels.

        It is named as a judge, as labels, or is the only one of few values.
        """
        few_values = [c for c in self.free if 2 <= self.table.size(c) <= MOST_ANSWERS]
        judges = [] if self.flags["label"] else self._judges()
        columns = judges or self.taken["label"] or second_tier(few_values, "label") or few_values
        return self._single(columns[0], asked=True) if len(columns) == 1 else None

    def _likely(self, missing: list[str]) -> dict[str, list[str]]:
        """Returns a column for each missing role for which one is left."""
        alike = groups_of(self.table, self.options, self.free)
        likely = [c for c in self.free if is_second(c, "task") or is_id(c)]
        items = [c for c in likely if c in self.unique and not is_second(c, "worker")]
        items = list(filter(is_id, items)) or items
        times = self._times()
        people = [c for c in self.unique if is_second(c, "worker") or c in self.taken["worker"]]
        if "task" in missing and alike and (people or times) and (times or not items):
            numbers = called_id(items)
            return {"worker": (people or numbers or times)[:1]}
        item = self.taken["task"] or (likely if len(likely) == 1 else [])
        repeated = item and not self.table.is_unique(item) and self._people()
        if {"worker", "label"} <= set(missing) and alike and not repeated:
            in_groups = set(itertools.chain.from_iterable(alike))
            items = items or [c for c in self.unique if c in self.free and c not in in_groups]
            items = items or (likely if len(likely) == 1 else [])
            one = items if len(items) == 1 else []
            task = {"task": one} if "task" in missing and one else {}
            if len(alike) > 1:
                self._which_group(alike, task)
            self._check_annotators(alike[0], one)
            return {**task, "label": alike[0]}
        return self._left_over(missing)

    def _left_over(self, missing: list[str]) -> dict[str, list[str]]:
        """Returns the column that is left for a role, by its name or as the last one."""
        filled: dict[str, list[str]] = {}
        people = self.taken["worker"]
        if "task" in missing and people:  # each annotator labels an item once
            once = without(self.free, self.unique)
            once = [c for c in once if self.table.is_unique([c, *people])]
            if len(once) == 1:
                filled["task"] = once
        for role in missing:
            second = second_tier(self.free, role)
            if role not in filled and len(second) == 1 and second not in filled.values():
                filled[role] = second
        one_hot = one_hot_groups(self.table, self.free)
        if "label" in missing and "label" not in filled and len(one_hot) == 1:
            filled["label"] = one_hot
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

    def _check_votes(self, missing: list[str]) -> None:
        """Raises DataError if columns sum to another one in every row."""
        if "worker" not in missing:
            return
        total, names = sums_of(self.table)
        if names:
            reason = f"sum to {total!r} in every row"
            if not vary_together(self.table, names):
                self._ask_about_votes(names, reason)
            alternatives = {
                "If each column is an annotator": _columns({"label": names}),
                "If they are counts of votes": {"votes_columns": as_list(names)},
            }
            words = {"problem": f"{', '.join(names)} {reason}", "columns": self._listed("label")}
            self._error("which_label", words, (), alternatives, open_roles=["label"])

    def _ask_about_votes(self, columns: Texts, reason: str) -> NoReturn:
        """Asks if columns are counts of votes, or classes."""
        words = {"names": ", ".join(columns), "reason": reason, "columns": self._listed("label")}
        flags: Proposal = {"votes_columns": as_list(columns)}
        ids = [column for column in self.unique if is_id(column) and column not in columns]
        if len(ids) == 1 and not self.taken["task"] and not roles_of(self.table.columns)["task"]:
            flags = {**flags, "task_column": ids[0]}
        self._error("vote_counts", words, [flags])

    def _listed(self, *roles: str) -> str:
        """Returns the columns with their numbers of distinct values; likely ones come first."""

        def rank(column: str) -> tuple[bool, bool, int]:
            likely = any(is_second(column, role) for role in roles)
            size = self.table.size(column)
            return not likely, size < 2, size

        columns = [column for column in self.table.columns if not is_status(column)]
        text = "Columns and their distinct values: " + self._counts(sorted(columns, key=rank))
        if "label" in roles and (groups := one_hot_groups(self.table, self.free)):
            text += f". One-hot columns: {', '.join(groups)}"
        return text

    def _counts(self, columns: Texts, *, numbered: bool = False) -> str:
        titles = list(columns)
        if numbered:
            titles = [str(number) for number in range(1, len(columns) + 1)]
        sizes = map(self.table.size, columns)
        return ", ".join(f"{title} {size:,}" for title, size in zip(titles, sizes, strict=True))


def _bare(part: str) -> str:
    """Returns a part of columns' names as a message shows it."""
    return part.strip(" _-.:") or "no ending"


def _columns(roles: Mapping[str, Texts]) -> dict[str, str]:
    """Returns the flags that name the columns of roles."""
    return {f"{role}_column": as_list(columns) for role, columns in roles.items()}
