"""Fits a method to shards: sums on an engine, parameters on the disk after each iteration."""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neucrowd_tf.aggregation.engine.kept import Engine, Origin, changed, digests
from neucrowd_tf.aggregation.engine.methods import Method, find_method
from neucrowd_tf.aggregation.engine.shards import Shards, load_shards, make_shards, read_record
from neucrowd_tf.aggregation.engine.source import Source, find_source
from neucrowd_tf.aggregation.sums import LatentModel, Sums, total
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files.arrays import load_arrays, save_arrays
from neucrowd_tf.io.files.atomic import atomic_path
from neucrowd_tf.io.files.json import read_sealed, write_sealed
from neucrowd_tf.io.files.reading import digest
from neucrowd_tf.io.tables.format import PLAIN, TableFormat

WORK = "work"
DONE = "fit.json"


@dataclasses.dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes:
        annotations: a .parquet or .csv file, or a folder of them.
        method: its name.
        output: the folder to write `labels/`, `annotators.parquet`, `parameters.npz` and `fit.json`
            to; what is needed on the way is in its `work/`.
        max_iter, tol: None for the method's defaults.
        resume: go on with an unfinished fit in that folder, or begin one.
        layout: how the annotations are written, which labels are left out, and the classes.
        report: takes a line on what was done.
    """

    annotations: Path
    method: str
    output: Path
    max_iter: int | None = None
    tol: float | None = None
    resume: bool = False
    layout: TableFormat = PLAIN
    report: Callable[[str], None] = lambda line: None


@dataclasses.dataclass
class State:
    """Where the iterations are: the last parameters and the objective after each iteration."""

    parameters: Any
    path: Path | None
    history: list[float]

    def change(self, scale: float) -> float:
        """Returns by how much the last iteration raised the objective, for each annotation."""
        if len(self.history) < 2:
            return np.inf
        return (self.history[-1] - self.history[-2]) / scale


def fit(request: Request, engine: Engine) -> dict[str, Any]:
    """Fits a method and writes what it finds; returns what is in `fit.json`.

    Raises:
        DataError: annotations that cannot be used.
        UsageError: a method that needs all annotations in memory, an output folder in use, or to
            resume a fit of other annotations.
    """
    began = time.perf_counter()
    method = find_method(request.method)
    _check(request)
    source = find_source(request.annotations, request.layout)
    origin = Origin.of(request.annotations, source, engine)
    of = _settings(request, method, origin)
    found = _finished(request, origin, of, engine)
    if found is not None:
        return found
    shards = _shards(request, source, origin, engine)
    read = time.perf_counter() - began
    _report_read(request, source, shards, read)
    state = State(None, None, [])
    if method.model is not None:
        state = _iterate(request, method, method.model(shards.num_classes), shards, engine)
    iterated = time.perf_counter() - began - read
    files = _write(request.output, request.method, shards, state, engine)
    tol = method.tol if request.tol is None else request.tol
    seconds = time.perf_counter() - began
    result = {
        "method": request.method,
        "of": of,
        "num_annotations": shards.num_annotations,
        "num_instances": sum(shards.sizes),
        "num_annotators": shards.num_annotators,
        "classes": list(shards.classes),
        "n_iter": len(state.history),
        "history": state.history,
        "converged": bool(state.change(shards.num_annotations) < tol) or method.model is None,
        "seconds": {"read": read, "iterate": iterated, "write": seconds - read - iterated},
        "files": digests(request.output, files, engine),
    }
    write_sealed(request.output / DONE, result)
    shutil.rmtree(request.output / WORK)
    request.report(f"labels written: {seconds:.1f} s in all")
    return result


def _check(request: Request) -> None:
    """Raises UsageError for what cannot be asked for."""
    if request.max_iter is not None and request.max_iter < 1:
        raise UsageError(f"max_iter: expected a whole number from 1, received {request.max_iter}")
    if request.tol is not None and not 0 <= request.tol < float("inf"):
        raise UsageError(f"tol: expected a number from 0, received {request.tol}")
    if not request.resume and request.output.exists() and any(request.output.iterdir()):
        raise UsageError(f"{request.output}: expected a new folder, received one in use; --resume?")


def _shards(request: Request, source: Source, origin: Origin, engine: Engine) -> Shards:
    """Returns the shards that an unfinished fit left, or makes them; where they are made again of
    the same annotations they are the same, and what was fitted to them is kept.

    Raises:
        UsageError: they are of other annotations.
        DataError: annotations that cannot be used.
    """
    work = request.output / WORK
    same = False
    try:
        if (record := read_record(work / "shards")) is not None:
            origin.check(record["origin"], request.output)
            if same := record["origin"] == origin.record():
                return load_shards(work / "shards", record, engine)
            request.report(
                "warning: begun again, as the flags say of the annotations something else"
            )
    except DataError as error:
        request.report(f"warning: {error}; the annotations are read again")
    if not same:
        shutil.rmtree(work, ignore_errors=True)
    new = not request.output.exists()
    try:
        return make_shards(source, origin, work / "shards", engine)
    except DataError:  # the folder is none in use, once the annotations are mended
        shutil.rmtree(request.output if new else work, ignore_errors=True)
        raise


def _report_read(request: Request, source: Source, shards: Shards, read: float) -> None:
    """Reports what was read, and in how many seconds."""
    request.report(
        f"{shards.num_annotations:,} annotations of {sum(shards.sizes):,} tasks by"
        f" {shards.num_annotators:,} annotators, {shards.num_classes} classes, in"
        f" {len(shards.sizes)} shards: {read:.1f} s"
    )
    if shards.num_missing:
        request.report(
            f"warning: {shards.num_missing:,} rows without a label are left out (--missing)"
        )
    for said in shards.told:
        request.report(f"warning: {request.annotations}: {said}")
    if source.others:
        request.report(
            f"warning: {len(source.others)} files that are no .parquet or .csv are passed over (the"
            f" first: {source.others[0]})"
        )
    if shards.num_classes == 1:
        request.report(f"warning: all labels are {shards.classes[0]!r}")


def _finished(
    request: Request, origin: Origin, of: dict[str, Any], engine: Engine
) -> dict[str, Any] | None:
    """Returns what is in `fit.json` where this fit is finished; where one with other settings or a
    damaged one is, it has to be made again.

    Raises:
        UsageError: another method, or other annotations, were fitted there.
    """
    path = request.output / DONE
    if not path.exists():
        return None
    try:
        found = read_sealed(path)
    except DataError as error:
        request.report(f"warning: {error}; fitted again")
        path.unlink()
        return None
    if found["method"] != request.method:
        raise UsageError(
            f"{request.output}: expected {found['method']}, which was fitted there, received"
            f" {request.method}"
        )
    origin.check(found["of"]["origin"], request.output)
    if found["of"] != of:
        request.report(f"{request.output}: fitted again: what is there is of other settings")
    elif (other := changed(request.output, found["files"], engine)) is not None:
        request.report(
            f"warning: {other}: expected the file as it was written, received it damaged or none;"
            " fitted again"
        )
    else:
        request.report(f"{request.output}: finished before")
        return found
    path.unlink()
    return None


def _settings(request: Request, method: Method, origin: Origin) -> dict[str, Any]:
    """Returns what a finished fit depends on, as JSON gives it back."""
    return {
        "origin": origin.record(),
        "max_iter": method.max_iter if request.max_iter is None else request.max_iter,
        "tol": method.tol if request.tol is None else request.tol,
    }


def groups(count: int) -> list[tuple[int, ...]]:
    """Returns which shards are added up before they are sent: a function of their number alone, as
    the order of additions is part of the result.
    """
    parts = np.array_split(np.arange(count), min(count, 10 + count // 16))
    return [tuple(part.tolist()) for part in parts]


def _iterate(
    request: Request, method: Method, model: LatentModel[Any], shards: Shards, engine: Engine
) -> State:
    """Runs EM (`aggregation.sums.run`) where no beliefs are kept."""
    work = request.output / WORK
    max_iter = method.max_iter if request.max_iter is None else request.max_iter
    tol = method.tol if request.tol is None else request.tol
    state = _last(work, request, method)
    scale = shards.num_annotations

    def sums() -> Sums:
        job = PartSums(shards, model, method.parameters, state.path)
        return total(engine.map(job, groups(len(shards.sizes))))

    if len(state.history) >= max_iter or state.change(scale) < tol:
        return state
    found = sums()
    while len(state.history) < max_iter:
        began = time.perf_counter()
        state.parameters = model.m_step(found, state.parameters)
        state.path = work / f"parameters-{len(state.history) + 1:05d}.npz"
        save_arrays(state.path, _arrays(state.parameters))
        found = sums()
        state.history.append(model.objective(found, state.parameters))
        write_sealed(
            work / "state.json",
            {
                "method": request.method,
                "files": {state.path.name: digest(state.path)},
                "history": state.history,
            },
        )
        for old in work.glob("parameters-*.npz"):
            if old != state.path:
                old.unlink()
        change = state.change(scale)
        request.report(
            f"iteration {len(state.history)}: objective {state.history[-1]:.8g}, change"
            f" {change:.2g} an annotation, {time.perf_counter() - began:.2f} s"
        )
        if change < tol:
            break
    return state


def _last(work: Path, request: Request, method: Method) -> State:
    """Returns where an earlier fit in this folder was, or the beginning.

    Raises:
        UsageError: it was another method's.
    """
    if not (work / "state.json").exists():
        return State(None, None, [])
    try:
        found = read_sealed(work / "state.json")
        if found["method"] != request.method:
            raise UsageError(
                f"{request.output}: expected {found['method']}, which was begun there, received"
                f" {request.method}"
            )
        ((name, before),) = found["files"].items()
        path = work / name
        if not path.is_file() or digest(path) != before:
            raise DataError(f"{path}: expected parameters as they were written, received others")
        return State(method.parameters(**load_arrays(path)), path, list(found["history"]))
    except DataError as error:
        request.report(f"warning: {error}; the fit begins again")
        return State(None, None, [])


def _arrays(parameters: Any) -> dict[str, np.ndarray]:
    return {
        field.name: np.asarray(getattr(parameters, field.name))
        for field in dataclasses.fields(parameters)
    }


@functools.lru_cache(maxsize=1)
def _loaded(path: str, kind: Callable[..., Any], written: int) -> Any:
    return kind(**load_arrays(path))


def _load(path: Path | None, kind: Callable[..., Any]) -> Any:
    """Returns parameters from a file that all workers see, which outlives any of them."""
    return None if path is None else _loaded(str(path), kind, os.stat(path).st_mtime_ns)


@dataclasses.dataclass(frozen=True)
class PartSums:
    """The sums over some shards, as a function that other processes can be sent."""

    shards: Shards
    model: LatentModel[Any]
    kind: Callable[..., Any]
    parameters: Path | None

    def __call__(self, numbers: tuple[int, ...]) -> Sums:
        parameters = _load(self.parameters, self.kind)
        return total(self._parts(numbers, parameters))

    def _parts(self, numbers: tuple[int, ...], parameters: Any) -> Iterator[Sums]:
        for number in numbers:
            if self.shards.sizes[number]:
                yield self.model.statistics(self.shards.open(number), parameters)


@dataclasses.dataclass(frozen=True)
class WriteLabels:
    """Writes a shard's labels and probabilities, as a function that other processes can be sent.

    The columns are `task,label,probability,num_labels` and `p_<class>` for each class. Between
    equally probable classes the first is taken.
    """

    shards: Shards
    folder: Path
    name: str
    parameters: Path | None

    def __call__(self, number: int) -> np.ndarray:
        """Returns how many labels each annotator gave in the shard."""
        method, size = find_method(self.name), self.shards.num_classes
        shard = self.shards.open(number)
        if method.model is None:
            beliefs = shard.votes()
        else:
            model = method.final(method.model(size))
            beliefs, _ = model.e_step(shard, _load(self.parameters, method.parameters))
        probas = method.probas(beliefs, size)
        best = probas.argmax(axis=1)
        names = pa.array(self.shards.classes)
        columns = {
            "task": self.shards.tasks(number),
            "label": pa.DictionaryArray.from_arrays(best.astype(np.int32), names),
            "probability": probas[np.arange(len(best)), best],
            "num_labels": np.diff(shard.one_hot.indptr).astype(np.int32),
        }
        if pa.types.is_integer(names.type):
            columns["label"] = names.take(pa.array(best))
        for place, label in enumerate(self.shards.classes):
            columns[f"p_{label}"] = probas[:, place].astype(np.float32)
        with atomic_path(self.folder / f"part-{number:05d}.parquet") as temporary:
            pq.write_table(pa.table(columns), temporary)
        return np.bincount(shard.one_hot.indices // size, minlength=self.shards.num_annotators)


def _write(output: Path, name: str, shards: Shards, state: State, engine: Engine) -> list[str]:
    """Writes labels by shard, then annotators and parameters; returns the files."""
    folder = output / WORK / "labels"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    method = find_method(name)
    job = WriteLabels(shards, folder, name, state.path)
    wanted = [number for number, size in enumerate(shards.sizes) if size]
    given = np.zeros(shards.num_annotators, dtype=np.int64)
    for part in engine.map(job, wanted):
        given += part
    for left in folder.glob(".*"):  # of a worker that died
        left.unlink()
    shutil.rmtree(output / "labels", ignore_errors=True)
    os.replace(folder, output / "labels")
    columns = {"annotator": shards.annotators, "num_labels": given}
    if state.parameters is not None:
        save_arrays(output / "parameters.npz", _arrays(state.parameters))
        skills = method.skills(state.parameters)
        if skills is not None:
            columns["skill"] = skills
    with atomic_path(output / "annotators.parquet") as temporary:
        pq.write_table(pa.table(columns), temporary)
    parts = sorted(path.relative_to(output).as_posix() for path in (output / "labels").iterdir())
    return [*parts, "annotators.parquet", *["parameters.npz"] * (state.parameters is not None)]
