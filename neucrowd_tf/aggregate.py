"""From labels alone to one label a task, and what is known of each annotator.

    python -m neucrowd_tf.aggregate --annotations=F --method=dawid_skene --output=labels.csv
        [--annotators=annotators.csv] [--gold=gold.csv] [--question=NAME] [--first] [--seed=0]

`--annotations` takes any layout that --dataset=table reads, an annotation tool's export, or `-`;
without `--output` the labels go to stdout.

    python -m neucrowd_tf.aggregate --annotations=FOLDER|F.parquet|F.csv --method=dawid_skene
        --output=FOLDER --engine=local|dask [--workers=2] [--scheduler=tcp://host:8786] [--resume]
        [--max_iter=100] [--tol=1e-7]

takes more annotations than memory holds, by parts on this machine's threads or on Dask's workers,
and writes a folder of Parquet files; a folder (but a tool's export) or a .parquet file is taken so
without `--engine`.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from neucrowd_tf.errors import (
    DataError,
    IdentitiesError,
    UnsupportedDataError,
    UsageError,
    one_line,
)
from neucrowd_tf.io.command_line import STDOUT, Parser, check_outputs, run, write_outputs
from neucrowd_tf.io.files.reading import ending
from neucrowd_tf.io.importers.catalogue import detect
from neucrowd_tf.io.tables.flags import add_table_options, layout_of, model_names
from neucrowd_tf.io.tables.writing import number_cell, text_cell, to_csv
from neucrowd_tf.stopping import RESUME, hinted

if TYPE_CHECKING:
    from neucrowd_tf.aggregation import Aggregator
    from neucrowd_tf.aggregation.engine.records import Engine
    from neucrowd_tf.annotations import Annotations

SCALE = ("workers", "scheduler", "resume", "max_iter", "tol")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m neucrowd_tf.aggregate",
        description="Infers one label a task from the labels of many annotators.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--method", default="dawid_skene", help="the truth-inference method")
    add("--output", type=Path, default=STDOUT, help="CSV task,label,probability,num_labels")
    add("--annotators", type=Path, help="CSV to write: skill with an interval, and confusion")
    add("--gold", type=Path, help="CSV task,label: labels that are known")
    add("--seed", type=int, default=0, help="of what a method draws")
    add("--engine", choices=("local", "dask"), help="out of core, to a folder: threads, or Dask")
    add("--workers", type=int, help="--engine: threads, or Dask processes of its own")
    add("--scheduler", help="--engine=dask: a running one's address, tcp://host:port")
    add("--resume", action="store_true", help="--engine: go on after the last iteration done")
    add("--max_iter", type=int, help="--engine: most iterations")
    add("--tol", type=float, help="--engine: least rise of the objective for each annotation")
    add_table_options(parser, required=True)
    return parser


def aggregate(arguments: argparse.Namespace) -> list[str]:
    """Writes what the arguments ask for and returns notes for stderr.

    Raises:
        UsageError, DataError: what cannot be used, in a line.
    """
    path = arguments.annotations
    parts = (
        arguments.engine is not None
        or ending(path) == ".parquet"
        or (path.is_dir() and detect(path) is None)
    )
    check_outputs(arguments, ("output", "annotators"), ("annotations", "gold"), folders=parts)
    if parts:
        return _out_of_core(arguments)
    for name in SCALE:
        if getattr(arguments, name) is not None and getattr(arguments, name) is not False:
            raise UsageError(
                f"--{name}: expected --engine=local or --engine=dask with it, received none"
            )
    # scikit-learn takes most of a second to load: what is wrong with the flags is said before.
    from neucrowd_tf.aggregation.catalogue import make_aggregator
    from neucrowd_tf.labelling.source import read_crowd, read_gold

    method = make_aggregator(arguments.method, arguments.seed)
    layout = layout_of(arguments)
    crowd, notes = read_crowd(arguments.annotations, layout=layout)
    models = model_names(arguments.model_annotator, crowd.annotator_names.tolist())
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        gold = None if arguments.gold is None else read_gold(arguments.gold, crowd, layout)
        try:
            if arguments.annotators is not None:
                crowd.require_identities("--annotators")
            method.fit(crowd, gold)
        except (IdentitiesError, UnsupportedDataError) as error:
            raise DataError(f"{arguments.annotations}: {error}") from None
    labels = to_csv(("task", "label", "probability", "num_labels"), label_rows(crowd, method))
    written = {arguments.output: labels}
    if arguments.annotators is not None:
        written[arguments.annotators] = annotators_csv(crowd, method, models)
    write_outputs(written)
    return [*notes, *(f"warning: {one_line(w.message)}" for w in raised)]  # type: ignore[arg-type]


def _out_of_core(arguments: argparse.Namespace) -> list[str]:
    """Fits by parts; returns no notes, as progress goes to stderr."""
    for name in ("annotators", "gold", "seed", "model_annotator", "question", "first"):
        if getattr(arguments, name) not in (None, False, 0):
            raise UsageError(
                f"--{name}: expected labels that are read as a whole, a CSV without --engine,"
                f" received {arguments.annotations}, which is read by parts"
            )
    if arguments.output == STDOUT:
        raise UsageError(
            "--output: expected a folder, as folders, Parquet and --engine are read by parts,"
            " received none"
        )
    if arguments.output.is_file() or arguments.output.suffix in (".csv", ".json", ".parquet"):
        raise UsageError(
            f"--output={arguments.output}: expected a folder, as folders, Parquet and --engine are"
            " read by parts, received a file's name; --output=labels, without an ending"
        )
    if arguments.workers is not None and arguments.workers < 1:
        raise UsageError(f"--workers: expected a number from 1, received {arguments.workers}")
    if arguments.scheduler is not None and (arguments.engine != "dask" or arguments.workers):
        raise UsageError(
            "--scheduler: expected --engine=dask with it, and no --workers, received"
            f" --engine={arguments.engine}, --workers={arguments.workers}"
        )
    # Dask's threads and processes do not survive an exception in the midst of their work.
    with hinted(RESUME, at_once=arguments.engine == "dask"):
        _fit(arguments)
    return []


def _fit(arguments: argparse.Namespace) -> None:
    """Fits on an engine."""
    try:
        from neucrowd_tf.aggregation.engine.fit import Request, fit

        engine = _engine(arguments)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--engine: expected {error.name}, which is not installed: pip install"
            " 'neucrowd-tf[parquet]', or [dask] for --engine=dask"
        ) from None
    request = Request(
        arguments.annotations,
        arguments.method,
        arguments.output,
        arguments.max_iter,
        arguments.tol,
        arguments.resume,
        layout_of(arguments),
        lambda line: print(line, file=sys.stderr, flush=True),  # noqa: T201
    )
    with contextlib.closing(engine):
        fit(request, engine)


def _engine(arguments: argparse.Namespace) -> Engine:
    if arguments.engine == "dask":
        from neucrowd_tf.aggregation.engine.dask import Dask

        return Dask(arguments.scheduler, arguments.workers or 2)
    from neucrowd_tf.aggregation.engine.local import Local

    return Local(arguments.workers)


def label_rows(crowd: Annotations, method: Aggregator) -> Iterator[list[str]]:
    """Yields `task,label,probability,num_labels` of each task that has a label or a gold label."""
    names = [text_cell(name) for name in crowd.class_names.tolist()]
    given = crowd.vote_counts().sum(axis=1).tolist()
    for row, task in enumerate(crowd.instance_names.tolist()):
        if method.annotated_[row]:
            label = int(method.labels_[row])
            probability = number_cell(float(method.probas_[row, label]))
            yield [text_cell(task), names[label], probability, str(given[row])]


def annotators_csv(crowd: Annotations, method: Aggregator, models: Sequence[str] = ()) -> str:
    """Returns a CSV with a row an annotator: `annotator,num_labels,skill,skill_low,skill_high,kind`
    and `c_<true class>_<label>` for each pair of classes.

    The kind is `model` of the annotators named in `models`, else `person`.

    The skill is the probability of being right that the method estimates, or, where it estimates
    none, the share of labels that equal the inferred ones; the interval is Wilson's at 95 % for as
    many labels, as if the inferred labels were true. The confusion is the method's, or counted
    against the inferred labels; its rows sum to one.
    """
    import numpy as np

    from neucrowd_tf.aggregation.base import confusion_counts, normalise_counts
    from neucrowd_tf.evaluation.intervals import wilson_interval

    counts = confusion_counts(crowd, method.labels_)
    given = crowd.labels_per_annotator()
    agreed = np.einsum("rcc->r", counts) / np.maximum(given, 1)
    skills = agreed if method.skills_ is None else method.skills_
    errors = normalise_counts(counts, 0.0) if method.errors_ is None else method.errors_
    low, high = wilson_interval(np.clip(skills, 0.0, 1.0) * given, given)
    classes = [str(name) for name in crowd.class_names.tolist()]
    header = ["annotator", "num_labels", "skill", "skill_low", "skill_high", "kind"]
    header += [f"c_{true}_{label}" for true in classes for label in classes]
    rows = (
        [
            text_cell(name),
            str(int(given[code])),
            *(number_cell(float(value[code])) for value in (skills, low, high)),
            "model" if str(name) in models else "person",
            *(number_cell(value) for value in errors[code].ravel().tolist()),
        ]
        for code, name in enumerate(crowd.annotator_names.tolist())
    )
    return to_csv(header, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one line on stderr."""
    return run(lambda: aggregate(_parser().parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
