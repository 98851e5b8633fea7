"""Annotations from and to the forms that others publish: long and wide frames, CSV, JSON.

Long form: crowd-kit's `task, worker, label`, and its aliases. Wide form: cleanlab's, NaN where there is no label. JSON:
peerannot's `answers.json`.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.annotations import Annotations, Duplicates, as_name_array
from neucrowd_tf.errors import DataError
from neucrowd_tf.files import atomic_path, read_csv, read_json, require_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALIASES: dict[str, tuple[str, ...]] = {
    "task": ("task", "question", "taskId", "task_id", "instance", "item", "id"),
    "worker": ("worker", "annotator", "performer", "workerId", "worker_id", "annotator_id"),
    "label": ("label", "answer", "class", "response"),
}


def resolve_columns(found: list[str], source: str | Path) -> dict[str, str]:
    """Returns, for task, worker and label, the name under which `found` holds it; the first alias that is there counts."""
    chosen: dict[str, str] = {}
    exact = {name: name for name in found}
    folded = {str(name).strip().lower(): name for name in found}
    for role, aliases in ALIASES.items():
        for alias in aliases:
            hit = exact.get(alias) or folded.get(alias.lower())
            if hit is not None and hit not in chosen.values():
                chosen[role] = hit
                break
    for role in ALIASES:
        if role not in chosen:
            require_columns(source, found, [role])
    return chosen


def from_frame(frame: pd.DataFrame, *, duplicates: Duplicates = "error", source: str | Path = "frame", **names: Any) -> Annotations:
    """See `Annotations.from_frame`.

    Args:
        frame: `[A]` rows; columns task, worker, label or aliases of them.
        duplicates: "error", "first" or "last" for a pair (task, worker) that occurs again.
        source: what to call the frame in errors.
        **names: instance_names, annotator_names, class_names, as for `Annotations.from_arrays`.

    Raises:
        DataError: a missing column, an empty frame, a missing value, an unknown id or a duplicate.
    """
    columns = resolve_columns(list(frame.columns), source)
    if not len(frame):
        raise DataError(f"{source}: expected at least one row of task, worker, label, received none")
    try:
        return Annotations.from_arrays(
            *(_values(frame[columns[role]]) for role in ("task", "worker", "label")), duplicates=duplicates, **names
        )
    except DataError as error:
        raise DataError(f"{source}: {error}") from None


def _values(column: pd.Series) -> Any:
    """Returns a column's values with the types a user sees: a categorical by its categories, whole floats left alone."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.astype(object) if column.isna().any() else column.astype(column.cat.categories.dtype)
    return column


def from_csv(path: str | Path, *, duplicates: Duplicates = "error", **names: Any) -> Annotations:
    """See `Annotations.from_csv`. Ids keep their spelling: `007` stays text, `7` is a number, `True` a truth value."""
    header = read_csv(path, nrows=0)
    columns = resolve_columns(list(header.columns), path)
    wanted = list(columns.values())
    # Whole numbers are parsed at full speed; anything else is read as text with each distinct value stored once.
    frame = _read_whole_numbers(path, wanted)
    if frame is None:
        frame = read_csv(path, usecols=wanted, dtype="category", keep_default_na=False, na_values=[""])
    if not len(frame):
        raise DataError(f"{path}: expected at least one row of task, worker, label, received none")
    try:
        triple = [_typed(frame.pop(columns[role]), role, path) for role in ("task", "worker", "label")]
        del frame
        made = Annotations.from_arrays(*triple, duplicates=duplicates, **names)
        return made
    except DataError as error:
        message = str(error)
        raise DataError(message if message.startswith(str(path)) else f"{path}: {message}") from None


def _read_whole_numbers(path: str | Path, wanted: list[str]) -> pd.DataFrame | None:
    """Returns the columns as int32 or int64 where each is spelt as plain whole numbers, or None."""
    head = read_csv(path, usecols=wanted, dtype=str, keep_default_na=False, nrows=100)
    if not all(plain_integers(head[name].tolist()) for name in wanted):
        return None
    try:
        frame = pd.read_csv(path, usecols=wanted, dtype=dict.fromkeys(wanted, np.int64), engine="c")
    except (ValueError, OverflowError):
        return None
    # A value such as 007 parses as 7: the digits that plain spelling needs must be the digits that are there.
    if len(wanted) == len(read_csv(path, nrows=0).columns):
        digits = sum(_digits(frame[name].to_numpy()) for name in wanted)
        size = Path(path).stat().st_size
        with Path(path).open("rb") as stream:
            first = stream.readline()
            line_end = 2 if first.endswith(b"\r\n") else 1
        body = digits + len(frame) * (len(wanted) - 1 + line_end)
        if size - len(first) - body in (0, -line_end):
            return frame
    return None


def _digits(values: NDArray[np.int64]) -> int:
    """Returns how many characters plain decimal spelling of all values takes."""
    magnitude = np.abs(values)
    total = len(values) + int((values < 0).sum())
    bound = 10
    while bound <= magnitude.max(initial=0):
        total += int((magnitude >= bound).sum())
        bound *= 10
    return total


