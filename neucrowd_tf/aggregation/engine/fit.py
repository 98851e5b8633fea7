"""Fits a method out of core: sums on an engine, parameters on the disk after each iteration."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neucrowd_tf.aggregation.base import count_votes, expected_skills
from neucrowd_tf.aggregation.catalogue import AGGREGATORS
from neucrowd_tf.aggregation.engine.local import Engine
from neucrowd_tf.aggregation.engine.shards import RECORD, Shards, make_shards
from neucrowd_tf.aggregation.engine.source import Source, find_source
from neucrowd_tf.aggregation.iterative import IterativeAggregator
from neucrowd_tf.aggregation.sums import LatentModel, Shard, Sums, total
from neucrowd_tf.annotations.statistics import top_classes
from neucrowd_tf.declare.picking import attributes_of
from neucrowd_tf.declare.types import Fields, Floats, Indices, Integers
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files.arrays import load_arrays, save_arrays
from neucrowd_tf.io.files.atomic import atomic_path
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.files.json_text import jsonable, write_json
from neucrowd_tf.io.files.reading import digest
from neucrowd_tf.io.schema import DEFAULTS, TableOptions

WORK = "work"
DONE = "fit.json"
# Aggregators whose `latent_model` is fitted; the majority vote has no parameters.
METHODS = ("majority_vote", "dawid_skene", "one_coin", "fast_dawid_skene", "ibcc", "bwa")


class Calibration(Protocol):
    """Turns posteriors into probabilities, by parts; `neucrowd_tf.certainty` has one."""

    def sums(self, votes: Integers) -> Floats: ...

    def apply(self, probas: Floats, votes: Integers, sums: Floats) -> tuple[Floats, Indices]: ...


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
        calibration: of the probabilities; None leaves the method's posteriors.
    """

    annotations: Path
    method: str
    output: Path
    max_iter: int | None = None
    tol: float | None = None
    resume: bool = False
    options: TableOptions = DEFAULTS
    report: Callable[[str], None] = lambda line: None
    calibration: Calibration | None = None


@dataclasses.dataclass
class State:
    """The last parameters, their file, and the objective after each iteration."""

    parameters: Any = None
    path: Path | None = None
    history: list[float] = dataclasses.field(default_factory=list)
    converged: bool = False


def fit(request: Request, engine: Engine) -> Fields:
    """Fits a method and writes labels, annotators and parameters; returns `fit.json`.

    Raises:
        DataError: annotations that cannot be used.
        UsageError: a method that needs all annotations in memory, an output folder in use, or to
            resume a fit of other annotations or settings.
    """
    began = time.perf_counter()
    output = request.output
    report = request.report
    if request.method not in METHODS:
        raise UsageError(
            f"method: {request.method!r} cannot read by parts. Use one of {', '.join(METHODS)}."
        )
    if not request.resume and output.exists() and any(output.iterdir()):
        raise UsageError(f"{output}: this folder is not empty. Name another, or use --resume.")
    source = find_source(request.annotations, request.options)
    settings = _settings(request, source, engine)
    if (output / DONE).exists():
        result = read_json(output / DONE)
        _check_same(settings, result["of"], output)
        report(f"{output}: finished before")
        return result
    shards = _shards(output, source, settings, engine)
    read = time.perf_counter() - began
    for line in shards.lines:
        report(line)
    report(
        f"{shards.num_annotations:,} annotations of {sum(shards.sizes):,} items by"
        f" {shards.num_annotators:,} annotators, {shards.num_classes} classes, in"
        f" {len(shards.sizes)} shards: {read:.1f} s"
    )
    model = None
    state = State(converged=True)
    if request.method != "majority_vote":
        method: Any = AGGREGATORS[request.method]()
        model = method.latent_model(shards.num_classes)
        state = _iterate(request, method, model, shards, engine)
    iterated = time.perf_counter() - began - read
    _write(request, model, shards, state, engine)
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
        "converged": state.converged,
        "seconds": {"read": read, "iterate": iterated, "write": seconds - read - iterated},
    }
    write_json(output / DONE, result)
    shutil.rmtree(output / WORK)
    report(f"labels written: {seconds:.1f} s in all")
    if not state.converged:
        report(
            f"warning: {request.method} did not converge in {len(state.history)} iterations. Raise"
            " --max_iter or --tol."
        )
    return result


