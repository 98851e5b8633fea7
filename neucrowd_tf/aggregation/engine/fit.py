"""Fits a method out of core: sums on an engine, parameters on the disk after each iteration."""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neucrowd_tf.aggregation.base import expected_skills
from neucrowd_tf.aggregation.engine.methods import find_method
from neucrowd_tf.aggregation.engine.records import Engine, changed, check_origin, digests, origin_of
from neucrowd_tf.aggregation.engine.shards import Shards, load_shards, make_shards, read_record
from neucrowd_tf.aggregation.engine.source import Source, find_source
from neucrowd_tf.aggregation.sums import LatentModel, Sums, total
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files.arrays import load_arrays, save_arrays
from neucrowd_tf.io.files.atomic import atomic_path
from neucrowd_tf.io.files.json import read_sealed, write_sealed
from neucrowd_tf.io.files.reading import digest
from neucrowd_tf.io.schema import DEFAULTS, TableOptions

WORK = "work"
DONE = "fit.json"


# What a fit.json has as the settings of the majority vote, which does not iterate.
NO_ITERATIONS = {"max_iter": 100, "tol": 1e-6}


@dataclasses.dataclass(frozen=True)
class Request:
    """What to fit, to which annotations, and where to.

    Attributes:
        annotations: a .parquet or .csv file, or a folder of them.
        method: its name.
        output: the folder to write `labels/`, `annotators.parquet`, `parameters.npz` and `fit.json`
            to; intermediate files are in its `work/`.
        max_iter, tol: None for the method's defaults.
        resume: go on with an unfinished fit in that folder, or begin one.
        options: how the annotations are read.
        report: takes a line on progress.
    """

    annotations: Path
    method: str
    output: Path
    max_iter: int | None = None
    tol: float | None = None
    resume: bool = False
    options: TableOptions = DEFAULTS
    report: Callable[[str], None] = lambda line: None

    def check(self) -> None:
        """Raises UsageError for settings that cannot be used."""
        if self.max_iter is not None and self.max_iter < 1:
            raise UsageError(f"max_iter: expected a whole number from 1, received {self.max_iter}")
        if self.tol is not None and not 0 <= self.tol < float("inf"):
            raise UsageError(f"tol: expected a number from 0, received {self.tol}")
        if not self.resume and self.output.exists() and any(self.output.iterdir()):
            raise UsageError(
                f"{self.output}: expected a new folder, received one in use; --resume?"
            )

    def settings(self, origin: dict[str, Any]) -> dict[str, Any]:
        """Returns what a finished fit depends on, as JSON has it."""
        method, stated = find_method(self.method), {"max_iter": self.max_iter, "tol": self.tol}
        values = {
            name: getattr(method, name, NO_ITERATIONS[name]) if value is None else value
            for name, value in stated.items()
        }
        return {"origin": origin, **values}

    def check_method(self, record: dict[str, Any], done: str) -> None:
        """Raises UsageError if another method was fitted, or begun, in the folder."""
        if record["method"] != self.method:
            raise UsageError(
                f"{self.output}: expected {record['method']}, which was {done} there, received"
                f" {self.method}"
            )


@dataclasses.dataclass
class State:
    """The last parameters, their file, and the objective after each iteration."""

    parameters: Any
    path: Path | None
    history: list[float]

    def change(self, scale: float) -> float:
        """Returns by how much the last iteration raised the objective, for each annotation."""
        if len(self.history) < 2:
            return np.inf
        return (self.history[-1] - self.history[-2]) / scale


def fit(request: Request, engine: Engine) -> dict[str, Any]:
    """Fits a method and writes labels, annotators and parameters; returns `fit.json`.

    Raises:
        DataError: annotations that cannot be used.
        UsageError: a method that needs all annotations in memory, an output folder in use, or to
            resume a fit of other annotations.
    """
    began = time.perf_counter()
    method = find_method(request.method)
    request.check()
    source = find_source(request.annotations, request.options)
    origin = origin_of(request.annotations, source, engine)
    settings = request.settings(origin)
    finished = _finished(request, origin, settings, engine)
    if finished is not None:
        return finished
    shards = _shards(request, source, origin, engine)
    read = time.perf_counter() - began
    _report_read(request, source, shards, read)
    state = State(None, None, [])
    model = None if method is None else method.latent_model(shards.num_classes)
    if model is not None:
        state = _iterate(request, settings, model, shards, engine)
    iterated = time.perf_counter() - began - read
    files = _write(request.output, model, shards, state, engine)
    seconds = time.perf_counter() - began
    result = {
        "method": request.method,
        "of": settings,
        "num_annotations": shards.num_annotations,
        "num_instances": sum(shards.sizes),
        "num_annotators": shards.num_annotators,
        "classes": list(shards.classes),
        "n_iter": len(state.history),
        "history": state.history,
        "converged": model is None or bool(state.change(shards.num_annotations) < settings["tol"]),
        "seconds": {"read": read, "iterate": iterated, "write": seconds - read - iterated},
        "files": digests(request.output, files, engine),
    }
    write_sealed(request.output / DONE, result)
    shutil.rmtree(request.output / WORK)
    request.report(f"labels written: {seconds:.1f} s in all")
    if not result["converged"]:
        request.report(
            f"warning: {request.method} did not converge in {len(state.history)} iterations. Raise"
            " --max_iter or --tol."
        )
    return result


