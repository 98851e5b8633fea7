"""Which columns are items, annotators and labels: from flags, aliases and what differs.

Nothing is guessed. If a role is missing, the error lists the columns with their numbers of distinct
values, and ends with a command to paste.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from neucrowd_tf.io.checks import error
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table
from neucrowd_tf.names import ROLES, folded, roles_of

WORDS = {"task": "item", "worker": "annotator", "label": "label"}
HOLES = {"task": "ITEM", "worker": "ANNOTATOR", "label": "LABEL"}
MOST_ANSWERS = 20  # distinct values of a column of answers that is inferred
MOST_WIDE = 40  # distinct values of all columns of a wide table
SHOWN = 12
# What a label's cell may be if there is none.
MISSING = frozenset(("", "na", "n/a", "nan", "null", "#n/a"))
# Names that may mean a role: never used without being asked for, but proposed.
SECOND = {
    role: frozenset(names.split())
    for role, names in {
        "task": "id index row key text textid sentence sentenceid tweet tweetid comment commentid"
        " post postid image imageid url urlid document documentid file fileid filename",
        "worker": "user userid username author email name expert createdby session",
        "label": "class category value output winner verdict decision score result prediction"
        " sentiment tag",
    }.items()
}
_STATUS = re.compile(
    r"(created|started|submitted|updated|finished)(at|on|time|date)?|(accept|submit|work|lead)"
    r"time\w*|time|timestamp|date|datetime|duration|ip|userip|useragent|country|region|city|channel"
    r"|trust|tainted|canary|golden|missed|confidence|(assignment|annotation|judge?ment"
    r"|classification|row)id|status|assignmentstatus|workflow\w*|metadata|version|batch"
)
_GOLD = re.compile(
    r"gold\w*|\w*_gold|(ground|gold)?_?truth|true_?label|majority|(hard|soft)_?label"
)
VOTES = "votes_"


def is_status(column: str) -> bool:
    """Whether a column's name says that it is about how a label was given."""
    return _STATUS.fullmatch(folded(column)) is not None


def is_gold(column: str) -> bool:
    """Whether a column's name says that it has true labels."""
    return _GOLD.fullmatch(column.strip().lower().replace(" ", "_")) is not None


def is_second(column: str, role: str) -> bool:
    """Whether a column's name may mean a role."""
    name = folded(column)
    return name in SECOND[role] or (role == "label" and re.fullmatch(r"label\d+", name) is not None)


def is_missing(text: str, options: TableOptions) -> bool:
    """Whether a cell is no label."""
    bare = text.strip()
    if options.missing is None:
        return bare.lower() in MISSING
    return not bare or bare in options.missing


def _is_known(column: str) -> bool:
    """Whether a column's name is that of a role, of true labels or of a status."""
    hits = roles_of([column])
    second = any(is_second(column, role) for role in ROLES)
    return second or any(hits.values()) or is_status(column) or is_gold(column)


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

    def unused(self, columns: Iterable[str]) -> tuple[str, ...]:
        """Returns the columns without a role."""
        used = {*self.task, *self.worker, *self.label}
        return tuple(column for column in columns if column not in used)