def _settings(request: Request, source: Source, engine: Engine) -> Fields:
    """Returns what a fit depends on, for JSON: its settings, and the SHA-256 of each file.

    Files are named by their path in the folder of annotations, which may be moved.
    """
    folder = request.annotations
    if not folder.is_dir():
        folder = folder.parent
    names = (file.relative_to(folder).as_posix() for file in source.files)
    stated = attributes_of(request, ("method", "max_iter", "tol"))
    files = dict(zip(names, engine.map(digest, source.files), strict=True))
    return dict(jsonable({**stated, **source.options.changed(), **files}))


def _check_same(settings: Fields, before: Fields, output: Path) -> None:
    """Raises UsageError if a fit in the output folder depended on something else."""
    for name in {**before, **settings}:
        if settings.get(name) != before.get(name):
            raise UsageError(
                f"{output}: the fit there began with {name}={before.get(name)}, now it is"
                f" {settings.get(name)}. Choose another --output, or remove that folder."
            )


def _shards(output: Path, source: Source, settings: Fields, engine: Engine) -> Shards:
    """Returns the shards that an unfinished fit left, or makes them.

    Raises:
        UsageError: the unfinished fit is of other annotations, or has other settings.
        DataError: annotations that cannot be used.
    """
    folder = output / WORK / "shards"
    if (folder / RECORD).exists():
        record = read_json(folder / RECORD)
        _check_same(settings, record.pop("of", {}), output)
        return Shards(folder, **record)
    try:
        return make_shards(source, settings, folder, engine)
    except DataError:  # leave no folder in use behind
        shutil.rmtree(output / WORK)
        with contextlib.suppress(OSError):
            output.rmdir()
        raise


