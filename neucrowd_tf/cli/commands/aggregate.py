"""The command `neucrowd aggregate`: one label per item from the labels of many annotators."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import operator
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.aggregation.base import NOT_CONVERGED
from neucrowd_tf.aggregation.catalogue import ORDERED, make_aggregator
from neucrowd_tf.aggregation.crowd_and_classifier import error_matrices
from neucrowd_tf.aggregation.engine.local import Engine, Local
from neucrowd_tf.aggregation.ordinal import OrdinalConsensus, unbiased_means
from neucrowd_tf.certainty.drift import Change, changes
from neucrowd_tf.certainty.inference import METHOD, Inference, infer
from neucrowd_tf.certainty.recalibration import CalibrationByParts
from neucrowd_tf.cli.command_line import STDOUT, check_outputs, standard_output, write_outputs
from neucrowd_tf.cli.commands.aggregate_flags import Aggregate
from neucrowd_tf.cli.commands.reading import models_of, read_labels
from neucrowd_tf.cli.signals import RESUME, hinted
from neucrowd_tf.declare.types import Floats, Texts
from neucrowd_tf.errors import (
    DataError,
    IdentitiesError,
    UnsupportedDataError,
    UsageError,
    one_line,
)
from neucrowd_tf.io.checks import install
from neucrowd_tf.io.files.atomic import atomic_path
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.folders import tables_in
from neucrowd_tf.io.head import Head
from neucrowd_tf.io.importers import find
from neucrowd_tf.io.labels import report_on_stderr
from neucrowd_tf.io.table import BLOCK, PARQUET, parquet_file, rows_about
from neucrowd_tf.io.tables.writing import columns_csv
from neucrowd_tf.io.values import numbers_of
from neucrowd_tf.names import as_name_array

if TYPE_CHECKING:
    from neucrowd_tf.annotations import Annotations
    from neucrowd_tf.certainty.models import ModelAnnotator


# Labels from which on they are read by parts, if a method can: about 2 GB of memory.
MOST_ROWS = 10_000_000
BY_PARTS = ("majority_vote", "dawid_skene", "one_coin", "fast_dawid_skene", "ibcc", "bwa")
TABLES = (".csv", ".tsv", ".tab", ".txt", *PARQUET)


def run(flags: Aggregate) -> list[str]:
    """Writes what the flags ask for; returns notes for standard error.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    path = flags.annotations
    check_outputs(
        {"--output": flags.output, "--annotators": flags.annotators},
        {"--annotations": path, "--gold": flags.gold},
    )
    if _reads_by_parts(flags):
        return _aggregate_by_parts(flags)
    method = _method_of(flags)
    reading, gold = read_labels(path, flags, flags.gold, scale=flags.scale)
    crowd = reading.annotations
    models = models_of(reading, path, flags.model_annotator)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            if flags.annotators is not None:
                crowd.require_identities("--annotators")
            inference = infer(
                crowd,
                method,
                gold,
                flags.seed,
                models,
                flags.ties,
                flags.family,
                skills=flags.annotators is not None,
            )
        except (IdentitiesError, UnsupportedDataError) as error:
            raise DataError(f"{path}: {error}") from None
    labels = labels_csv(inference, reading.pairs, flags.scale == "ordinal")
    written = {flags.output: labels}
    compared: list[ModelAnnotator] = []
    lines: list[str] = []
    if models:
        from neucrowd_tf.certainty.models import compare_models

        people = inference.people
        compared, lines = compare_models(crowd, models, people.labels if people else None)
    if flags.annotators is not None:
        changed = changes(inference, reading.times)
        written[flags.annotators] = annotators_csv(inference, models, compared, changed)
        lines += [one.line(crowd.annotator_names[one.annotator]) for one in changed]
    write_outputs(written)
    notes = [_warning(w.message, method) for w in raised]
    if isinstance(inference.model, OrdinalConsensus):
        method = ordered_method(inference.model, crowd)
    return [*notes, f"method: {method}", *inference.lines(), *lines]


def _method_of(flags: Aggregate) -> str:
    """Returns the method of labels in memory.

    Raises:
        UsageError: flags that do not belong together, or an unknown method.
    """
    for name in ("max_iter", "tol", "workers", "scheduler", "resume"):
        if getattr(flags, name) not in (None, False):
            raise UsageError(f"--{name}: only with --engine. Add --engine=local, or leave it out.")
    ordered = flags.scale == "ordinal"
    method = flags.method or ("ordinal" if ordered else METHOD)
    if ordered != (method in ORDERED):
        raise UsageError(
            f"--method={method}: with --scale=ordinal, and only then, it is one of"
            f" {', '.join(ORDERED)}. Leave it out, or change --scale."
        )
    if ordered and flags.ties:
        raise UsageError("--ties: medians do not tie. Leave it out with --scale=ordinal.")
    make_aggregator(method)
    return method


