"""What the names of columns say: roles that may be meant, states of an answer, true labels."""

from __future__ import annotations

import difflib
import functools
import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from neucrowd_tf.declare.picking import mapped, starting_with
from neucrowd_tf.declare.types import Texts
from neucrowd_tf.io.checks import error
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.table import Table
from neucrowd_tf.names import ROLES, SECOND_ITEM, folded, listed, roles_of, without

SHOWN = 12
# What a label's cell may be if there is none.
MISSING = frozenset(("", "na", "n/a", "nan", "null", "#n/a"))
_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
# Names that may mean a role: never used without being asked for, but proposed.
SECOND = mapped(frozenset[str], _WORDS["second"])
SECOND["task"] |= SECOND_ITEM
_COUNTS = frozenset(_WORDS["answers"]["counts"])
_AGAIN = [re.compile(pattern, re.IGNORECASE) for pattern in _WORDS["patterns"]["again"]]
_TIMES = list(map(re.compile, _WORDS["patterns"]["time"]))


def _in_words(name: str) -> str:
    return re.sub(r"\W+", "_", name.strip().lower())


def _named(kind: str, form: Callable[[str], str] = folded) -> Callable[[str], bool]:
    """Returns a test of names by a kind of patterns in the TOML file.

    Args:
        kind: the patterns' key.
        form: what the patterns are compared with, made of a name.
    """
    pattern = re.compile("|".join(_WORDS["patterns"][kind]))

    def is_named(name: str) -> bool:
        return pattern.fullmatch(form(name)) is not None

    return is_named


# Whether a column's name says
is_status = _named("status")  # that it is about how a label was given
is_gold = _named("gold", _in_words)  # that it has true labels
is_summary = _named("summary", str.strip)  # that it sums up the labels of a row
is_id = _named("id", str.strip)  # that it has ids or the row's number, or says nothing
is_which_model = _named("which_model")  # that it tells which model an output is of
is_person = _named("person")  # that it names annotators
is_question = _named("question")  # that it names questions
is_asked = _named("asked")  # that it names questions, of which an annotator may answer one
is_text = _named("text")  # that it has what is labelled
is_part = _named("part")  # that it names a part of the items: a batch, a document
# Whether the name of an item is that of a row that sums up those above, and of an annotator that of
# a model.
is_total = _named("total", str.strip)
is_model = _named("model", str.strip)


def answer_of(column: str) -> str:
    """Returns a column's name without the words that say that it counts: n_yes, yes_votes."""
    words = re.split(r"[\W_]+", column.casefold())
    return "".join(without(words, _COUNTS)) or folded(column)


def are_answers(columns: Texts) -> bool:
    """Whether columns are named as answers of which one is the opposite of another: yes and no."""
    names = set(map(answer_of, columns))
    return any(map(names.issuperset, _WORDS["answers"]["opposed"]))


def is_judge(column: str) -> bool:
    """Whether a column is named as one model that judges, and does not say which model it is."""
    return is_model(column) and not is_which_model(column)


@functools.lru_cache
def time_columns(columns: tuple[str, ...]) -> list[str]:
    """Returns the columns that are named as times, those first that are used first."""
    pairs = itertools.product(_TIMES, columns)
    return [column for pattern, column in pairs if pattern.fullmatch(folded(column))]


def unlike_names(names: Texts) -> list[str]:
    """Returns the names that are no annotators' beside numbered ones: `rater1, rater2, checked`."""
    forms = [re.sub(r"\d+|(?<=[\W_a-z])[A-Z]$", "#", name) for name in names]
    form, count = Counter(forms).most_common(1)[0]
    if count < 2 or "#" not in form:
        return []
    stem = re.sub(r"[\W_]*#.*", "", form)
    unlike = []
    for name, other_form in zip(names, forms, strict=True):
        named = name == stem or is_person(name) or is_model(name)
        if other_form != form and not named:
            unlike.append(name)
    return unlike


