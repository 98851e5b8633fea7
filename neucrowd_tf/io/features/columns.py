"""Columns whose names say that they are no features, or the same one twice."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.names.shell import ignore
from neucrowd_tf.io.names.spelling import plain, visible
from neucrowd_tf.io.tables.column_names import is_truth, may_leak
from neucrowd_tf.io.tables.format import TableFormat
from neucrowd_tf.io.tables.headers import ALIASES

_ID = re.compile(
    r"(?!p_)(.*[_\s])?(u?u?id|guid|index|idx|no|nr|row)|unnamed: \d+|id_?\d+|pk"
    r"|(item|row|record|case|sample|subject|user|task|image|img|file|doc|patient)_?(ids?|no|nr)",
    re.IGNORECASE,
)
_CAMEL_ID = re.compile(r".*[a-z](Id|ID|Index)")
# Names that no feature has: labels dressed up, and counts of votes.
_LABELS = re.compile(
    r"labels|classes|targets|label[-_\s]?(encoded|code|num|idx|name)|encoded[-_\s]?label"
    r"|votes[-_].+|gt"
)


def check_features(names: list[str], path: Path, layout: TableFormat) -> None:
    """Raises DataError for columns whose names say that they are no features: labels, annotators, a
    second id.
    """
    roles = {alias.lower(): role for role in ALIASES for alias in ALIASES[role]}
    for name in names:
        bare = name.strip()
        role = roles.get(bare.lower()) or ("label" if _LABELS.fullmatch(bare.lower()) else None)
        if role is None and (_ID.fullmatch(bare) or _CAMEL_ID.fullmatch(bare)):
            role = "task"
        role = role or ("truth" if is_truth(name) else None)
        if role is not None:
            raise DataError(
                f"{path}: column {name!r}: expected a feature, received a column named as a"
                f" {role}'s; {ignore(name)} leaves it out, another name takes it for a"
                " feature"
            )
    y_alone = "x" not in {name.strip().lower() for name in names}  # else coordinates
    if leaks := [n for n in names if may_leak(n) or (y_alone and n.strip().lower() == "y")]:
        warnings.warn(
            f"{path}: {len(leaks)} columns are named as what may tell the label (the first:"
            f" {leaks[0]!r}) and are taken for features; {ignore(leaks[0])} leaves it out",
            stacklevel=4,
        )


def check_twins(names: list[str], path: Path) -> None:
    """Raises DataError for two columns whose names look the same, and warns of two that differ in
    capitals alone.
    """
    for look, tells in ((visible, False), (plain, True)):
        found: dict[str, str] = {}
        for name in names:
            other = found.setdefault(look(name), name)
            if other == name:
                continue
            said = f"{path}: column {name!r}: expected each column once, received"
            if not tells:
                raise DataError(f"{said} {name!a} beside {other!a}, which looks the same")
            warnings.warn(f"{said} {name!r} beside {other!r}; they are taken for two", stacklevel=4)
            break