def ordered_method(model: OrdinalConsensus, crowd: Annotations) -> str:
    """Returns the chosen method of ordered classes with the distances that chose it."""
    text = f"{model.chosen_} of classes {' < '.join(map(str, crowd.class_names))}"
    if not model.distances_:
        return text
    away = ", ".join(f"{value:.3f} ({name})" for name, value in model.distances_.items())
    is_nearest = model.distances_[model.chosen_] == min(model.distances_.values())
    why = "" if is_nearest else " (none is surely nearer)"
    return f"ordinal, {text}{why}; mean distance of held-out annotations in classes: {away}"


def _warning(message: Warning | str, method: str) -> str:
    """Returns a warning's line; for a method that did not converge, with a flag that helps."""
    if NOT_CONVERGED in str(message):
        return f"warning: {method} {NOT_CONVERGED}. Use --method=consensus."
    return f"warning: {one_line(message)}"  # type: ignore[arg-type]


def _needs_memory(flags: Aggregate) -> list[str]:
    """Returns the flags that ask for what only labels in memory give."""
    names = ("annotators", "gold", "ties", "scale", "family", "model_annotator")
    return [name for name in names if getattr(flags, name) not in (None, (), "nominal")]


def _names_a_folder(output: Path) -> bool:
    return output != STDOUT and not output.is_file() and (output.is_dir() or not output.suffix)


def _reads_by_parts(flags: Aggregate) -> bool:
    """Whether labels are read by parts: with --engine, to a folder, and from `MOST_ROWS` on."""
    path = flags.annotations
    if flags.engine is not None or not path.exists():
        return flags.engine is not None
    if not path.is_dir() and ending(path) not in TABLES:
        return False
    head = Head(path)
    if head.has_records or find(head) is not None:
        return False
    files = tables_in(path) if path.is_dir() else [path]
    if _names_a_folder(flags.output) and (path.is_dir() or ending(path) in PARQUET):
        return True
    large = sum(map(rows_about, files)) >= MOST_ROWS
    return large and flags.method in (None, *BY_PARTS) and not _needs_memory(flags)


def _aggregate_by_parts(flags: Aggregate) -> list[str]:
    """Fits by parts; progress is printed to standard error, so there are no notes."""
    for name in _needs_memory(flags):
        raise UsageError(
            f"--{name}: not available for labels that are read by parts. Leave --engine out, and"
            " name a file as --output."
        )
    if flags.scheduler is not None and (flags.engine != "dask" or flags.workers):
        raise UsageError("--scheduler: only with --engine=dask and without --workers.")
    output = flags.output
    if output == STDOUT:
        with tempfile.TemporaryDirectory() as folder, standard_output() as stream:
            parts = Path(folder) / "parts"
            _fit(flags, parts)
            stream.writelines(_csv_of_parts(parts / "labels"))
        return []
    parts = output
    if not _names_a_folder(output):
        parts = output.with_name(f"{output.name}.parts")
    with hinted(RESUME):
        _fit(flags, parts)
    if parts != output:
        with atomic_path(output) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.writelines(_csv_of_parts(parts / "labels"))
        shutil.rmtree(parts)
    return []