def repeated_codings(names: Texts) -> list[str]:
    """Returns the names that are another one's with a word for a further coding: `ann_second`.

    A number is such a word only if another name has another start: `ann, ann_2, bob`.
    """
    again = []
    every = set(names)
    for name, pattern in itertools.product(names, _AGAIN):
        coding = pattern.fullmatch(name)
        if coding is not None and coding["name"] in every:
            others = len(starting_with(names, coding["name"])) < len(names)
            if others or not coding["word"].isdigit():
                again.append(name)
    return again


def is_second(column: str, *roles: str) -> bool:
    """Whether a column's name may mean one of some roles."""
    name = folded(column)
    numbered = "label" in roles and re.fullmatch(r"label\d+", name) is not None
    return numbered or any(name in SECOND[role] for role in roles)


def second_tier(columns: Iterable[str], role: str) -> list[str]:
    """Returns the columns whose names may mean a role."""
    return [column for column in columns if is_second(column, role)]


def num_roles(columns: Iterable[object]) -> int:
    """Returns how many of task, worker and label have a column with an alias."""
    return sum(map(bool, roles_of(columns).values()))


def called(columns: Iterable[str], *names: str) -> list[str]:
    """Returns the columns that are called one of some names as they are `folded`."""
    return [column for column in columns if folded(column) in names]


def is_missing(text: str, options: TableOptions) -> bool:
    """Whether a cell is no label."""
    bare = text.strip()
    if options.missing is None:
        return bare.lower() in MISSING
    return not bare or bare in options.missing


def is_known(column: str) -> bool:
    """Whether a column's name is that of a role, of true labels or of a status."""
    role = is_second(column, *ROLES) or any(roles_of([column]).values())
    return role or is_status(column) or is_gold(column)


def few(names: Texts, most: int = SHOWN) -> str:
    """Returns the first of some names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def named_columns(path: Path, columns: Texts, names: Texts, flag: str) -> list[str]:
    """Returns the columns that a flag names: exactly, in other case, or by a pattern with `*`.

    Raises:
        DataError: a name that no column has.
    """
    lower = dict(zip(map(str.casefold, columns[::-1]), columns[::-1], strict=True))
    chosen: list[str] = []
    for name in names:
        pattern = re.compile(".*".join(map(re.escape, name.split("*"))))
        exact = name if name in columns else lower.get(name.casefold())
        hits = [exact] if exact is not None else list(filter(pattern.fullmatch, columns))
        if not hits:
            near = difflib.get_close_matches(name, columns, len(columns), 0.0)
            shown = listed(near, SHOWN, repr)
            raise error("no_column", path, column=name, flag=flag, columns=shown)
        chosen += without(hits, chosen)
    return chosen


def flagged_columns(table: Table, options: TableOptions, role: str) -> list[str]:
    """Returns the columns that the flag of a role ("task", "worker" or "label") names."""
    flag = f"{role}_column"
    return named_columns(table.path, table.columns, getattr(options, flag), flag)


def crossed(columns: Texts) -> tuple[list[str], list[str]] | None:
    """Returns the first and the last parts of columns' names, if each pair of parts is a column.

    Such are `ann_tone,ann_topic,bob_tone,bob_topic`, and `ann,ann_conf,bob,bob_conf`, where a last
    part is empty. One part may name annotators and the other one questions.
    """
    for at in re.finditer(r"[\W_]+|$", columns[0]):
        start, end = columns[0][: at.start()], columns[0][at.start() :]
        if not start:
            continue
        begins = re.compile(rf"{re.escape(start)}([\W_]|$)")
        lasts = [name[len(start) :] for name in filter(begins.match, columns)]
        firsts = []
        names = []
        for name in columns:
            first = name[: len(name) - len(end)]
            joined = list(map(first.__add__, lasts))
            if name.endswith(end) and {*joined} <= {*columns}:
                firsts.append(first)
                names += joined
        if len(firsts) > 1 and len(lasts) > 1 and sorted(names) == sorted(columns):
            return firsts, lasts
    return None
