"""Annotations from and to the forms that others publish: long and wide frames, CSV, JSON.

Long form: crowd-kit's `task, worker, label`, and its aliases. Wide form: cleanlab's, NaN where
there is no label. JSON: peerannot's `answers.json`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from neucrowd_tf.annotations import Annotations, Duplicates, as_name_array
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files import (
    atomic_path,
    not_text,
    read_csv,
    read_header,
    read_json,
    require_columns,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALIASES: dict[str, tuple[str, ...]] = {
    "task": ("task", "question", "taskId", "task_id", "instance", "item", "id"),
    "worker": ("worker", "annotator", "performer", "workerId", "worker_id", "annotator_id"),
    "label": ("label", "answer", "class", "response"),
}


def resolve_columns(found: list[str], source: str | Path) -> dict[str, str]:
    """Returns, for task, worker and label, the name under which `found` holds it; the first alias
    that is there counts.
    """
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


def from_frame(
    frame: pd.DataFrame,
    *,
    duplicates: Duplicates = "error",
    source: str | Path = "frame",
    **names: Any,
) -> Annotations:
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
        raise DataError(
            f"{source}: expected at least one row of task, worker, label, received none"
        )
    try:
        return Annotations.from_arrays(
            *(frame[columns[role]] for role in ("task", "worker", "label")),
            duplicates=duplicates,
            **names,
        )
    except DataError as error:
        raise DataError(f"{source}: {error}") from None


def from_csv(path: str | Path, *, duplicates: Duplicates = "error", **names: Any) -> Annotations:
    """See `Annotations.from_csv`. Ids keep their spelling: `007` stays text, `7` is a number,
    `True` a truth value.
    """
    read_header(path)
    columns = resolve_columns(list(read_csv(path, nrows=0).columns), path)
    wanted = list(columns.values())
    columns_read = _read_numbers(path, wanted) or _read_text(path, wanted)
    try:
        triple = [
            _typed(columns_read.pop(columns[role]), role, path)
            for role in ("task", "worker", "label")
        ]
        if not len(triple[0]):
            raise DataError("expected at least one row of task, worker, label, received none")
        return Annotations.from_arrays(*triple, duplicates=duplicates, **names)
    except DataError as error:
        message = str(error)
        raise DataError(
            message if message.startswith(str(path)) else f"{path}: {message}"
        ) from None


# A column: whole numbers, or each distinct text once with int codes (-1 for an empty cell).
Column = Any


def _read_text(path: str | Path, wanted: list[str]) -> dict[str, Column]:
    """Returns the columns as text, each distinct one stored once."""
    options: dict[str, Any] = {
        "dtype": object,
        "keep_default_na": False,
        "na_values": [""],
        "low_memory": False,
    }
    frame = read_csv(
        path, **options
    )  # all columns: with `usecols`, pandas cuts rows that are too long
    if not isinstance(frame.index, pd.RangeIndex):
        if isinstance(frame.index, pd.MultiIndex) or frame.iloc[:, -1].notna().any():
            raise DataError(
                f"{path}: expected {len(frame.columns)} fields in each row, as in the header,"
                " received more (a comma without quotes?)"
            )
        frame = read_csv(
            path, usecols=wanted, **options
        )  # each row ends with a comma, the header does not
    return {name: _coded(frame.pop(name)) for name in wanted}


def _coded(column: pd.Series) -> tuple[NDArray[np.int64], list[str]]:
    codes, texts = pd.factorize(column.to_numpy(dtype=object))
    return codes, texts.tolist()


def _read_numbers(path: str | Path, wanted: list[str]) -> dict[str, Column] | None:
    """Returns the columns, those of plain whole numbers as int64 and others as text; None where a
    spelling would be lost.

    Numbers are parsed several times as fast as text. A number may be spelt in other ways: 1e3, or
    one that is longer than the plain one (007, +7). So the file must have no exponent but those
    letters that its texts have, and be exactly as long as plain spelling makes it.
    """
    head = read_csv(path, dtype=object, keep_default_na=False, nrows=100)
    numbers = [name for name in wanted if plain_integers(head[name].tolist())]
    if not numbers or len(wanted) != len(head.columns):
        return None
    dtypes: dict[str, Any] = {name: np.int64 if name in numbers else object for name in wanted}
    try:
        frame = pd.read_csv(
            path,
            dtype=dtypes,
            keep_default_na=False,
            na_values=[""],
            encoding="utf-8",
            low_memory=False,
        )
    except (ValueError, OverflowError):
        return None
    columns = {
        name: frame.pop(name).to_numpy() if name in numbers else _coded(frame.pop(name))
        for name in wanted
    }
    size, exponents, line_end = _measure_file(Path(path))
    plain = [_measure(column) for column in columns.values()]
    size -= sum(length for length, _ in plain) + len(frame) * (len(wanted) - 1 + line_end)
    return (
        columns
        if size in (0, -line_end) and exponents == sum(letters for _, letters in plain)
        else None
    )


def _measure_file(path: Path) -> tuple[int, int, int]:
    """Returns the bytes below a file's first line, how many of them are e or E, and how many end
    that line.
    """
    with path.open("rb") as stream:
        first = stream.readline()
        size = letters = 0
        while block := stream.read(1 << 24):
            size += len(block)
            letters += block.count(b"e") + block.count(b"E")
    return size, letters, 2 if first.endswith(b"\r\n") else 1


def _measure(column: Column) -> tuple[int, int]:
    """Returns how many bytes a column's values take in a CSV without quotes, and how many of those
    are e or E.
    """
    if isinstance(column, tuple):
        codes, texts = column
        times = np.bincount(codes[codes >= 0], minlength=len(texts))
        encoded = (
            map(len, texts) if "".join(texts).isascii() else (len(text.encode()) for text in texts)
        )
        length = np.fromiter(encoded, dtype=np.int64, count=len(texts))
        letters = np.fromiter(
            (text.count("e") + text.count("E") for text in texts), dtype=np.int64, count=len(texts)
        )
        return int(times @ length), int(times @ letters)
    magnitude = np.abs(column)
    total = len(column) + int((column < 0).sum())
    bound = 10
    while bound <= magnitude.max(initial=0):
        total += int((magnitude >= bound).sum())
        bound *= 10
    return total, 0


def plain_integers(values: Sequence[str]) -> bool:
    """Whether every text is how Python spells a whole number, so that turning it into one loses
    nothing.
    """
    return all(
        value.removeprefix("-").isdigit()
        and value.isascii()
        and len(value) < 19
        and str(int(value)) == value
        for value in values
    )


def _typed(column: Column, role: str, path: str | Path) -> Any:
    """Returns a column's values, text as ints or bools where every distinct text is spelt as
    one."""
    if not isinstance(column, tuple):
        return column
    codes, texts = column
    if len(codes) and codes.min() < 0:
        raise DataError(
            f"{path}: row {int(np.flatnonzero(codes < 0)[0])}, column {role!r}: expected a value,"
            " received an empty cell"
        )
    if "\0" in "".join(texts):
        raise DataError(
            f"{path}: column {role!r}: expected text, received {not_text(path) or 'a NUL byte'}"
        )
    distinct: list[Any] = texts
    if texts and plain_integers(texts):
        distinct = [int(text) for text in texts]
    elif set(texts) <= {"True", "False"}:
        distinct = [text == "True" for text in texts]
    kind = None if distinct and not isinstance(distinct[0], str) else object
    return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(distinct, dtype=kind)))


def to_csv(annotations: Annotations, path: str | Path) -> None:
    """See `Annotations.to_csv`."""
    frame = annotations.to_frame()
    names = (annotations.instance_names, annotations.annotator_names, annotations.class_names)
    # Carriage returns end lines for those who read the file, but pandas quotes line feeds only.
    returns = any("\r" in name for part in names for name in part.tolist() if isinstance(name, str))
    with atomic_path(path) as temporary:
        frame.to_csv(
            temporary, index=False, quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
        )


def from_wide_frame(frame: pd.DataFrame, *, class_names: Any = None) -> Annotations:
    """See `Annotations.from_wide_frame`. Whole floats become ints (NaN turns an integer column into
    floats).

    Raises:
        DataError: a repeated row or column name, or an unknown label.
    """
    for axis, what in ((frame.index, "row"), (frame.columns, "column")):
        if not axis.is_unique:
            raise DataError(
                f"wide frame: expected each {what} name once, received"
                f" {axis[axis.duplicated()][0]!r} again"
            )
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


def from_answers_json(
    source: str | Path | Mapping[str, Mapping[str, Hashable]], **names: Any
) -> Annotations:
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
            raise DataError(
                f"{where}: task {task!r}: expected an object of workers and labels, received"
                f" {type(given).__name__}"
            )
        for worker, label in given.items():
            if label is None or not isinstance(label, Hashable):
                raise DataError(
                    f"{where}: task {task!r}, worker {worker!r}: expected a label, received"
                    f" {label!r}"
                )
            triples.append((task, worker, label))
    for triple in triples:
        for what, value in zip(ALIASES, triple, strict=True):
            if (
                isinstance(value, str)
                and not value.isascii()
                and any("\ud800" <= letter <= "\udfff" for letter in value)
            ):
                raise DataError(
                    f"{where}: expected text, received a {what} with half a surrogate pair:"
                    f" {value!r}"
                )
            if isinstance(value, str) and "\0" in value:
                raise DataError(
                    f"{where}: expected text, received a {what} with a NUL character: {value!r}"
                )
    tasks, workers, labels = (
        (list(column) for column in zip(*triples, strict=True)) if triples else ([], [], [])
    )
    names.setdefault("instance_names", list(answers))
    return Annotations.from_arrays(tasks, workers, labels, **names)


def to_answers_json(
    annotations: Annotations, path: str | Path | None = None
) -> dict[str, dict[str, Any]]:
    """See `Annotations.to_answers_json`. JSON's keys are text, so ids of other types are spelt out.

    Raises:
        DataError: two ids that are spelt alike (1 and "1").
    """
    tasks = [str(name) for name in annotations.instance_names.tolist()]
    workers = [str(name) for name in annotations.annotator_names.tolist()]
    for names, what in ((tasks, "task"), (workers, "worker")):
        if len(set(names)) != len(names):
            raise DataError(
                f"answers.json: expected {what} ids that differ as text, received two that are both"
                f" spelt {pd.Series(names).mode()[0]!r}"
            )
    classes = annotations.class_names.tolist()
    answers: dict[str, dict[str, Any]] = {task: {} for task in tasks}
    for i, j, c in zip(
        annotations.instances.tolist(),
        annotations.annotators.tolist(),
        annotations.labels.tolist(),
        strict=True,
    ):
        answers[tasks[i]][workers[j]] = classes[c]
    if path is not None:
        with atomic_path(path) as temporary:
            temporary.write_text(json.dumps(answers, ensure_ascii=False), encoding="utf-8")
    return answers