def plain_integers(values: Sequence[str]) -> bool:
    """Whether every text is how Python spells a whole number, so that turning it into one loses nothing."""
    return all(value.removeprefix("-").isdigit() and value.isascii() and str(int(value)) == value and len(value) < 19 for value in values)


def _typed(column: pd.Series, role: str, path: str | Path) -> Any:
    """Returns a text column's values as ints or bools where every distinct value is spelt as one."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return column.to_numpy()
    missing = column.isna()
    if missing.any():
        row = int(np.flatnonzero(missing.to_numpy())[0])
        raise DataError(f"{path}: row {row}, column {role!r}: expected a value, received an empty cell")
    categories = [str(value) for value in column.cat.categories]
    for value in categories:
        if "\0" in value:
            raise DataError(f"{path}: column {role!r}: expected text, received a value with a NUL byte")
    distinct: NDArray[Any]
    if plain_integers(categories):
        distinct = np.array([int(value) for value in categories])
    elif set(categories) <= {"True", "False"}:
        distinct = np.array([value == "True" for value in categories])
    else:
        distinct = np.empty(len(categories), dtype=object)
        distinct[:] = categories
    return distinct[column.cat.codes.to_numpy()]


def to_csv(annotations: Annotations, path: str | Path) -> None:
    """See `Annotations.to_csv`."""
    with atomic_path(path) as temporary:
        annotations.to_frame().to_csv(temporary, index=False)


def from_wide_frame(frame: pd.DataFrame, *, class_names: Any = None) -> Annotations:
    """See `Annotations.from_wide_frame`. Whole floats become ints (NaN turns an integer column into floats).

    Raises:
        DataError: a repeated row or column name, or an unknown label.
    """
    for axis, what in ((frame.index, "row"), (frame.columns, "column")):
        if not axis.is_unique:
            raise DataError(f"wide frame: expected each {what} name once, received {axis[axis.duplicated()][0]!r} again")
    values = frame.to_numpy(dtype=object)
    rows, columns = np.nonzero(frame.notna().to_numpy())
    given = values[rows, columns].tolist()
    if all(isinstance(v, (float, np.floating)) and float(v).is_integer() for v in given):
        given = [int(v) for v in given]
    return Annotations.from_arrays(
        as_name_array(frame.index)[rows],
        as_name_array(frame.columns)[columns],
        given,
        instance_names=frame.index,
        annotator_names=frame.columns,
        class_names=class_names,
    )


def from_answers_json(source: str | Path | Mapping[str, Mapping[str, Hashable]], **names: Any) -> Annotations:
    """See `Annotations.from_answers_json`. A task without answers is kept, without labels.

    Raises:
        DataError: not JSON, or not tasks that hold workers that hold labels.
    """
    answers = source if isinstance(source, Mapping) else read_json(source)
    where = "answers" if isinstance(source, Mapping) else source
    if not isinstance(answers, Mapping):
        raise DataError(f"{where}: expected an object of tasks, received {type(answers).__name__}")
    triples: list[tuple[Hashable, Hashable, Hashable]] = []
    for task, given in answers.items():
        if not isinstance(given, Mapping):
            raise DataError(f"{where}: task {task!r}: expected an object of workers and labels, received {type(given).__name__}")
        for worker, label in given.items():
            if label is None or not isinstance(label, Hashable):
                raise DataError(f"{where}: task {task!r}, worker {worker!r}: expected a label, received {label!r}")
            triples.append((task, worker, label))
    tasks, workers, labels = (list(column) for column in zip(*triples, strict=True)) if triples else ([], [], [])
    names.setdefault("instance_names", list(answers))
    return Annotations.from_arrays(tasks, workers, labels, **names)


def to_answers_json(annotations: Annotations, path: str | Path | None = None) -> dict[str, dict[str, Any]]:
    """See `Annotations.to_answers_json`. JSON's keys are text, so ids of other types are spelt out.

    Raises:
        DataError: two ids that are spelt alike (1 and "1").
    """
    tasks = [str(name) for name in annotations.instance_names.tolist()]
    workers = [str(name) for name in annotations.annotator_names.tolist()]
    for names, what in ((tasks, "task"), (workers, "worker")):
        if len(set(names)) != len(names):
            raise DataError(f"answers.json: expected {what} ids that differ as text, received two that are both spelt {pd.Series(names).mode()[0]!r}")
    classes = annotations.class_names.tolist()
    answers: dict[str, dict[str, Any]] = {task: {} for task in tasks}
    for i, j, c in zip(annotations.instances.tolist(), annotations.annotators.tolist(), annotations.labels.tolist(), strict=True):
        answers[tasks[i]][workers[j]] = classes[c]
    if path is not None:
        with atomic_path(path) as temporary:
            temporary.write_text(json.dumps(answers, ensure_ascii=False), encoding="utf-8")
    return answers
