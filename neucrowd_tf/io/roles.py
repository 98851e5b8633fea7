"""Which columns are items, annotators and labels: from flags, aliases and what differs.

Nothing is guessed. If a role is missing, the error lists the columns with their numbers of distinct
values, and ends with a command to paste.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, NamedTuple

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.checks import error
from neucrowd_tf.io.column_names import (
    SHOWN,
    few,
    flagged_columns,
    is_gold,
    is_known,
    is_missing,
    is_second,
    is_status,
    named_columns,
)
from neucrowd_tf.io.column_values import (
    answers_of,
    check_free_text,
    is_constant,
    one_hot_groups,
    sums_of,
)
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table
from neucrowd_tf.names import ROLES, folded, roles_of

WORDS = {"task": "item", "worker": "annotator", "label": "label"}
VOTES = "votes_"
HOLES = {role: word.upper() for role, word in WORDS.items()}
# The arguments of the command that reads tables, which a proposal repeats; the command sets them.
RUNNING: ContextVar[tuple[str, ...]] = ContextVar("RUNNING", default=())
MOST_WIDE = 40  # distinct values of all columns of a wide table


class Roles(NamedTuple):
    """Which columns have which role, and how the table is laid out.

    Attributes:
        layout: "pairs" has columns `ScoreK` and `WorkerK`; the others are as their names say.
        task: columns of items; () if items are numbered by their rows.
        worker: columns of annotators.
        label: columns of labels, counts or annotators.
        reason: why this is the column of labels, if neither a flag nor an alias says so.
    """

    layout: Literal["long", "wide", "one_hot", "votes", "pairs", "matrix"]
    task: tuple[str, ...] = ()
    worker: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    reason: str = ""


def decide(table: Table, options: TableOptions) -> Roles:
    """Returns the roles of a table's columns.

    Raises:
        DataError: what has to be named, with a command to paste.
    """
    return _Decision(table, options).roles()


class _Decision:
    """The state of a decision: the columns of each role so far, and the columns left."""

    def __init__(self, table: Table, options: TableOptions) -> None:
        self.table, self.options, self.path = table, options, table.path
        self.flags = {role: flagged_columns(table, options, role) for role in ROLES}
        self.held = {role: list(columns) for role, columns in self.flags.items()}

    @property
    def left(self) -> list[str]:
        """Columns without a role that could have one."""
        used = {column for columns in self.held.values() for column in columns}
        return [
            column
            for column in self.table.columns
            if column not in used and not is_status(column) and not is_gold(column)
        ]

    def roles(self) -> Roles:
        """Returns the roles; see `decide`."""
        if self.options.votes_columns:
            return self._votes(self.options.votes_columns)
        self._check_first_line()
        if not self.table.header and not any(self.held.values()):
            return self._matrix()
        if self.table.header:
            if (pairs := self._pairs()) is not None:
                return pairs
            self._take_aliases()
            votes = [name for name in self.table.columns if name.lower().startswith(VOTES)]
            if len(votes) > 1 and not self.held["worker"] and not self.held["label"]:
                return self._votes(votes)
        item, annotator, label = (tuple(self.held[role]) for role in ROLES)
        if len(label) > 1:
            layout: Any = "one_hot" if annotator else "wide"
            if layout == "one_hot" and not item:
                self._ask(["task"])
            return Roles(layout, item, annotator, label)
        if annotator:
            return self._long()
        if item and not label and (columns := self._wide(item)):
            self._check_votes(["worker"])
            return Roles("wide", item, (), columns)
        return self._ask([role for role in ROLES if not self.held[role]])

    def _take_aliases(self) -> None:
        """Takes columns whose names are aliases of a role that no flag names."""
        hits = roles_of(self.table.columns)
        for role in ROLES:
            if self.held[role]:
                continue
            named = [column for column in hits[role] if column in self.left]
            if len(named) > 1:
                words = {"first": named[0], "second": named[1], "role": WORDS[role]}
                command = self._command({role: HOLES[role]})
                raise self._error("two_columns", self._listed(role), command, **words)
            self.held[role] = named

    def _error(self, name: str, columns: str, command: str, **words: str) -> DataError:
        """Returns the error of a check that lists columns and ends with a command."""
        return error(name, self.path, columns=columns, advice=f"\n{command}", **words)

    def _long(self) -> Roles:
        """Returns the roles of a table with a column of annotators."""
        table = self.table
        if not self.held["task"]:
            ids = [column for column in self.left if folded(column) == "id"]
            if ids and len(table.distinct(ids[0])) < len(table):
                self.held["task"] = ids
        reason = ""
        item, annotator, label = (self.held[role] for role in ROLES)
        if item and self.left and not self.flags["label"]:
            answers, questions = answers_of(table, item, annotator, self.left + label)
            if label:
                self._check_label(label[0], answers, questions)
            elif len(answers) == 1:
                self.held["label"] = answers
                reason = "the only column of few values that differs between rows of an item"
            elif answers:
                self._which(answers, "several columns could be the label")
        missing = [role for role in ROLES if not self.held[role]]
        if missing:
            return self._ask(missing)
        item, annotator, label = (self.held[role] for role in ROLES)
        return Roles("long", tuple(item), tuple(annotator), tuple(label), reason)

    def _check_label(self, label: str, answers: list[str], questions: list[str]) -> None:
        """Asks if the column that an alias takes is the true label or a question's name."""
        others = [column for column in answers if column != label]
        if label in questions:
            problem = f"{label!r} names a question, not an answer: it differs between all rows of"
            self._which(others, f"{problem} an item and annotator")
        constant = is_constant(self.table, self.held["task"], label)
        if folded(label) == "label" and others and constant:
            problem = f"{label!r} never differs within an item, so it may be the true label"
            self._which(others, problem)

    def _which(self, answers: list[str], problem: str) -> None:
        self.held["label"] = []
        name = answers[0] if len(answers) == 1 else HOLES["label"]
        columns = f"Columns and their distinct values: {self._counts(answers or self.left)}"
        command = self._command({"label": name})
        raise self._error("which_label", columns, command, problem=problem)

    # ------------------------------------------------------------- other layouts

    def _votes(self, names: Sequence[str]) -> Roles:
        columns = named_columns(self.path, self.table.columns, names, "votes_columns")
        if not self.held["task"]:
            hits = [c for c in roles_of(self.table.columns)["task"] if c not in columns]
            self.held["task"] = hits if len(hits) == 1 else []
        return Roles("votes", tuple(self.held["task"]), (), tuple(columns))

    def _pairs(self) -> Roles | None:
        """Returns the roles of columns `ScoreK` and `WorkerK`, if there are such."""
        if self.held["worker"] or self.held["label"]:
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
        rest = [column for column in self.table.columns if column not in used]
        item = self.held["task"] or roles_of(rest)["task"] or [c for c in rest if folded(c) == "id"]
        unique = len(item) == 1 and len(self.table.distinct(item[0])) == len(self.table)
        item = item if unique or self.held["task"] else []
        return Roles("pairs", tuple(item), tuple(groups[workers[0]]), tuple(groups[labels[0]]))

    def _wide(self, item: Sequence[str]) -> tuple[str, ...]:
        """Returns the columns of annotators if the table is wide, otherwise none."""
        columns = [column for column in self.left if not is_second(column, "task")]
        ids = self.table.joined(item)
        if len(set(ids)) < len(ids) or len(columns) < 2:
            return ()
        if any(is_second(column, role) for column in columns for role in ("worker", "label")):
            return ()
        return tuple(columns) if sorted(self._alike(columns)) == sorted(columns) else ()

    def _alike(self, columns: Sequence[str]) -> list[str]:
        """Returns the columns that share a value with another, if they have few values in all."""
        values = {
            column: {
                re.sub(r"^(-?\d+)\.0+$", r"\1", text)
                for text in self.table.distinct(column)
                if not is_missing(text, self.options)
            }
            for column in columns
        }
        small = {column: held for column, held in values.items() if 0 < len(held) <= MOST_WIDE}
        users = Counter(text for held in small.values() for text in held)
        shared = [c for c, held in small.items() if any(users[text] > 1 for text in held)]
        total = {text for column in shared for text in small[column]}
        return shared if len(total) <= MOST_WIDE else []

    # ------------------------------------------------------------- no header

    def _check_first_line(self) -> None:
        """Raises DataError if each value of the first line occurs again in its column."""
        table = self.table
        if not table.header or len(table) < 2 or any(map(is_known, table.columns)):
            return
        if any(name.startswith("column ") or name not in table[name] for name in table.columns):
            return
        columns = "Columns: " + self._counts([*table.columns], numbered=True)
        problem = "each of its values occurs again in its column"
        raise self._error("no_header", columns, self._headerless(), problem=problem)

    def _headerless(self) -> str:
        """Returns the command for a table without a header."""
        names = [str(number) for number in range(1, len(self.table.columns) + 1)]
        sizes = [len(self.table.distinct(column)) for column in self.table.columns]
        if len(names) not in (3, 4) or any(self.held.values()):
            return self._command({}, "--header=none")
        label, *_, worker, item = (name for _, name in sorted(zip(sizes, names, strict=True)))
        roles = {"task": item, "worker": worker, "label": label}
        return (
            self._command(roles, "--header=none")
            + "\nCheck which column is the item: the proposal takes the one with more values.\n"
            + f"If each column is an annotator: --label_column={','.join(names)}"
        )

    def _matrix(self) -> Roles:
        columns = list(self.table.columns)
        if len(columns) not in (3, 4) and sorted(self._alike(columns)) == sorted(columns):
            return Roles("matrix", (), (), tuple(columns))
        shown = "Columns and their distinct values: " + self._counts(columns)
        roles = "item, annotator and label"
        raise self._error("missing_role", shown, self._headerless(), roles=roles)

    # ------------------------------------------------------------- asking

    def _ask(self, missing: list[str]) -> Roles:
        """Raises DataError that names all missing roles and proposes a command."""
        self._check_votes(missing)
        filled = self._proposal(missing)
        if missing == ["label"] and filled["label"] in self.table.columns:
            texts, codes = self.table.codes(filled["label"])
            check_free_text(self.path, filled["label"], len(texts), len(codes))
        words = [WORDS[role] for role in missing]
        roles = f"{', '.join(words[:-1])} and {words[-1]}" if words[1:] else words[0]
        command = self._command(filled)
        if self.table.header and not any(map(is_known, self.table.columns)):
            command += "\nIf the first line is data: --header=none."
        raise self._error("missing_role", self._listed(*missing), command, roles=roles)

    def _proposal(self, missing: list[str]) -> dict[str, str]:
        """Returns what the command has for each missing role: a column if one is left for it."""
        groups = one_hot_groups(self.table, self.left)
        filled: dict[str, str] = {}
        if {"worker", "label"} <= set(missing) and len(alike := self._alike(self.left)) > 1:
            likely = [c for c in self.left if c not in alike and is_second(c, "task")]
            items = [c for c in likely if len(self.table.distinct(c)) == len(self.table)]
            if "task" in missing and len(items) == 1:
                filled["task"] = as_list(items)
            return {**filled, "label": as_list(alike)}
        for role in missing:
            second = [column for column in self.left if is_second(column, role)]
            if len(second) == 1 and second[0] not in filled.values():
                filled[role] = as_list(second)
        if "label" in missing and "label" not in filled and len(groups) == 1:
            filled["label"] = next(iter(groups))
        rest = [role for role in missing if role not in filled]
        left = [column for column in self.left if column not in filled.values()]
        if len(rest) == 1 and len(left) == 1:
            filled[rest[0]] = as_list(left)
        elif rest == ["task"] and left and all(folded(c).endswith(("id", "ids")) for c in left):
            filled["task"] = as_list(left)
        return {role: filled.get(role, HOLES[role]) for role in missing}

    def _check_votes(self, missing: list[str]) -> None:
        """Raises DataError if columns sum to another one in every row."""
        if "worker" not in missing:
            return
        total, names = sums_of(self.table)
        if names:
            command = self._command({}, f"--votes_columns={as_list(names)}")
            words = {"names": ", ".join(names), "total": total}
            raise self._error("vote_counts", self._listed("label"), command, **words)

    def _listed(self, *roles: str) -> str:
        """Returns the columns with their numbers of distinct values; likely ones come first."""
        columns = [column for column in self.table.columns if not is_status(column)]
        sizes = {column: len(self.table.distinct(column)) for column in columns}

        def rank(column: str) -> tuple[bool, bool, int]:
            likely = any(is_second(column, role) for role in roles)
            return not likely, sizes[column] < 2, sizes[column]

        text = "Columns and their distinct values: " + self._counts(sorted(columns, key=rank))
        if "label" in roles and (groups := one_hot_groups(self.table, self.left)):
            text += f". One-hot columns: {', '.join(groups)}"
        return text

    def _counts(self, columns: Sequence[str], *, numbered: bool = False) -> str:
        titles = {name: str(at) for at, name in enumerate(self.table.columns, 1)}
        return few(
            [
                f"{titles[name] if numbered else name} {len(self.table.distinct(name)):,}"
                for name in columns
            ],
            2 * SHOWN,
        )

    def _command(self, filled: Mapping[str, str], *further: str) -> str:
        """Returns the command to paste, on a line of its own."""
        flags = {f"{role}_column": as_list(self.flags[role]) for role in ROLES if self.flags[role]}
        flags |= {f"{role}_column": filled[role] for role in ROLES if role in filled}
        texts = [f"--{name}={shlex.quote(value)}" for name, value in flags.items()]
        return "  " + command_line(self.path, [*further, *texts])


def as_list(names: Sequence[str]) -> str:
    """Returns names as a flag takes them, see `flags.split_list`."""
    return ",".join(
        '"{}"'.format(name.replace('"', '""')) if "," in name or name[:1] == '"' else name
        for name in names
    )


def command_line(path: Path, flags: Sequence[str]) -> str:
    """Returns the command that is running with further flags, or `neucrowd aggregate` with them."""
    typed: Sequence[str] = RUNNING.get()
    if not any(str(path) in argument for argument in typed):
        typed = ["aggregate", f"--annotations={path}"]
    names = tuple(text.partition("=")[0] + "=" for text in flags)
    rest = [shlex.quote(text) for text in typed if not text.startswith(names)]
    return " ".join(["neucrowd", *rest, *flags])
