"""The command `neucrowd relabel`: which items to label again, and by whom."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.flags import flag
from neucrowd_tf.io.command_line import (
    STDOUT,
    LabelFlags,
    check_outputs,
    model_names,
    run_command,
    table_options,
    write_outputs,
)
from neucrowd_tf.io.gold import read_gold, read_names, read_probabilities
from neucrowd_tf.io.labels import input_path, read_annotations
from neucrowd_tf.io.run_files import CONFIG, changed_files, files_to_keep, read_config
from neucrowd_tf.io.schema import TableOptions
from neucrowd_tf.io.tables.writing import number_cell, text_cell, to_csv

if TYPE_CHECKING:
    from neucrowd_tf.annotations import Annotations
    from neucrowd_tf.labelling.belief import Belief
    from neucrowd_tf.labelling.plan import Request

HEADER = ("task", "worker", "priority", "gain", "reason")


def _names_or_file(text: str) -> str | Path:
    """Returns the file that a flag names, otherwise its text.

    A name without a comma is a file if there is one or if it ends in .txt or .csv.
    """
    named = "," not in text and (os.path.isfile(text) or text.endswith((".txt", ".csv")))
    return Path(text) if named else text


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags(LabelFlags):
    """Lists the labels to ask for next, the most useful first: item, annotator and reason."""

    run: Path | None = flag(
        None, help="Folder of a run with --dataset=table: uses its annotations and table flags."
    )
    budget: int = flag(least=1, help="Number of labels to ask for.")
    output: Path = flag(STDOUT, help=f"CSV to write: {','.join(HEADER)}. `-` prints.")
    gold: Path | None = flag(None, help="CSV task,label: true labels of some items.")
    probabilities: Path | None = flag(
        None, help="CSV task,p_<class>...: a model's predictions, out of sample."
    )
    most_each: int | None = flag(
        None, least=1, help="Largest number of labels per annotator. Default: twice an even share."
    )
    per_task: int = flag(2, least=1, help="Largest number of labels per item.")
    ask: str | Path | None = flag(
        None,
        parse=_names_or_file,
        help="Annotators that can be asked, also new ones: names separated by commas, or a file"
        " with one name per line. Default: all annotators that are not models.",
    )


def relabel(flags: Flags) -> list[str]:
    """Writes the list; returns notes for standard error.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    names = ("annotations", "gold", "probabilities", "ask")
    inputs = {f"--{name}": getattr(flags, name) for name in names}
    inputs = {name: path for name, path in inputs.items() if isinstance(path, Path)}
    check_outputs({"--output": flags.output}, inputs | files_to_keep(flags.run))
    path, options, model_annotators = _source(flags)
    # Errors in the flags are reported before scikit-learn's slow import.
    from neucrowd_tf.labelling.belief import believe, informed
    from neucrowd_tf.labelling.plan import make_plan

    with input_path(path) as file:
        crowd = read_annotations(file, options).annotations
    notes: list[str] = []
    if flags.run is not None:
        notes += changed_files(flags.run, {"annotations": path})
    if not crowd.has_identities:
        raise DataError(
            f"{path}: vote counts do not name annotators. relabel needs one label per annotator."
        )
    models = model_names(model_annotators, crowd.annotator_names.tolist())
    size = crowd.num_annotators
    asked = None
    if flags.ask is not None:
        asked = read_names(flags.ask, list(map(str, crowd.annotator_names.tolist())))
    crowd = crowd.with_annotators(asked or ())
    everyone = list(map(str, crowd.annotator_names.tolist()))
    if everyone[size:]:
        notes.append(f"without labels yet: {', '.join(map(repr, everyone[size:]))}")
    people = np.array([name not in models for name in everyone])
    free = people if asked is None else np.isin(everyone, asked)
    gold = None if flags.gold is None else read_gold(flags.gold, crowd, options)
    belief = believe(crowd, gold, people)
    if flags.probabilities is not None:
        probabilities = read_probabilities(flags.probabilities, crowd, options)
        belief = informed(belief, crowd, probabilities)
    plan = make_plan(
        crowd, belief, flags.budget, most_each=flags.most_each, per_task=flags.per_task, free=free
    )
    write_outputs({flags.output: to_csv(HEADER, _rows(crowd, belief, plan))})
    return [*notes, _summary(crowd, belief, plan, flags.budget)]


def _source(flags: Flags) -> tuple[Path, TableOptions, str | None]:
    """Returns the file of labels, how it is read, and which annotators are models."""
    options = table_options(flags)
    if flags.annotations is not None and flags.run is None:
        return flags.annotations, options, flags.model_annotator
    if flags.run is None or flags.annotations is not None:
        raise UsageError("--annotations or --run: name one of them.")
    if options.changed():
        raise UsageError(f"--{next(iter(options.changed()))}: not with --run, which has its own.")
    settings = read_config(flags.run).settings
    path, models = settings.get("annotations"), settings.get("model_annotator") or []
    if not isinstance(path, str) or not path or not isinstance(models, list):
        raise DataError(
            f"{flags.run}: not a run with --dataset=table. Name a file with --annotations instead."
        )
    names = {field.name for field in dataclasses.fields(TableOptions)} & settings.keys()
    try:
        options = TableOptions.of(**{name: settings[name] for name in names})
    except UsageError as error:
        raise DataError(f"{flags.run / CONFIG}: {error}") from None
    return Path(path), options, flags.model_annotator or ",".join(map(str, models))


def _rows(crowd: Annotations, belief: Belief, plan: Sequence[Request]) -> Iterator[list[str]]:
    """Yields a row of `HEADER` per request."""
    from neucrowd_tf.labelling.plan import reason

    tasks, workers = crowd.instance_names.tolist(), crowd.annotator_names.tolist()
    votes, counts = crowd.vote_counts(), crowd.labels_per_annotator()
    for priority, request in enumerate(plan, 1):
        yield [
            text_cell(tasks[request.task]),
            text_cell(workers[request.annotator]),
            str(priority),
            number_cell(request.gain),
            text_cell(reason(crowd, belief, votes, counts, request)),
        ]


def _summary(crowd: Annotations, belief: Belief, plan: Sequence[Request], budget: int) -> str:
    """Returns a line: how many labels are asked for, and the accuracy expected of them."""
    now = float(belief.probas[crowd.annotated].max(axis=1).mean())
    gained = sum(request.gain for request in plan) / max(int(crowd.annotated.sum()), 1)
    line = (
        f"{len(plan):,} labels of {len({r.task for r in plan}):,} items by"
        f" {len({r.annotator for r in plan}):,} annotators; expected accuracy of the consensus"
        f" {now:.3f}, then {now + gained:.3f}"
    )
    if len(plan) < budget:
        line += f"; no further label of the budget of {budget:,} is useful or can be asked for"
    return line


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_command(Flags, relabel, "neucrowd relabel", argv)


if __name__ == "__main__":
    sys.exit(main())