def named_columns(path: Path, columns: Sequence[str], names: Sequence[str], flag: str) -> list[str]:
    """Returns the columns that a flag names: exactly, in other case, or by a pattern with `*`.

    Raises:
        DataError: a name that no column has.
    """
    lower = {column.casefold(): column for column in reversed(columns)}
    chosen: list[str] = []
    for name in names:
        pattern = re.compile(".*".join(map(re.escape, name.split("*"))))
        exact = name if name in columns else lower.get(name.casefold())
        hits = [exact] if exact is not None else []
        if not hits and "*" in name:
            hits = [column for column in columns if pattern.fullmatch(column)]
        if not hits:
            near = difflib.get_close_matches(name, columns, len(columns), 0.0)
            shown = ", ".join(map(repr, near[:SHOWN])) + ", ..." * (len(near) > SHOWN)
            raise error("no_column", path, column=name, flag=flag, columns=shown)
        chosen += [column for column in hits if column not in chosen]
    return chosen


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
        self.flags = {
            role: named_columns(
                self.path, table.columns, getattr(options, f"{role}_column"), f"{role}_column"
            )
            for role in ROLES
        }
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
        if item and not label and self._is_wide(item):
            self._check_votes(["worker"])
            columns = tuple(self._annotators(item))
            return Roles("wide", item, (), columns)
        return self._ask([role for role in ROLES if not self.held[role]])

    def _take_aliases(self) -> None:
        """Takes columns whose names are aliases of a role that no flag names."""
        hits = roles_of(self.table.columns)
        for role in ROLES:
            if self.held[role]:
                continue
            used = {column for columns in self.held.values() for column in columns}
            named = [
                column
                for column in hits[role]
                if column not in used and not (is_status(column) or is_gold(column))
            ]
            if len(named) > 1:
                self._two(role, named)
            self.held[role] = named

    def _two(self, role: str, named: list[str]) -> None:
        advice = "\n" + self._command({role: HOLES[role]})
        raise error(
            "two_columns",
            self.path,
            first=named[0],
            second=named[1],
            role=WORDS[role],
            columns=self._listed(role),
            advice=advice,
        )

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
        if folded(label) == "label" and others and _constant(self.table, self.held["task"], label):
            problem = f"{label!r} never differs within an item, so it may be the true label"
            self._which(others, problem)

    def _which(self, answers: list[str], problem: str) -> None:
        self.held["label"] = []
        name = answers[0] if len(answers) == 1 else HOLES["label"]
        counts = self._counts(answers or self.left)
        raise error(
            "which_label",
            self.path,
            problem=problem,
            columns=f"Columns and their distinct values: {counts}",
            advice="\n" + self._command({"label": name}),
        )

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

    def _annotators(self, item: Sequence[str]) -> list[str]:
        """Returns the columns of a wide table that would be annotators."""
        return [
            column for column in self.left if column not in item and not is_second(column, "task")
        ]

    def _is_wide(self, item: Sequence[str]) -> bool:
        table = self.table
        columns = self._annotators(item)
        ids = table.joined(item)
        if len(set(ids)) < len(ids) or len(columns) < 2:
            return False
        if any(is_second(column, role) for column in columns for role in ("worker", "label")):
            return False
        return sorted(self._alike(columns)) == sorted(columns)

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
        few = {column: held for column, held in values.items() if 0 < len(held) <= MOST_WIDE}
        users: dict[str, int] = defaultdict(int)
        for held in few.values():
            for text in held:
                users[text] += 1
        shared = [c for c, held in few.items() if any(users[text] > 1 for text in held)]
        total = {text for column in shared for text in few[column]}
        return shared if len(total) <= MOST_WIDE else []

    # ------------------------------------------------------------- no header

    def _check_first_line(self) -> None:
        """Raises DataError if each value of the first line occurs again in its column."""
        table = self.table
        if not table.header or len(table) < 2 or any(map(_is_known, table.columns)):
            return
        if not all(
            not name.startswith("column ") and name in table[name] for name in table.columns
        ):
            return
        raise error(
            "no_header",
            self.path,
            problem="each of its values occurs again in its column",
            columns="Columns: " + self._counts([*table.columns], numbered=True),
            advice="\n" + self._headerless(),
        )

    def _headerless(self) -> str:
        """Returns the command for a table without a header."""
        names = [str(number) for number in range(1, len(self.table.columns) + 1)]
        sizes = [len(self.table.distinct(column)) for column in self.table.columns]
        if len(names) not in (3, 4) or any(self.held.values()):
            return self._command({}, "--header=none")
        label = min(range(len(names)), key=sizes.__getitem__)
        item = max(range(len(names)), key=sizes.__getitem__)
        rest = [at for at in range(len(names)) if at not in (label, item)]
        worker = min(rest, key=lambda at: abs(sizes[at] - np.median(sizes)))
        roles = {"task": names[item], "worker": names[worker], "label": names[label]}
        return (
            self._command(roles, "--header=none")
            + "\nCheck which column is the item: the proposal takes the one with more values.\n"
            + f"If each column is an annotator: --label_column={','.join(names)}"
        )

    def _matrix(self) -> Roles:
        columns = list(self.table.columns)
        if len(columns) not in (3, 4) and sorted(self._alike(columns)) == sorted(columns):
            return Roles("matrix", (), (), tuple(columns))
        raise error(
            "missing_role",
            self.path,
            roles="item, annotator and label",
            columns="Columns and their distinct values: " + self._counts(columns),
            advice="\n" + self._headerless(),
        )

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
        advice = "\n" + self._command(filled)
        if self.table.header and not any(map(_is_known, self.table.columns)):
            advice += "\nIf the first line is data: --header=none."
        raise error(
            "missing_role", self.path, roles=roles, columns=self._listed(*missing), advice=advice
        )

    def _proposal(self, missing: list[str]) -> dict[str, str]:
        """Returns what the command has for each missing role: a column if one is left for it."""
        groups = one_hot_groups(self.table, self.left)
        filled: dict[str, str] = {}
        if {"worker", "label"} <= set(missing):
            alike = self._alike(self.left)
            if len(alike) > 1 and "label" in missing:
                return self._wide_proposal(alike)
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

    def _wide_proposal(self, alike: list[str]) -> dict[str, str]:
        """Returns the flags that read columns of like values as annotators."""
        parts = [re.sub(r"\d+", "*", column) for column in alike]
        one = len(set(parts)) == 1 and "*" in parts[0]
        if one:
            pattern = re.compile(".*".join(map(re.escape, parts[0].split("*"))))
            one = [c for c in self.table.columns if pattern.fullmatch(c)] == alike
        filled = {"label": parts[0] if one else as_list(alike)}
        items = [c for c in self.left if c not in alike and is_second(c, "task")]
        unique = [c for c in items if len(self.table.distinct(c)) == len(self.table)]
        if not self.held["task"] and len(unique) == 1:
            filled["task"] = unique[0]
        return filled

    def _check_votes(self, missing: list[str]) -> None:
        """Raises DataError if columns sum to another one in every row."""
        if "worker" not in missing:
            return
        total, names = sums_of(self.table)
        if names:
            raise error(
                "vote_counts",
                self.path,
                names=", ".join(names),
                total=total,
                columns=self._listed("label"),
                advice="\n" + self._command({}, f"--votes_columns={as_list(names)}"),
            )

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


