"""What other columns of a table with a row a label say of it: that labels were rejected, or given
again, that the label or the task is another column's.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.names.shell import flag
from neucrowd_tf.io.tables.column_names import bare
from neucrowd_tf.io.tables.format import TableFormat

_WHEN = "(_(at|on|by|time|date))?"
_SAID = "label|class|answer|response|vote|rating|annotation|choice"
_AGAIN = "new|corrected|correction|revised|updated|fixed|changed"
# What a column of a label's row is called that says whether it counts: how far it got, that it does
# not, that it does; or that the task is one whose answer was known.
_STATUS = re.compile(r"(\w+_)?(status|state)|approval|(qc|review)(_result)?")
_VOID = re.compile(
    r"(is_|was_|has_been_)?(cancell?ed|deleted?|removed?|reject(ed|ion)?|invalid|skip(ped)?"
    r"|tainted|spam|ignored?|excluded?|hidden|discarded?|dropped|withdrawn|failed|expired"
    rf"|abandoned|revoked|superseded|retracted|flagged){_WHEN}"
)
_VALID = re.compile(
    rf"(is_|was_|has_been_)?(valid|accept(ed)?|approved?|kept|keep|used?|included?){_WHEN}"
)
_TEST = re.compile(
    r"golden|is_gold(en)?|((is|was)_)?(test_question|honey_?pot|(attention|attn)_check)|is_test"
)
_TIMES = re.compile(
    r"(\w+_)?weights?|counts?|n|freq(uency)?|times|multiplicity|votes"
    r"|(n|num|number)_(of_)?(votes|labels|answers|annotations)|(label|vote|answer)s?_count"
)
_CORRECTED = re.compile(rf"({_AGAIN})(_({_SAID}))?|({_SAID})_({_AGAIN})")
_RATING = re.compile(
    rf"(\w+_)?(({_SAID})s?|score|grade|stars?|judge?ment|preference|verdict|sentiment|category)"
)
_ITEM = re.compile(
    r"id|uuid|(item|image|img|picture|photo|video|audio|sample|instance|record|example|document"
    r"|doc|post|tweet|sentence|text|file|row)(_?(id|name|path|url|uri|nr|num|number|idx|index))?"
    r"|url|file_?name|path|index"
)
MARKS = (_STATUS, _VOID, _VALID, _TEST, _TIMES, _CORRECTED)
_KINDS = (*MARKS, _RATING, _ITEM)
_NOT = frozenset(("", "0", "0.0", "false", "f", "no", "n", "none", "null", "nan", "na", "<na>"))
_BAD = re.compile(
    r"reject|cancel|delet|invalid|skip|taint|spam|exclu|fail|abandon|expire|return|discard|withdr"
    r"|revok|remov|retract|ignor|abgelehnt|refus|rechaz"
)
_FRACTION = re.compile(r"-?\d*[.,]\d*[1-9]\d*")
_SHOWN = 4
_FEWEST = 3  # tasks that each have a class of their own
_LETTERS = 30  # of a value that a message shows


def tell_marks(frame: pd.DataFrame, columns: Sequence[str], source: str | Path) -> None:
    """Warns of columns by which some of a table's labels do not count, count several times, or are
    corrected: all labels are taken, once and as they are.

    Args:
        frame: a row a label.
        columns: those of tasks, workers and labels.
        source: what to call the table.
    """
    for name in others(frame.columns, columns, MARKS):
        cells = _texts(frame[name])
        if said := mark(str(name), cells.value_counts()):
            warnings.warn(f"{source}: {said}", stacklevel=4)
        elif _CORRECTED.fullmatch(bare(str(name))):
            changed = int(((cells != "") & (cells != _texts(frame[columns[2]]))).sum())
            if changed:
                whole = " once its empty cells are filled" * bool((cells == "").any())
                warnings.warn(
                    f"{source}: column {name!r} differs from {columns[2]!r} in {changed} of"
                    f" {len(cells)} rows, as corrections do; {columns[2]!r} is taken,"
                    f" {flag('label_column', name)} takes the other{whole}",
                    stacklevel=4,
                )


def mark(name: str, counts: pd.Series) -> str:
    """Returns what a column (one of `MARKS`) says of labels that do not count, or several times;
    "" for nothing.

    Args:
        name: the column's.
        counts: how often each text occurs, the most frequent first.
    """
    words, rows = bare(name), int(counts.sum())
    if what := _voids(words, counts.index.to_series()):
        return (
            f"column {name!r} says {_counted(counts)} of the labels, {what}; all of them count"
            " (take the rows out that should not)"
        )
    if _TIMES.fullmatch(words) and (several := _not_once(counts)):
        return (
            f"column {name!r} is a number other than 1 in {several} of {rows} rows; each label"
            " counts once (counts of votes are read from columns votes_<class>)"
        )
    return ""


def tell_others(
    frame: pd.DataFrame, columns: Sequence[str], source: str | Path, layout: TableFormat
) -> None:
    """Warns as `tell_marks` does, and of items that one task's name joins, where nobody named the
    column of tasks.

    Raises:
        DataError: labels that are a name of each task, beside a column of ratings, where nobody
            named the column of labels.
    """
    if layout.label is None:
        _check_rated(frame, columns, source)
    if layout.task is None:
        _tell_items(frame, columns, source)
    tell_marks(frame, columns, source)


def others(
    names: Iterable[str], columns: Sequence[str], kinds: Sequence[re.Pattern[str]] = _KINDS
) -> list[str]:
    """Returns the other columns that `tell_others` looks at, by their names; none that is there
    twice.
    """
    return [
        name
        for name, count in Counter(names).items()
        if name not in columns
        and count == 1
        and any(kind.fullmatch(bare(str(name))) for kind in kinds)
    ]


def _texts(column: pd.Series) -> pd.Series:
    """Returns a column's cells as text without spaces around them, empty where there is none."""
    return column.astype(object).where(column.notna(), "").map(lambda cell: str(cell).strip())