def groups(count: int) -> list[tuple[int, ...]]:
    """Returns which shards are added up before they are sent.

    This depends on their number alone, as the order of additions is part of the result.
    """
    parts = np.array_split(np.arange(count), min(count, 10 + count // 16))
    return [tuple(counts.tolist()) for counts in parts]


def _iterate(
    request: Request,
    method: IterativeAggregator,
    model: LatentModel,
    shards: Shards,
    engine: Engine,
) -> State:
    """Runs EM (`aggregation.sums.run`) without keeping beliefs.

    The parameters are on the disk before the sums under them are computed, with the objectives of
    the iterations before.
    """
    work = request.output / WORK
    scale = shards.num_annotations
    max_iter = method.max_iter if request.max_iter is None else request.max_iter
    tol = method.tol if request.tol is None else request.tol
    state = State(path=max(work.glob("parameters-*.npz"), default=None))
    state.parameters, history = _load(state.path, model.parameters_type)
    state.history = history.tolist()
    while True:
        began = time.perf_counter()
        job = functools.partial(part_sums, shards, model, state.path)
        sums = total(engine.map(job, groups(len(shards.sizes))))
        if state.path is not None:
            state.history.append(model.objective(sums, state.parameters))
            rise = np.inf
            if len(state.history) > 1:
                rise = state.history[-1] - state.history[-2]
            request.report(
                f"iteration {len(state.history)}: objective {state.history[-1]:.8g}, change"
                f" {rise / scale:.2g} per annotation, {time.perf_counter() - began:.2f} s"
            )
            state.converged = bool(rise / scale < tol)
            if state.converged or len(state.history) >= max_iter:
                return state
        state.parameters = model.m_step(sums, state.parameters)
        previous = state.path
        state.path = work / f"parameters-{len(state.history) + 1:05d}.npz"
        save_arrays(state.path, {**_arrays(state.parameters), "history": np.array(state.history)})
        if previous is not None:
            previous.unlink()


def _arrays(parameters: Any) -> dict[str, np.ndarray]:
    return {
        field.name: np.asarray(getattr(parameters, field.name))
        for field in dataclasses.fields(parameters)
    }


@functools.lru_cache(maxsize=1)
def _loaded(path: Path, make: Callable[..., Any], written: int) -> tuple[Any, np.ndarray]:
    arrays = load_arrays(path)
    history = arrays.pop("history")
    return make(**arrays), history


def _load(path: Path | None, parameters_type: Callable[..., Any]) -> tuple[Any, np.ndarray]:
    """Returns parameters, and the objectives before, from a file that all workers see."""
    if path is None:
        return None, np.zeros(0)
    return _loaded(path, parameters_type, path.stat().st_mtime_ns)


def part_sums(
    shards: Shards, model: LatentModel, path: Path | None, numbers: tuple[int, ...]
) -> Sums:
    """Returns the sums over some shards, under the parameters of a file."""
    parameters, _ = _load(path, model.parameters_type)
    used = (shards.open(number) for number in numbers if shards.sizes[number])
    return total(model.statistics(shard, parameters) for shard in used)


def write_labels(
    shards: Shards,
    folder: Path,
    model: LatentModel | None,
    path: Path | None,
    calibration: tuple[Calibration, np.ndarray] | None,
    number: int,
) -> np.ndarray:
    """Writes a shard's labels and probabilities.

    The columns are `task,label,probability,num_labels,num_tied,row` and `p_<class>` for each class,
    with `class` after `task` if cells had several labels. Of equally probable classes, whose number
    is `num_tied`, the first is the label. The rows are in the order of `row`, which is that of the
    tasks in the source.

    Args:
        shards: the annotations.
        folder: to write to.
        model: the method, None for the majority vote.
        path: the file of the last parameters.
        calibration: and its sums over all shards; None leaves posteriors as they are.
        number: the shard's.

    Returns:
        how many labels each annotator gave in the shard.
    """
    shard = shards.open(number)
    if model is None:
        probas = shard.votes()
    else:
        parameters, _ = _load(path, model.parameters_type)
        probas = model.probas(model.soft().e_step(shard, parameters)[0], parameters)
    best = probas.argmax(axis=1)
    num_tied = top_classes(probas).sum(axis=1)
    if calibration is not None:
        rule, sums = calibration
        probas, num_tied = rule.apply(probas, _vote_counts(shard), sums)
    names = pa.array(shards.classes)
    tasks = shards.tasks(number)
    columns = {
        **dict(zip(tasks.column_names, tasks.columns, strict=True)),
        "label": pa.DictionaryArray.from_arrays(best.astype(np.int32), names),
        "probability": probas[np.arange(len(best)), best],
        "num_labels": np.diff(shard.one_hot.indptr).astype(np.int32),
        "num_tied": num_tied.astype(np.int32),
    }
    if pa.types.is_integer(names.type):
        columns["label"] = names.take(pa.array(best))
    columns["row"] = columns.pop("row")  # behind what labels.csv has
    for code, label in enumerate(shards.classes):
        columns[f"p_{label}"] = probas[:, code].astype(np.float32)
    with atomic_path(folder / f"part-{number:05d}.parquet") as temporary:
        pq.write_table(pa.table(columns).sort_by("row"), temporary)
    annotators = shard.one_hot.indices // shards.num_classes
    return np.bincount(annotators, minlength=shards.num_annotators)


def _vote_counts(shard: Shard) -> np.ndarray:
    """Returns `[N, C]` how many labels of each class the items of a shard have."""
    return count_votes(shard.one_hot, shard.num_classes).astype(np.int64)


def size_sums(shards: Shards, calibration: Calibration, number: int) -> np.ndarray:
    """Returns what a calibration has to know of a shard."""
    return calibration.sums(_vote_counts(shards.open(number)))


def _write(
    request: Request, model: LatentModel | None, shards: Shards, state: State, engine: Engine
) -> None:
    """Writes labels by shard, then annotators and parameters."""
    output = request.output
    folder = output / "labels"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    numbers = np.flatnonzero(shards.sizes).tolist()
    calibration = None
    if request.calibration is not None:
        count = functools.partial(size_sums, shards, request.calibration)
        sums = np.sum(list(engine.map(count, numbers)), axis=0)
        calibration = (request.calibration, sums)
    job = functools.partial(write_labels, shards, folder, model, state.path, calibration)
    num_labels = np.zeros(shards.num_annotators, dtype=np.int64)
    for counts in engine.map(job, numbers):
        num_labels += counts
    for unfinished in folder.glob(".*"):  # of a worker that died
        unfinished.unlink()
    columns = {"annotator": shards.annotators, "num_labels": num_labels}
    if model is not None:
        save_arrays(output / "parameters.npz", _arrays(state.parameters))
        errors = model.errors(state.parameters)
        if errors is not None:
            columns["skill"] = expected_skills(errors, model.priors(state.parameters))
    with atomic_path(output / "annotators.parquet") as temporary:
        pq.write_table(pa.table(columns), temporary)
