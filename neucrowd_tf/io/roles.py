"""Which columns are items, annotators and labels: from flags, aliases and what differs.

Nothing is guessed. If a role is missing, the error lists the columns with their numbers of distinct
values, and ends with a command to paste.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.io.asking import RUNNING, WORDS, Asked, Proposal, as_list, command_line
from neucrowd_tf.io.column_names import (
    MISSING,
    are_answers,
    crossed,
    flagged_columns,
    is_gold,
    is_id,
    is_judge,
    is_known,
    is_missing,
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
    unlike_names,
)
from neucrowd_tf.io.column_values import (
    MOST_ANSWERS,
    answers_of,
    are_several_classes,
    check_free_text,
    exclude_each_other,
    is_constant,
    is_fact,
    is_mean,
    is_recoded,
    one_hot_groups,
    strays,
    sums_of,
    telling_columns,
)
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table
from neucrowd_tf.io.values import numbers_of
from neucrowd_tf.names import ROLES, folded, plain_integers, roles_of

__all__ = ["RUNNING", "WORDS", "Roles", "as_list", "command_line", "decide"]

VOTES = "votes_"
MOST_WIDE = 40  # distinct values of all columns of a wide table
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
    keys: NDArray[np.int64],
    rows: NDArray[np.int64],
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
    others = [column for column in table.columns if column not in used]
    if others:
        telling = telling_columns(table.only(others), keys, rows)
    else:
        telling = []
    if telling or roles.layout == "wide":
        decision.ask_which_rows(roles, telling, counts)
    enough = roles.layout == "long" and counts[0] >= FEWEST_REPEATED
    if enough and are_several_classes(table, keys, rows, *roles.label):
        decision.ask_about_classes(roles, counts)


class _Decision:
    """The state of a decision: the columns of each role so far, and the columns left."""

    def __init__(self, table: Table, options: TableOptions) -> None:
        self.table = table
        self.options = options
        self.path = table.path
        self.flags = {role: flagged_columns(table, options, role) for role in ROLES}
        self.taken = {role: list(columns) for role, columns in self.flags.items()}

    @property
    def free(self) -> list[str]:
        """Columns without a role that could have one."""
        used = {column for columns in self.taken.values() for column in columns}
        return [
            column
            for column in self.table.columns
            if column not in used
            and not any(x(column) for x in (is_status, is_gold, is_summary))
            and (self.table.distinct(column) or not len(self.table))
        ]

    def roles(self) -> Roles:
        """Returns the roles; see `decide`."""
        if self.options.votes_columns:
            return self._votes(self.options.votes_columns)
        self._check_first_line()
        if not self.table.header and not any(self.taken.values()):
            return self._matrix()
        if self.table.header:
            if (pairs := self._pairs()) is not None:
                return pairs
            self._check_answers()
            if (alike := self._same_values()) is not None:
                return alike
            self._take_aliases()
            votes = [name for name in self.table.columns if name.lower().startswith(VOTES)]
            if len(votes) > 1 and not self.taken["worker"] and not self.taken["label"]:
                return self._votes(votes)
        item, annotator, label = (tuple(self.taken[role]) for role in ROLES)
        if len(label) > 1:
            if annotator and not item:
                return self._respondents() or self._ask(["task"])
            if annotator:
                return Roles("one_hot", item, annotator, label)
            return Roles("wide", item, (), label)
        if annotator:
            return self._respondents() or self._long()
        if item and not label and (wide := self._wide(item)) is not None:
            return wide
        if self.flags["label"] and (single := self._single(label[0])) is not None:
            return single
        return self._ask([role for role in ROLES if not self.taken[role]])

    def _check_answers(self) -> None:
        """Asks if columns of whole numbers are counts of votes: if two are named yes and no."""
        ids = [c for c in self.free if is_id(c) and folded(c) != "no"]
        items = self.taken["task"] or roles_of(self.table.columns)["task"] or ids
        numbers = [
            column
            for column in self.free
            if column not in {*items, *ids} and plain_integers(self.table.distinct(column))
        ]
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
            named = [column for column in hits[role] if column in self.free]
            rest = [column for column in self.free if column not in named]
            if role == "label" and (len(named) > 1 or not self.taken["worker"]):
                judged = len(named) > 1 or self._groups(rest)
                named = [c for c in named if not (judged and self._is_judged(c))]
            if len(named) > 1:
                details = {"first": named[0], "second": named[1], "role": WORDS[role]}
                details["columns"] = self._listed(role)
                ids = [column for column in named if is_id(column)]
                proposals: list[Proposal] = [_columns({role: ids})] if len(ids) == 1 else []
                if role == "task":
                    larger = max(named, key=lambda c: len(self.table.distinct(c)))
                    asked = [self._question(c, [larger]) for c in named if c != larger]
                    proposals = [*filter(None, asked), *proposals]
                self._error("two_columns", details, proposals, open_roles=[role])
            self.taken[role] = named

    def _is_judged(self, column: str) -> bool:
        """Whether a column is a text that others judge: of most items, and one for each item."""
        items = self.taken["task"] or [c for c in self.free if folded(c) == "id"]
        if items:
            size = len(set(self.table.joined(items)))
        else:
            size = len(self.table)
        alike = size == len(self.table) or is_constant(self.table, items, column)
        return alike and len(self.table.distinct(column)) > max(size / 2, 5)

    def _error(
        self,
        check: str,
        words: Mapping[str, str],
        proposals: Sequence[Proposal] = (),
        alternatives: Mapping[str, Proposal] | None = None,
        *,
        open_roles: Sequence[str] = (),
        advice: Sequence[str] = (),
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
            ids = [column for column in self.free if folded(column) == "id"]
            if ids and len(table.distinct(ids[0])) < len(table):
                taken["task"] = ids
        label = taken["label"]
        if taken["task"] and self.free and not self.flags["label"]:
            size = len(table)
            numbers = [c for c in self.free if is_id(c) and len(table.distinct(c)) == size]
            columns = [column for column in self.free if column not in numbers] + label
            answers, questions = answers_of(table, taken["task"], taken["worker"], columns)
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
        item = tuple(taken["task"])
        annotator = tuple(taken["worker"])
        return Roles("long", item, annotator, tuple(taken["label"]), reason)

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
        groups = one_hot_groups(self.table, self.free)
        patterns = answers if len(answers) == 1 else groups if len(groups) == 1 else []
        if patterns:
            proposals = [{"label_column": patterns[0]}]
        else:
            proposals = []
        words = {"problem": problem, "columns": columns}
        self._error("which_label", words, proposals, open_roles=["label"])

    # ------------------------------------------------------------- other layouts

    def _votes(self, names: Sequence[str]) -> Roles:
        columns = named_columns(self.path, self.table.columns, names, "votes_columns")
        if not self.taken["task"]:
            hits = [c for c in roles_of(self.table.columns)["task"] if c not in columns]
            if len(hits) == 1:
                self.taken["task"] = hits
            else:
                self.taken["task"] = []
        return Roles("votes", tuple(self.taken["task"]), (), tuple(columns))

    def _pairs(self) -> Roles | None:
        """Returns the roles of columns `ScoreK` and `WorkerK`, if there are such."""
        if self.taken["worker"] or self.taken["label"]:
            return None
        groups: dict[str, list[str]] = defaultdict(list)
        for column in self.table.columns:
            if (numbered := re.fullmatch(r"(.*\D)\d+", column.strip())) is not None:
                groups[numbered[1]].append(column)
        sizes = {name: len(columns) for name, columns in groups.items() if len(columns) > 1}
        aliases = roles_of(sizes)
        workers = aliases["worker"]
        labels = aliases["label"] or [name for name in sizes if is_second(name, "label")]
        if len(workers) != 1 or len(labels) != 1 or sizes[workers[0]] != sizes[labels[0]]:
            return None
        used = [*groups[workers[0]], *groups[labels[0]]]
        item = self.taken["task"]
        if not item:
            others = [column for column in self.table.columns if column not in used]
            ids = roles_of(others)["task"] or [c for c in others if folded(c) == "id"]
            unique = len(ids) == 1 and len(self.table.distinct(ids[0])) == len(self.table)
            if unique:
                item = ids
            else:
                item = []
        return Roles("pairs", tuple(item), tuple(groups[workers[0]]), tuple(groups[labels[0]]))

    def _wide(self, item: Sequence[str], *, named: bool = False) -> Roles | None:
        """Returns the roles of unique items and columns of annotators, if all others are such."""
        columns = [c for c in self.free if c not in item and not is_second(c, "task")]
        people = not named and any(is_second(column, "worker") for column in columns)
        unique = len(set(self.table.joined(item))) == len(self.table)
        if people or not unique or self._groups(columns, named=named) != [columns]:
            return None
        self._check_votes(["worker"])
        self._check_annotators(columns, item)
        return Roles("wide", tuple(item), (), tuple(columns))

    def _same_values(self) -> Roles | None:
        """Returns the roles of an id and columns with one set of values, whatever their names."""
        hits = roles_of(self.table.columns)
        ids = [c for c in self.free if is_id(c) and c not in hits["worker"]]
        items = self.taken["task"] or hits["task"] or [c for c in ids if not is_second(c, "worker")]
        others = self.taken["worker"] or self.taken["label"] or self._times()
        if others or len(items) != 1 or not all(map(is_model, hits["worker"])):
            return None
        columns = [column for column in self.free if column not in items]
        if len(columns) == 1 and is_model(columns[0]):
            return self._single(columns[0])
        if (judge := self._judge(columns)) and (single := self._single(judge)) is not None:
            return single
        roles = self._wide(items, named=True)
        values = [
            {*self.table.distinct(column)} - MISSING for column in (roles.label if roles else ())
        ]
        if all(v <= max(values, key=len) for v in values):
            return roles
        return None

    def _judge(self, columns: Sequence[str]) -> str:
        """Returns the column of a judge's labels if all others are texts, otherwise ""."""
        size = len(self.table)
        few = [c for c in columns if 2 * len(self.table.distinct(c)) <= size]
        numbers = [c for c in columns if not is_id(c) and numbers_of(self.table.distinct(c))]
        if len(few) != 1 or not is_judge(few[0]) or {*numbers} - {*few}:
            return ""
        if any(map(is_model, self.table.distinct(few[0]))):
            return ""  # names of judges
        return few[0]

    def _times(self) -> list[str]:
        """Returns the columns of times that a form has, if each row has another."""
        names = [c for c in self.table.columns if folded(c) in FORM_TIMES]
        names += [c for c in self.table.columns[:1] if folded(c) == "timestamp"]
        return [c for c in names if len(self.table.distinct(c)) == len(self.table)]

    def _groups(
        self, columns: Sequence[str], *, named: bool = False, near: bool = False
    ) -> list[list[str]]:
        """Returns groups of columns that may be an annotator each: linked by values they share.

        With `near`, neighbouring whole numbers link columns too, as a scale's items do.
        Ids, names of other roles (unless `named`), second codings of another column and columns of
        many values are in none.
        """
        values: dict[str, set[str]] = {}
        for column in columns:
            others = () if named else ("task", "label")
            texts = {
                re.sub(r"^(-?\d+)\.0+$", r"\1", text)
                for text in self.table.distinct(column)
                if not is_missing(text, self.options)
            }
            ids = is_id(column) or len(texts) == len(self.table) > 5
            if ids or not 0 < len(texts) <= MOST_WIDE or any(is_second(column, r) for r in others):
                continue
            if near and plain_integers([*texts]):
                texts |= {str(int(text) + step) for text in texts for step in (-1, 1)}
            shared = {
                other: not near and not texts.isdisjoint(seen) for other, seen in values.items()
            }
            if not any(is_recoded(self.table, column, *other) for other in shared.items()):
                values[column] = texts
        groups: list[list[str]] = []
        for column, texts in values.items():
            linked = [g for g in groups if any(texts & values[other] for other in g)]
            joined = [other for group in linked for other in group]
            groups = [*(g for g in groups if g not in linked), [*joined, column]]
        order = list(columns).index
        for group in groups:
            whole = [column for column in group if plain_integers([*values[column]])]
            if len(whole) > 1:
                group[:] = [c for c in group if c in whole or not is_mean(self.table, c, whole)]
        groups = [sorted(g, key=order) for g in groups if len(g) > 1]
        return [g for g in groups if len(set().union(*map(values.get, g))) <= MOST_WIDE]  # type: ignore[arg-type]

    def _respondents(self) -> Roles | None:
        """Returns the roles of a row per annotator, if a flag names a column of such."""
        worker = self.flags["worker"]
        label = self.flags["label"]
        if self.taken["task"] or not worker:
            return None
        if len(label) > 1:
            groups = [label]
        else:
            groups = self._groups(self.free, near=True)
        if len(groups) > 1:
            self._which_group(groups)
        if not groups or len(set(self.table.joined(worker))) < len(self.table):
            return None
        return Roles("respondents", (), tuple(worker), tuple(groups[0]))

    def _which_group(
        self, groups: Sequence[list[str]], task: Mapping[str, Sequence[str]] | None = None
    ) -> NoReturn:
        """Asks for one of several groups of columns, of which the items may be known."""
        problem = f"{len(groups)} groups of columns have different values"
        columns = f"Groups: {'; '.join(as_list(group) for group in groups)}"
        words = {"problem": problem, "columns": columns}
        self._error("which_label", words, [_columns({**(task or {}), "label": groups[0]})])

    def _check_crossed(self, columns: Sequence[str], item: Sequence[str]) -> None:
        """Asks if the names of columns may join annotators and questions, see `crossed`."""
        if (parts := crossed(columns)) is None:
            return
        firsts, lasts = parts
        shown = [", ".join(part.strip(" _-.:") or "no ending" for part in side) for side in parts]
        task = {"task": item} if item and not self.taken["task"] else {}
        first = _columns({**task, "label": [first + lasts[0] for first in firsts]})
        last = _columns({**task, "label": [firsts[0] + last for last in lasts]})
        problem = f"columns' names join two lists ({'; '.join(shown)}), so one may be of questions"
        alternatives = {f"If {shown[1]} are questions": first, f"If {shown[0]} are questions": last}
        if "" in lasts:  # names with and without an ending: it is no annotator
            bare = _columns({**task, "label": firsts})
            alternatives = {"Those without the ending": bare}
        alternatives["If each column is an annotator"] = _columns({**task, "label": columns})
        words = {"problem": problem, "columns": f"Columns: {self._counts(columns)}"}
        self._error("which_label", words, (), alternatives, open_roles=["label"])

    def _check_annotators(self, columns: Sequence[str], item: Sequence[str]) -> None:
        """Asks if columns may be classes, questions, features or further codings."""
        reason = exclude_each_other(self.table, columns)
        if reason:
            self._ask_about_votes(columns, reason)
        self._check_crossed(columns, item)
        again = repeated_codings(columns)
        if again:
            problem = f"{', '.join(again)} may be further codings by annotators of other columns"
        else:
            again = unlike_names(columns) or strays(self.table, columns)
            problem = f"{', '.join(again)} may be about the items, and of no annotator"
        if not again:
            return
        task = {"task": item} if item and not self.taken["task"] else {}
        rest = [column for column in columns if column not in again]
        alternative = _columns({**task, "label": columns})
        words = {"problem": problem, "columns": f"Columns: {self._counts(columns)}"}
        self._error(
            "which_label",
            words,
            [_columns({**task, "label": rest})] if rest[1:] else [],
            {"If each column is an annotator": alternative},
        )

    def _single(self, label: str) -> Roles | None:
        """Returns the roles of one annotator, after whom the column of labels is named."""
        others = [column for column in self.free if column != label]
        unique = [c for c in self.table.columns if len(self.table.distinct(c)) == len(self.table)]
        unique = [c for c in unique if c in others]
        named = roles_of(unique)["task"]
        ids = [c for c in named if not is_text(c)] or list(filter(is_id, unique))
        ids = ids or [c for c in unique if c in named or is_second(c, "task")]
        item = self.taken["task"] or (ids if len(ids) == 1 else [])
        are_texts = all(
            2 * len(self.table.distinct(c)) > len(self.table) for c in others if c not in item
        )
        if not item or not are_texts:
            return None
        unrepeated = len(set(self.table.joined(item))) == len(self.table)
        if unrepeated:
            return Roles("wide", tuple(item), (), (label,))
        return None

    def ask_which_rows(
        self, roles: Roles, telling: Sequence[str], counts: tuple[int, int]
    ) -> NoReturn:
        """Asks which rows are meant; see `ask_about_repeats`."""
        wide = roles.layout == "wide"
        names = ", ".join(telling)
        item = ",".join(roles.task) or "the row's number"
        if telling[1:]:
            tells = "tell"
        else:
            tells = "tells"
        if wide:
            problem = f"rows repeat the item ({item}), so the table is not wide"
        else:
            annotator = ",".join(roles.worker)
            problem = (
                f"{counts[0]:,} of {counts[1]:,} pairs of {item} and {annotator} have several"
                f" labels"
            )
        if telling:
            problem += f"; {names} {tells} their rows apart"
        items = {"task_column": as_list([*roles.task, *telling])}
        proposals: list[Proposal] = []
        people: list[Proposal] = [_columns({"worker": [c]}) for c in telling if is_person(c)]
        if len(telling) == 1:
            question = self._question(telling[0], roles.task)
        else:
            question = None
        part = wide and any(is_which_model(column) for column in telling)  # of the item
        if wide and (people or not part):
            proposals = people + ([question] if question else [])
        elif question is not None and is_question(telling[0]):
            proposals = [question, items]
        elif telling:
            proposals = [items]
        if question and not people:
            alternatives = {"One of them": question}
        else:
            alternatives = {}
        advice = ["The last label of each pair: --duplicates=last"]
        if wide:
            advice = ["Name the annotators' column with --worker_column and one column of labels."]
        words = {"problem": problem}
        self._error("several_questions", words, proposals, alternatives, advice=advice)

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

    def _question(self, column: str, item: Sequence[str]) -> Proposal | None:
        """Returns the rows of the first value of a column; None if its values depend on the item.

        Every item has to be asked nearly each of the questions.
        """
        values = self.table.distinct(column)
        items = set(self.table.joined(item))
        crossed = set(zip(self.table.joined(item), self.table[column], strict=True))
        complete = len(crossed) >= COMPLETE * len(values) * len(items)
        if complete and values[1:]:
            return {"question": f"{column}={values[0]}"}
        return None

    # ------------------------------------------------------------- no header

    def _check_first_line(self) -> None:
        """Raises DataError if each value of the first line occurs again in its column."""
        table = self.table
        if not table.header or len(table) < 2 or any(map(is_known, table.columns)):
            return
        if any(name.startswith("column ") or name not in table[name] for name in table.columns):
            return
        columns = "Columns: " + self._counts([*table.columns], numbered=True)
        words = {"problem": "each of its values occurs again in its column", "columns": columns}
        proposals, advice = self._headerless()
        self._error("no_header", words, proposals, advice=advice)

    def _headerless(self) -> tuple[list[Proposal], tuple[str, ...]]:
        """Returns the proposal for a table without a header, and what to check."""
        names = [str(number) for number in range(1, len(self.table.columns) + 1)]
        sizes = [len(self.table.distinct(column)) for column in self.table.columns]
        if len(names) not in (3, 4) or any(self.taken.values()):
            return [{"header": "none"}], ()
        label, *_, worker, item = (name for _, name in sorted(zip(sizes, names, strict=True)))
        roles = _columns({"task": [item], "worker": [worker], "label": [label]})
        return [{"header": "none", **roles}], (
            "Check which column is the item: the command names the one with most values.",
            f"If each column is an annotator: --label_column={','.join(names)}",
        )

    def _matrix(self) -> Roles:
        columns = list(self.table.columns)
        if len(columns) not in (3, 4) and self._groups(columns) == [columns]:
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
        if nouns[1:]:
            roles = f"{', '.join(nouns[:-1])} and {nouns[-1]}"
        else:
            roles = nouns[0]
        unknown = self.table.header and not any(map(is_known, self.table.columns))
        if unknown:
            advice = ["If the first line is data: --header=none."]
        else:
            advice = []
        words = {"roles": roles, "columns": self._listed(*missing)}
        self._error("missing_role", words, proposals, open_roles=missing, advice=advice)

    def _proposals(self, missing: list[str]) -> list[Proposal]:
        """Returns what may fill the missing roles, likely ones first."""
        likely = self._likely(missing)
        proposals: list[Proposal] = [_columns(likely)] if likely else []
        if "worker" in missing:
            people = map(_columns, self._by_people(missing))
            proposals = [*people, *proposals]
            proposals += self._of_one_judge()
        return proposals

    def _by_people(self, missing: Sequence[str]) -> list[dict[str, list[str]]]:
        """Returns roles of a long table for each column that may name annotators.

        A column that is constant within each value of another such column is a fact about
        annotators, not their name.
        """
        sizes = {column: len(self.table.distinct(column)) for column in self.free}
        names = [c for c in self.free if (is_person(c) or is_second(c, "worker"))]
        people = [c for c in names if 2 <= sizes[c] < len(self.table)]
        people = [
            column
            for column in sorted(people, key=lambda c: not is_person(c))
            if not any(
                sizes[other] > sizes[column] and is_fact(self.table, [other], column)
                for other in people
            )
        ]
        roles = []
        for annotator in people:
            items: list[list[str]] = [[]]
            if "task" in missing:
                repeated = [c for c in self.free if c not in people and sizes[c] >= 2]
                likely = [c for c in repeated if is_second(c, "task") or is_id(c)]
                repeated = [c for c in (*likely, *repeated) if sizes[c] < len(self.table)]
                items = [[c] for c in dict.fromkeys(repeated) if not is_second(c, "label")]
            labels = [c for c in self.free if "label" in missing and is_second(c, "label")]
            for item in items:
                filled = {"worker": [annotator]} | ({"task": item} if item else {})
                roles += [filled, *({**filled, "label": [label]} for label in labels[:1])]
        return roles

    def _of_one_judge(self) -> list[Proposal]:
        """Returns the roles of one annotator, if one column can have the labels."""
        columns = self.taken["label"] or [
            c for c in self.free if 2 <= len(self.table.distinct(c)) <= MOST_ANSWERS
        ]
        if len(columns) == 1:
            single = self._single(columns[0])
        else:
            single = None
        if single:
            return [_columns({"task": single.task, "label": single.label})]
        return []

    def _likely(self, missing: list[str]) -> dict[str, list[str]]:
        """Returns a column for each missing role for which one is left."""
        groups = one_hot_groups(self.table, self.free)
        filled: dict[str, list[str]] = {}
        alike = self._groups(self.free)
        unique = [c for c in self.table.columns if len(self.table.distinct(c)) == len(self.table)]
        likely = [c for c in self.free if is_second(c, "task") or is_id(c)]
        items = [c for c in likely if c in unique and not is_second(c, "worker")]
        items = [c for c in items if is_id(c)] or items
        people = [c for c in unique if is_second(c, "worker") or c in self.taken["worker"]]
        times = self._times()
        if "task" in missing and alike and (people or times) and (times or not items):
            numbers = [column for column in items if folded(column) == "id"]
            return {"worker": (people or numbers or times)[:1]}
        if {"worker", "label"} <= set(missing) and alike:
            items = items or [
                c for c in unique if c in self.free and not any(c in group for group in alike)
            ]
            items = items or (likely if len(likely) == 1 else [])
            if "task" in missing and len(items) == 1:
                task = {"task": items}
            else:
                task = {}
            if len(alike) > 1:
                self._which_group(alike, task)
            self._check_annotators(alike[0], items if len(items) == 1 else ())
            return {**task, "label": alike[0]}
        people = self.taken["worker"]
        size = len(self.table)
        if "task" in missing and people:  # each annotator labels an item once
            once = [c for c in self.free if len(set(self.table.joined([c, *people]))) == size]
            once = [c for c in once if len(self.table.distinct(c)) < size]
            if len(once) == 1:
                filled |= {"task": once}
        for role in [role for role in missing if role not in filled]:
            second = [column for column in self.free if is_second(column, role)]
            if len(second) == 1 and second not in filled.values():
                filled[role] = second
        if "label" in missing and "label" not in filled and len(groups) == 1:
            filled["label"] = groups
        gaps = [role for role in missing if role not in filled]
        taken = [column for columns in filled.values() for column in columns]
        free = [column for column in self.free if column not in taken]
        if len(gaps) == 1 and len(free) == 1 and (gaps != ["worker"] or free[0] not in unique):
            filled[gaps[0]] = free
        elif gaps == ["task"] and free and all(folded(c).endswith(("id", "ids")) for c in free):
            filled["task"] = free
        return filled

    def _check_votes(self, missing: list[str]) -> None:
        """Raises DataError if columns sum to another one in every row."""
        if "worker" not in missing:
            return
        total, names = sums_of(self.table)
        if names:
            self._ask_about_votes(names, f"sum to {total!r} in every row")

    def _ask_about_votes(self, columns: Sequence[str], reason: str) -> NoReturn:
        """Asks if columns are counts of votes, or classes."""
        words = {"names": ", ".join(columns), "reason": reason, "columns": self._listed("label")}
        self._error("vote_counts", words, [{"votes_columns": as_list(columns)}])

    def _listed(self, *roles: str) -> str:
        """Returns the columns with their numbers of distinct values; likely ones come first."""
        columns = [column for column in self.table.columns if not is_status(column)]
        sizes = {column: len(self.table.distinct(column)) for column in columns}

        def rank(column: str) -> tuple[bool, bool, int]:
            likely = any(is_second(column, role) for role in roles)
            return not likely, sizes[column] < 2, sizes[column]

        text = "Columns and their distinct values: " + self._counts(sorted(columns, key=rank))
        if "label" in roles and (groups := one_hot_groups(self.table, self.free)):
            text += f". One-hot columns: {', '.join(groups)}"
        return text

    def _counts(self, columns: Sequence[str], *, numbered: bool = False) -> str:
        titles = {name: str(at) for at, name in enumerate(self.table.columns, 1)}
        return ", ".join(
            f"{titles[name] if numbered else name} {len(self.table.distinct(name)):,}"
            for name in columns
        )


def _columns(roles: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Returns the flags that name the columns of roles."""
    return {f"{role}_column": as_list(columns) for role, columns in roles.items()}