def _voids(words: str, cells: pd.Series) -> str:
    """Returns what a column's name and different cells say of labels that may not count; "" for
    nothing.
    """
    small = cells.str.casefold()
    off = small.isin(_NOT)
    if _VOID.fullmatch(words):
        return "" if off.all() else "as of some that do not count"
    if _TEST.fullmatch(words):
        return "" if off.all() else "as of test questions"
    if _VALID.fullmatch(words):
        return "as of some that do not count" if off.any() and (small != "").any() else ""
    if _STATUS.fullmatch(words):
        bad = small.str.contains(_BAD).any()
        several = words != "state" and small.nunique() > 1
        return "as of some that do not count" if bad else "as of how far each got" * several
    return ""


def _counted(counts: pd.Series) -> str:
    """Returns the most frequent values and how often each occurs."""
    shown = [
        f"{str(value)[:_LETTERS]!r} ({count} times)" for value, count in counts[:_SHOWN].items()
    ]
    return ", ".join(shown + ["..."] * (len(counts) > _SHOWN))


def _not_once(counts: pd.Series) -> int:
    """Returns how many cells are a number other than 1; 0 where one is no number."""
    numbers = pd.to_numeric(counts.index.to_series(), errors="coerce").to_numpy()
    return 0 if pd.isna(numbers).any() else int(counts.to_numpy()[numbers != 1].sum())


def _tell_items(frame: pd.DataFrame, columns: Sequence[str], source: str | Path) -> None:
    """Warns of a column of ids (or files) several of which a task has, each of several rows, as
    pictures have that one question is asked of.
    """
    task = columns[0]
    for name in others(frame.columns, columns, (_ITEM,)):
        rows = frame.groupby([_texts(frame[task]), _texts(frame[name])], sort=False).size()
        shared = rows[rows > 1]
        of = shared.groupby(level=0, sort=False).size()
        if 2 * int(shared.sum()) > int(rows.sum()) and (of > 1).any():
            first = of.index[of > 1][0]
            warnings.warn(
                f"{source}: {int((of > 1).sum())} tasks of column {task!r} have several {name!r},"
                f" each with labels of its own (the first: {str(first)[:_LETTERS]!r}), and count as"
                f" one each; {flag('task_column', name)} names others, or a column that joins both",
                stacklevel=4,
            )
            return


def _check_rated(frame: pd.DataFrame, columns: Sequence[str], source: str | Path) -> None:
    """Raises DataError for labels that are the same within each task and others in each, as a text
    that is rated is, beside a column that is named as labels are and differs.
    """
    rated, label = others(frame.columns, columns, (_RATING,)), columns[2]
    if not rated:
        return
    tasks, labels = (_texts(frame[name]) for name in (columns[0], label))
    of = labels.groupby(tasks, sort=False)
    sizes = of.size()
    if (sizes > 1).sum() < _FEWEST or (of.nunique() > 1).any() or labels.nunique() < len(sizes):
        return
    for name in rated:
        cells = _texts(frame[name])
        differ = (cells.groupby(tasks, sort=False).nunique() > 1).any()
        if differ and cells.nunique() < len(cells) and not cells.str.fullmatch(_FRACTION).any():
            raise DataError(
                f"{source}: column {label!r}: expected labels, received a name of each task's own,"
                f" the same by all annotators, beside {name!r}, on which they differ;"
                f" {flag('label_column', name)} takes that, {flag('label_column', label)} this"
            )