def few(names: Sequence[str], most: int = SHOWN) -> str:
    """Returns the first of some names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def as_list(names: Sequence[str]) -> str:
    """Returns names as a flag takes them, see `schema.split_list`."""
    return ",".join(
        '"{}"'.format(name.replace('"', '""')) if "," in name or name[:1] == '"' else name
        for name in names
    )


def command_line(path: Path, flags: Sequence[str]) -> str:
    """Returns the command that is running with further flags, or `neucrowd aggregate` with them."""
    program, typed = Path(sys.argv[0] or "-"), sys.argv[1:]
    stems = {"__main__": "", "neucrowd": "", "run_experiment": "run"}
    name = stems.get(program.stem, program.stem)
    if not any(str(path) in argument for argument in typed):
        words = ["neucrowd", "aggregate", f"--annotations={shlex.quote(str(path))}"]
        return " ".join([*words, *flags])
    names = tuple(text.partition("=")[0] + "=" for text in flags)
    rest = [shlex.quote(text) for text in typed if not text.startswith(names)]
    return " ".join([*filter(None, ["neucrowd", name]), *rest, *flags])


def answers_of(
    table: Table, item: Sequence[str], annotator: Sequence[str], columns: Sequence[str]
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
    _, items = _codes(table, item)
    annotators, workers = _codes(table, annotator)
    size = int(items.max(initial=-1)) + 1
    pair = items * len(annotators) + workers
    pairs = _count(pair)
    answers, questions = [], []
    for column in columns:
        texts, codes = table.codes(column)
        present = np.array([bool(text.strip()) for text in texts], dtype=bool)[codes]
        if not 2 <= len(table.distinct(column)) <= MOST_ANSWERS:
            continue
        if _count(items[present] * len(texts) + codes[present]) == _count(items[present]):
            continue  # constant within each item
        apart = _count(pair * len(texts) + codes) == len(codes)
        if apart and len(codes) >= 1.5 * pairs:
            questions.append(column)
        elif size < len(codes):
            answers.append(column)
    return answers, questions


def answer_column(
    table: Table,
    *,
    item: Sequence[str],
    annotator: Sequence[str],
    options: TableOptions,
    columns: Sequence[str] | None = None,
) -> tuple[str, str]:
    """Returns the column of labels of a tool's table, and why it is this one.

    Args:
        table: the table.
        item: the tool's columns of items.
        annotator: the tool's columns of annotators.
        options: flags go first.
        columns: the candidates; None for all other columns.

    Raises:
        DataError: no column, or several, could be it; with a command to paste.
    """
    decision = _Decision(table, dataclasses.replace(options, task_column=(), worker_column=()))
    if decision.flags["label"]:
        return decision.flags["label"][0], ""
    decision.held = {"task": [*item], "worker": [*annotator], "label": []}
    candidates = [c for c in decision.left if columns is None or c in columns]
    named = [column for column in roles_of(candidates)["label"] if table.distinct(column)]
    answers, _ = answers_of(table, item, annotator, candidates)
    if len(named) == 1:
        return named[0], ""
    if len(answers) == 1:
        return answers[0], "the only column of few values that differs between rows of an item"
    if answers or named:
        decision._which(answers or named, "several columns could be the label")
    decision._ask(["label"])
    raise AssertionError("asking raises")


def _codes(table: Table, columns: Sequence[str]) -> tuple[list[Any], Any]:
    """Returns the distinct texts of one column or of several, and the code of each row."""
    if len(columns) == 1:
        return table.codes(columns[0])
    codes = table.codes(columns[0])[1]
    for column in columns[1:]:
        more, other = table.codes(column)
        _, codes = np.unique(codes * len(more) + other, return_inverse=True)
    return list(range(int(codes.max(initial=-1)) + 1)), codes


def _constant(table: Table, item: Sequence[str], column: str) -> bool:
    """Whether a column never differs within an item, although items have several rows."""
    _, items = _codes(table, item)
    texts, codes = table.codes(column)
    count = _count(items)
    return count < len(codes) and _count(items * len(texts) + codes) == count


def _count(keys: Any) -> int:
    """Returns how many different keys there are; sorting is faster than NumPy's hashing."""
    ordered = np.sort(keys)
    return int((ordered[1:] != ordered[:-1]).sum()) + (len(keys) > 0)