def _shards(request: Request, source: Source, origin: dict[str, Any], engine: Engine) -> Shards:
    """Returns the shards that an unfinished fit left, or makes them.

    Shards of the same annotations are the same again, so that parameters fitted to damaged ones
    stay valid.

    Raises:
        UsageError: the unfinished fit is of other annotations.
        DataError: annotations that cannot be used.
    """
    work = request.output / WORK
    same = False
    try:
        if (record := read_record(work / "shards")) is not None:
            check_origin(origin, record["origin"], request.output)
            if same := record["origin"] == origin:
                return load_shards(work / "shards", record, engine)
            request.report(
                "warning: the annotations are read with other options now; the fit begins again"
            )
    except DataError as error:
        request.report(f"warning: {error}; the annotations are read again")
    if not same:
        shutil.rmtree(work, ignore_errors=True)
    new = not request.output.exists()
    try:
        return make_shards(source, origin, work / "shards", engine)
    except DataError:  # leave no folder in use behind
        shutil.rmtree(request.output if new else work, ignore_errors=True)
        raise


def _report_read(request: Request, source: Source, shards: Shards, seconds: float) -> None:
    """Reports what was read, and in how many seconds."""
    for line in shards.lines:
        request.report(line)
    request.report(
        f"{shards.num_annotations:,} annotations of {sum(shards.sizes):,} items by"
        f" {shards.num_annotators:,} annotators, {shards.num_classes} classes, in"
        f" {len(shards.sizes)} shards: {seconds:.1f} s"
    )
    if source.others:
        request.report(
            f"warning: {len(source.others)} files that are no .parquet or .csv are left out (the"
            f" first: {source.others[0]})"
        )
    if shards.num_classes == 1:
        request.report(f"warning: all labels are {shards.classes[0]!r}")


def _finished(
    request: Request, origin: dict[str, Any], settings: dict[str, Any], engine: Engine
) -> dict[str, Any] | None:
    """Returns the `fit.json` of a finished fit with the same settings, or None.

    The record of a fit with other settings or with damaged files is removed.

    Raises:
        UsageError: another method, or other annotations, were fitted there.
    """
    path, report = request.output / DONE, request.report
    if not path.exists():
        return None
    try:
        result = read_sealed(path)
        request.check_method(result, "fitted")
        check_origin(origin, result["of"]["origin"], request.output)
        if result["of"] != settings:
            report(f"{request.output}: the fit there has other settings; fitted again")
        elif (other := changed(request.output, result["files"], engine)) is not None:
            report(f"warning: {other}: the file is missing or damaged; fitted again")
        else:
            report(f"{request.output}: finished before")
            return result
    except DataError as error:
        report(f"warning: {error}; fitted again")
    path.unlink()
    return None