def _csv_of_parts(folder: Path) -> Iterator[str]:
    """Yields the CSV of labels that were written by parts, as `labels_csv` has it and in its order.

    The rows of all files, each in the order of `row`, are merged by it.
    """
    with contextlib.ExitStack() as opened:
        files = []
        for path in sorted(folder.glob("*.parquet")):
            files.append(opened.enter_context(parquet_file(path)))
        names = files[0].schema_arrow.names
        titles = names[: names.index("row")]
        size = max(1, BLOCK // len(files))

        def rows_of(file: Any) -> Iterator[tuple[object, ...]]:
            for batch in file.iter_batches(size, columns=[*titles, "row"]):
                yield from zip(*map(operator.methodcaller("to_pylist"), batch.columns), strict=True)

        rows = heapq.merge(*map(rows_of, files), key=operator.itemgetter(-1))
        yield ",".join(titles) + "\n"
        while block := list(itertools.islice(rows, BLOCK)):
            columns = dict(zip(titles, map(as_name_array, zip(*block, strict=True)), strict=False))
            columns["probability"] = columns["probability"].astype(float)
            yield columns_csv(columns.items()).partition("\n")[2]


def _fit(flags: Aggregate, output: Path) -> None:
    engine: Engine
    try:
        from neucrowd_tf.aggregation.engine.fit import Request, fit

        if flags.engine == "dask":
            from neucrowd_tf.aggregation.engine.dask import Dask

            engine = Dask(flags.scheduler, flags.workers or 2)
        else:
            engine = Local(flags.workers)
    except ModuleNotFoundError as error:
        how = install("parquet")
        if flags.engine == "dask":
            how = install("dask")
        raise UsageError(f"--engine: {error.name} is not installed. {how}") from None
    method = flags.method or "dawid_skene"
    if flags.method is None:
        report_on_stderr(f"method: {method} (labels are read by parts)")
    request = Request(
        flags.annotations,
        method,
        output,
        flags.max_iter,
        flags.tol,
        flags.resume,
        flags,
        report_on_stderr,
        CalibrationByParts(method),
    )
    with contextlib.closing(engine):
        fit(request, engine)


def labels_csv(
    inference: Inference, pairs: Sequence[tuple[str, str]] | None = None, ordered: bool = False
) -> str:
    """Returns a row for each item that has a label or a gold label.

    Args:
        inference: of the labels.
        pairs: the item and the class of each instance, if cells had several labels.
        ordered: whether to add the expected class: as a number, otherwise by its place from 1.
    """
    crowd = inference.crowd
    probas = inference.probas
    classes = inference.crowd.class_names
    rows = np.flatnonzero(crowd.annotated | (inference.gold >= 0))
    labels = inference.labels[rows]
    columns: dict[str, Iterable[object]] = {"task": crowd.instance_names[rows]}
    if pairs is not None:
        items, questions = zip(*map(pairs.__getitem__, rows.tolist()), strict=True)
        columns = {"task": items, "class": questions}
    columns |= {
        "label": classes[labels],
        "probability": probas[rows, labels],
        "num_labels": crowd.vote_counts().sum(axis=1)[rows],
        "num_tied": inference.certainty.num_tied[rows],
    }
    if ordered:
        numbers = numbers_of(classes.tolist())
        places = np.array(range(1, crowd.num_classes + 1) if numbers is None else numbers, float)
        columns["expected_value"] = expected_values(inference, places)[rows]
    return columns_csv(columns.items())


def expected_values(inference: Inference, places: Floats) -> Floats:
    """Returns `[N]` expected values of ordered classes whose values are `places` `[C]`.

    They are those of the probabilities; if labels are medians, means without annotators' biases.
    """
    model = inference.model
    crowd = inference.crowd
    gold = inference.gold
    values = model.probas_ @ places
    if isinstance(model, OrdinalConsensus) and model.chosen_ == "median" and not inference.families:
        means = np.clip(unbiased_means(crowd, places), places.min(), places.max())
        values = np.where(crowd.annotated, means, values)
    return np.where(gold >= 0, places[gold], values)


def annotators_csv(
    inference: Inference,
    models: Texts = (),
    tests: Sequence[ModelAnnotator] = (),
    changed: Sequence[Change] = (),
) -> str:
    """Returns a CSV with a row per annotator.

    The columns are `annotator,num_labels,skill,skill_low,skill_high,note,kind` and
    `c_<true class>_<label>` for each pair of classes. With tests of models, `winning_rate` and
    `advantage` of the alternative annotator test stand before these; people have none. So does
    `bias` of ordered classes: how many classes labels are above the expected ones.

    Skill, 80% interval and note are those of `neucrowd_tf.certainty.Skills`; the kind is `model`
    for the annotators in `models`, otherwise `person`. A change of accuracy is a further note. The
    confusion matrix is counted against the recalibrated probabilities; its rows sum to one.
    """
    crowd = inference.crowd
    skills = inference.skills
    if skills is None:
        raise ValueError("annotators are not known")
    errors = error_matrices(crowd.one_hot(), inference.probas, 1e-9)
    names = crowd.annotator_names.tolist()
    classes = crowd.class_names.tolist()
    size = len(names)
    notes = [[note] for note in skills.note]
    figures = np.full((2, size), np.nan)  # winning rate and advantage
    for row in tests:
        notes[row.annotator].append(row.note)
        if row.test is not None:
            figures[:, row.annotator] = (row.test.winning_rate, row.test.advantage)
    for change in changed:
        notes[change.annotator].append(change.note)
    columns: dict[str, Iterable[object]] = {
        "annotator": names,
        "num_labels": crowd.labels_per_annotator(),
        "skill": skills.skill,
        "skill_low": skills.low,
        "skill_high": skills.high,
        "note": ["; ".join(filter(None, of_one)) for of_one in notes],
        "kind": ["model" if str(name) in models else "person" for name in names],
    }
    if isinstance(inference.model, OrdinalConsensus):
        expected = inference.model.probas_ @ np.arange(crowd.num_classes)
        away = np.bincount(crowd.annotators, crowd.labels - expected[crowd.instances], size)
        columns["bias"] = away / np.maximum(crowd.labels_per_annotator(), 1)
    if tests:
        columns["winning_rate"], columns["advantage"] = figures
    # Two pairs may have one header: "a" and "b_c", "a_b" and "c".
    pairs = [f"c_{true}_{label}" for true, label in itertools.product(classes, repeat=2)]
    cells = errors.reshape(size, -1).T
    return columns_csv([*columns.items(), *zip(pairs, cells, strict=True)])