def one_hot_groups(table: Table, columns: Sequence[str]) -> list[str]:
    """Returns patterns of columns of 0 and 1 of which exactly one is 1 in each row."""
    groups: dict[str, list[str]] = defaultdict(list)
    for column in columns:
        named = re.fullmatch(r"(.+?[._])[^._]+", column)
        if named is not None and {*table.distinct(column)} <= {"0", "1"}:
            groups[named[1]].append(column)
    chosen = []
    for start, names in groups.items():
        rows = zip(*(table[name] for name in names), strict=True)
        if len(names) > 1 and len(table) and all(row.count("1") == 1 for row in rows):
            chosen.append(f"{start}*")
    return chosen


def sums_of(table: Table) -> tuple[str, list[str]]:
    """Returns a column that neighbouring columns sum to in every row, and these columns."""
    numbers: dict[str, Any] = {}
    for column in table.columns:
        texts, codes = table.codes(column)
        if len(texts) <= 1000 and all(re.fullmatch(r"\d{1,6}", text) for text in texts):
            numbers[column] = np.array([int(text) for text in texts])[codes]
    names = list(numbers)
    for total in names if len(table) > 1 else ():
        rest = [name for name in names if name != total]
        for first in range(len(rest)):
            running = np.zeros(len(table), dtype=np.int64)
            for last in range(first, len(rest)):
                running = running + numbers[rest[last]]
                if last > first and running.any() and (running == numbers[total]).all():
                    return total, rest[first : last + 1]
    return "", []