def groups(count: int) -> list[tuple[int, ...]]:
    """Returns which shards are added up before they are sent.

    This depends on their number alone, as the order of additions is part of the result.
    """
    parts = np.array_split(np.arange(count), min(count, 10 + count // 16))
    return [tuple(counts.tolist()) for counts in parts]


def _iterate(
    request: Request,
    settings: dict[str, Any],
    model: LatentModel[Any],
    shards: Shards,
    engine: Engine,
) -> State:
    """Runs EM (`aggregation.sums.run`) without keeping beliefs."""
    work = request.output / WORK
    max_iter, tol = settings["max_iter"], settings["tol"]
    state = _last(work, request, model)
    scale = shards.num_annotations

    def sums() -> Sums:
        job = functools.partial(part_sums, shards, model, state.path)
        return total(engine.map(job, groups(len(shards.sizes))))

    if len(state.history) >= max_iter or state.change(scale) < tol:
        return state
    current = sums()
    while len(state.history) < max_iter:
        began = time.perf_counter()
        state.parameters = model.m_step(current, state.parameters)
        state.path = work / f"parameters-{len(state.history) + 1:05d}.npz"
        save_arrays(state.path, _arrays(state.parameters))
        current = sums()
        state.history.append(model.objective(current, state.parameters))
        files = {state.path.name: digest(state.path)}
        record = {"method": request.method, "files": files, "history": state.history}
        write_sealed(work / "state.json", record)
        for old in work.glob("parameters-*.npz"):
            if old != state.path:
                old.unlink()
        change = state.change(scale)
        request.report(
            f"iteration {len(state.history)}: objective {state.history[-1]:.8g}, change"
            f" {change:.2g} per annotation, {time.perf_counter() - began:.2f} s"
        )
        if change < tol:
            break
    return state


def _last(work: Path, request: Request, model: LatentModel[Any]) -> State:
    """Returns the state of an earlier fit in this folder, or the beginning.

    Raises:
        UsageError: it was another method's.
    """
    if not (work / "state.json").exists():
        return State(None, None, [])
    try:
        record = read_sealed(work / "state.json")
        request.check_method(record, "begun")
        ((name, before),) = record["files"].items()
        path = work / name
        if not path.is_file() or digest(path) != before:
            raise DataError(f"{path}: expected parameters as they were written, received others")
        return State(model.parameters_type(**load_arrays(path)), path, list(record["history"]))
    except DataError as error:
        request.report(f"warning: {error}; the fit begins again")
        return State(None, None, [])


def _arrays(parameters: Any) -> dict[str, np.ndarray]:
    return {
        field.name: np.asarray(getattr(parameters, field.name))
        for field in dataclasses.fields(parameters)
    }


@functools.lru_cache(maxsize=1)
def _loaded(path: Path, kind: Callable[..., Any], written: int) -> Any:
    return kind(**load_arrays(path))


def _load(path: Path | None, kind: Callable[..., Any]) -> Any:
    """Returns parameters from a file that all workers see, which outlives any of them."""
    return None if path is None else _loaded(path, kind, path.stat().st_mtime_ns)


def part_sums(
    shards: Shards, model: LatentModel[Any], path: Path | None, numbers: tuple[int, ...]
) -> Sums:
    """Returns the sums over some shards, under the parameters of a file."""
    parameters = _load(path, model.parameters_type)
    used = (shards.open(number) for number in numbers if shards.sizes[number])
    return total(model.statistics(shard, parameters) for shard in used)


def write_labels(
    shards: Shards, folder: Path, model: LatentModel[Any] | None, path: Path | None, number: int
) -> np.ndarray:
    """Writes a shard's labels and probabilities.

    The columns are `task,label,probability,num_labels` and `p_<class>` for each class. Of equally
    probable classes the first is the label.

    Args:
        shards: the annotations.
        folder: to write to.
        model: the method, None for the majority vote.
        path: the file of the last parameters.
        number: the shard's.

    Returns:
        how many labels each annotator gave in the shard.
    """
    shard = shards.open(number)
    if model is None:
        probas = shard.votes()
    else:
        parameters = _load(path, model.parameters_type)
        probas = model.probas(model.soft().e_step(shard, parameters)[0], parameters)
    best = probas.argmax(axis=1)
    names = pa.array(shards.classes)
    columns = {
        "task": shards.tasks(number),
        "label": pa.DictionaryArray.from_arrays(best.astype(np.int32), names),
        "probability": probas[np.arange(len(best)), best],
        "num_labels": np.diff(shard.one_hot.indptr).astype(np.int32),
    }
    if pa.types.is_integer(names.type):
        columns["label"] = names.take(pa.array(best))
    for code, label in enumerate(shards.classes):
        columns[f"p_{label}"] = probas[:, code].astype(np.float32)
    with atomic_path(folder / f"part-{number:05d}.parquet") as temporary:
        pq.write_table(pa.table(columns), temporary)
    annotators = shard.one_hot.indices // shards.num_classes
    return np.bincount(annotators, minlength=shards.num_annotators)


def _write(
    output: Path, model: LatentModel[Any] | None, shards: Shards, state: State, engine: Engine
) -> list[str]:
    """Writes labels by shard, then annotators and parameters; returns the files."""
    folder = output / WORK / "labels"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    job = functools.partial(write_labels, shards, folder, model, state.path)
    numbers = [number for number, size in enumerate(shards.sizes) if size]
    num_labels = np.zeros(shards.num_annotators, dtype=np.int64)
    for counts in engine.map(job, numbers):
        num_labels += counts
    for left in folder.glob(".*"):  # of a worker that died
        left.unlink()
    shutil.rmtree(output / "labels", ignore_errors=True)
    os.replace(folder, output / "labels")
    files = sorted(path.relative_to(output).as_posix() for path in (output / "labels").iterdir())
    columns = {"annotator": shards.annotators, "num_labels": num_labels}
    if model is not None:
        save_arrays(output / "parameters.npz", _arrays(state.parameters))
        files.append("parameters.npz")
        errors = model.errors(state.parameters)
        if errors is not None:
            columns["skill"] = expected_skills(errors, model.priors(state.parameters))
    with atomic_path(output / "annotators.parquet") as temporary:
        pq.write_table(pa.table(columns), temporary)
    return [*files, "annotators.parquet"]
