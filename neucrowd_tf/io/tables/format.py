"""How a user's tables are written, as flags say it."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.names.ids import listed
from neucrowd_tf.io.names.shell import flag
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.tables.headers import ALIASES, also_named, further, require_columns


@dataclasses.dataclass(frozen=True)
class TableFormat:
    """How a user's tables are written.

    Attributes:
        separator: the sign between columns; None for commas or tabs, see `separator_of`.
        task, worker, label: the columns' names; None for those of `ALIASES`.
        missing: the texts that stand for a label that is missing, beside an empty cell; None where
            the user did not say. What else often does is refused, unless none does: ("",).
        classes: all classes, where the user names them.
        exact_names: whether names that differ in case, spaces or how a number is spelt only are
            different ones, rather than refused.
        ignored: columns of features that are left out.
        question: which question's answers, where an annotation tool's export has several.
        first: whether the first of several choices in an export's answer is taken.
        own: whether the file is this project's, and every label a class.
    """

    separator: str | None = None
    task: str | None = None
    worker: str | None = None
    label: str | None = None
    missing: tuple[str, ...] | None = None
    classes: tuple[str, ...] = ()
    exact_names: bool = False
    ignored: tuple[str, ...] = ()
    question: str | None = None
    first: bool = False
    own: bool = False

    @property
    def options(self) -> TableOptions:
        """The options of tables beside the labels."""
        task = () if self.task is None else (self.task,)
        return TableOptions(separator=self.separator, task_column=task)

    @classmethod
    def of(
        cls,
        *,
        separator: str | None = None,
        task_column: str | None = None,
        worker_column: str | None = None,
        label_column: str | None = None,
        missing: str | None = None,
        classes: str | None = None,
        exact_names: bool = False,
        ignore_columns: str | None = None,
        question: str | None = None,
        first: bool = False,
    ) -> TableFormat:
        """Returns the format that flags of these names say; lists are as `listed` takes them.

        Raises:
            UsageError: a separator of several signs, or classes that are not all different.
        """
        sign = None if separator is None else {"tab": "\t", "\\t": "\t"}.get(separator, separator)
        if sign is not None and (len(sign) != 1 or sign in '\n\r"' or not sign.isascii()):
            raise UsageError(
                f"--separator: expected one sign of ASCII, or tab, received {separator!r}"
            )
        columns = [name for name in (task_column, worker_column, label_column) if name is not None]
        if len({name.strip().lower() for name in columns}) < len(columns) or "" in columns:
            raise UsageError(
                "--task_column, --worker_column, --label_column: expected different columns,"
                f" received {', '.join(map(repr, columns))}"
            )
        names = () if classes is None else tuple(listed(classes))
        if len(set(names)) != len(names) or "" in names:
            raise UsageError(
                f"--classes: expected different names separated by commas, received {classes!r}"
            )
        ignored = tuple(name for name in listed(ignore_columns or "") if name)
        return cls(
            separator=sign,
            task=task_column,
            worker=worker_column,
            label=label_column,
            missing=None if missing is None else tuple(listed(missing)),
            classes=names,
            exact_names=exact_names,
            ignored=ignored,
            question=question,
            first=first,
        )

    @classmethod
    def from_options(cls, options: TableOptions, ignored: Sequence[str] = ()) -> TableFormat:
        """Returns the format that the options of a table describe."""
        task, worker, label = (
            columns[0] if columns else None
            for columns in (options.task_column, options.worker_column, options.label_column)
        )
        return cls(
            separator=options.separator,
            task=task,
            worker=worker,
            label=label,
            missing=options.missing,
            classes=options.classes,
            exact_names=options.exact_names,
            ignored=tuple(ignored),
            question=options.question,
            first=options.first,
        )

    def among(self, columns: Sequence[str]) -> TableFormat:
        """Returns the format without the names of columns that a table does not have."""
        folded = {str(name).strip().lower() for name in columns}
        task, worker, label = (
            name if name is not None and name.strip().lower() in folded else None
            for name in (self.task, self.worker, self.label)
        )
        return dataclasses.replace(self, task=task, worker=worker, label=label)

    def roles(self, columns: Sequence[str]) -> dict[str, str]:
        """Returns, for task, worker and label, the column that plays this role, where there is
        one; the first alias that is there counts.
        """
        found: dict[str, str] = {}
        folded = {str(name).strip().lower(): name for name in reversed(columns)}
        for role, aliases in ALIASES.items():
            named = getattr(self, role)
            for name in aliases if named is None else (named,):
                hit = name if name in columns else folded.get(str(name).lower())
                if hit is not None and hit not in found.values():
                    found[role] = hit
                    break
        return found

    def require(self, source: str | Path, columns: Sequence[str], *wanted: str) -> list[str]:
        """Returns the columns of the roles `wanted`.

        Raises:
            DataError: one that is not there, with the closest name that is; a second annotator's
                columns.
        """
        found = self.roles(columns)
        pair = ("worker", "label")
        if set(pair) <= {*wanted} & {*found} and None in (self.worker, self.label):
            second = [further(role, found, columns) for role in pair]
            if all(second):
                flags = " ".join(flag(f"{role}_column", found[role]) for role in pair)
                raise DataError(
                    f"{source}: expected one annotator and one label a row, received also"
                    f" {second[0][0]!r} and {second[1][0]!r}; write a row a label, or {flags} takes"
                    " these alone"
                )
        for role in wanted:
            if role not in found:
                name = getattr(self, role) or role
                way = f"; --{role}_column says what it is called" if name == role else ""
                require_columns(source, columns, [name], way)
                raise DataError(
                    f"{source}: expected a column of {role}s beside the others, received"
                    f" {name!r} for two of them (--{role}_column says which)"
                )
            if getattr(self, role) is None and (others := also_named(role, found, columns)):
                warnings.warn(
                    f"{source}: columns {found[role]!r} and {others[0]!r} are both named as a"
                    f" {role}'s; {found[role]!r} is taken, --{role}_column says which",
                    stacklevel=3,
                )
        return [found[role] for role in wanted]


PLAIN = TableFormat()
# For files that this project wrote: every name is what it says.
EXACT = TableFormat(missing=(), exact_names=True, own=True)
