"""Which tasks to label again, and by whom.

    python -m neucrowd_tf.relabel --annotations=F|--run=RUN --budget=500 --output=relabel.csv
        [--gold=gold.csv] [--probabilities=P.csv] [--ask=ann,bob|FILE] [--model_annotator=NAME]
        [--most_each=N] [--per_task=2]

Writes `task,worker,priority,gain,reason`, the most worthwhile label first; without `--output` to
stdout. `--annotations` takes any layout that --dataset=table reads, an annotation tool's export, or
`-`; `--run` takes the annotations of a run on a user's own tables.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.io.command_line import STDOUT, Parser, check_outputs, run, write_output
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.run_files import changed
from neucrowd_tf.io.tables.flags import (
    SWITCHES,
    TABLE_OPTIONS,
    add_table_options,
    layout_of,
    model_names,
    table_options,
)
from neucrowd_tf.io.tables.format import TableFormat
from neucrowd_tf.io.tables.writing import number_cell, text_cell, to_csv

if TYPE_CHECKING:
    from neucrowd_tf.annotations import Annotations
    from neucrowd_tf.labelling.belief import Belief
    from neucrowd_tf.labelling.plan import Request

HEADER = ("task", "worker", "priority", "gain", "reason")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m neucrowd_tf.relabel",
        description="Lists the labels to ask for next: the task, the annotator, why.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--run", type=Path, help="the folder of a run on tables of one's own")
    add("--budget", type=int, required=True, help="how many labels to ask for")
    add("--output", type=Path, default=STDOUT, help=f"CSV {','.join(HEADER)} (default: stdout)")
    add("--gold", type=Path, help="CSV task,label: labels that are known")
    add("--probabilities", type=Path, help="CSV task,p_<class>...: a model's, out of sample")
    add("--most_each", type=int, help="most labels an annotator is asked for (default: twice even)")
    add("--per_task", type=int, default=2, help="most labels of one task")
    add(
        "--ask",
        type=_names_or_file,
        help="who can be asked, also those without labels yet: names separated by commas, or a"
        " file with a name a line (default: everybody who gave labels and is no model)",
    )
    add_table_options(parser)
    return parser


def _names_or_file(text: str) -> str | Path:
    """Returns the file that a flag names, or its text where it names none; so a name without a
    comma that is a file's, or ends as one's, is a file.
    """
    named = "," not in text and (os.path.isfile(text) or text.endswith((".txt", ".csv")))
    return Path(text) if named else text


def annotations_of(run: Path) -> tuple[Path, TableFormat, str]:
    """Returns the annotations' file of a run on a user's own tables, how it is written, and the
    names of its annotators that are models, separated by commas.

    Raises:
        DataError: no run, or one on another dataset.
    """
    try:
        config = read_json(run / "config.json")
    except DataError as error:
        raise DataError(f"{error}; name a file with --annotations") from None
    settings = config.get("settings") if isinstance(config, dict) else None
    settings = settings if isinstance(settings, dict) else {}
    named = settings.get("annotations")
    if not named:
        raise DataError(
            f"{run}: expected a run of --dataset=table, received one whose config.json names no"
            " annotations; name a file with --annotations"
        )
    options: dict[str, Any] = {name: settings.get(name) for name in TABLE_OPTIONS}
    options |= {name: bool(options[name]) for name in SWITCHES}
    models = settings.get("model_annotator") or []
    texts = {"annotations": named, **options}
    wrong = [
        name
        for name, value in texts.items()
        if name not in SWITCHES and not isinstance(value, str | None)
    ]
    if not isinstance(models, list):
        wrong.append("model_annotator")
    if wrong:
        raise DataError(
            f"{run / 'config.json'}: expected settings as a run writes them, received"
            f" {settings[wrong[0]]!r} as {wrong[0]}"
        )
    return Path(str(named)), TableFormat.of(**options), ",".join(map(str, models))


def relabel(arguments: argparse.Namespace) -> list[str]:
    """Writes the list and returns notes for stderr.

    Raises:
        UsageError, DataError: what cannot be used, in a line.
    """
    check_outputs(arguments, ("output",), ("annotations", "gold", "probabilities", "ask"))
    path, layout, apart = _labels(arguments)
    # scikit-learn takes most of a second to load: what is wrong with the flags is said before.
    from neucrowd_tf.labelling.belief import believe, informed
    from neucrowd_tf.labelling.plan import make_plan
    from neucrowd_tf.labelling.source import read_crowd, read_gold, read_names, read_probabilities

    crowd, notes = read_crowd(path, layout=layout)
    if arguments.run is not None:
        notes += changed(arguments.run, {"annotations": path})
    if not crowd.has_identities:
        raise DataError(
            f"{path}: expected who gave which label, as relabel needs, received counts of votes"
        )
    models = model_names(apart, crowd.annotator_names.tolist())
    size = crowd.num_annotators
    known = list(map(str, crowd.annotator_names.tolist()))
    asked = None if arguments.ask is None else read_names(arguments.ask, known)
    crowd = crowd.with_annotators(asked or ())
    names = list(map(str, crowd.annotator_names.tolist()))
    if names[size:]:
        notes.append(f"without labels yet: {', '.join(map(repr, names[size:]))}")
    people = np.array([name not in models for name in names])
    free = people if asked is None else np.isin(names, asked)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        gold = None if arguments.gold is None else read_gold(arguments.gold, crowd, layout)
    notes.extend(f"warning: {one_line(w.message)}" for w in raised)  # type: ignore[arg-type]
    belief = believe(crowd, gold, people)
    if arguments.probabilities is not None:
        probabilities, told = read_probabilities(arguments.probabilities, crowd, layout)
        belief, notes = informed(belief, crowd, probabilities), [*notes, *told]
    plan = make_plan(
        crowd,
        belief,
        arguments.budget,
        most_each=arguments.most_each,
        per_task=arguments.per_task,
        free=free,
    )
    text = to_csv(HEADER, _rows(crowd, belief, plan))
    write_output(arguments.output, text)
    return [*notes, _summary(crowd, belief, plan, arguments.budget)]


def _labels(arguments: argparse.Namespace) -> tuple[Path, TableFormat, str | None]:
    """Returns the file of labels, how it is written, and which annotators are models."""
    if (arguments.annotations is None) == (arguments.run is None):
        count = "none" if arguments.run is None else "both"
        raise UsageError(f"expected --annotations or --run, received {count}")
    if arguments.run is None:
        return arguments.annotations, layout_of(arguments), arguments.model_annotator
    given = [name for name, value in table_options(arguments).items() if value]
    if given:
        raise UsageError(f"--{given[0]}: expected without --run, whose own is taken")
    path, layout, models = annotations_of(arguments.run)
    return path, layout, arguments.model_annotator or models


def _rows(crowd: Annotations, belief: Belief, plan: Sequence[Request]) -> Iterator[list[str]]:
    """Yields a row of `HEADER` a request."""
    from neucrowd_tf.labelling.plan import reason

    tasks, workers = crowd.instance_names.tolist(), crowd.annotator_names.tolist()
    votes, given = crowd.vote_counts(), crowd.labels_per_annotator()
    for priority, request in enumerate(plan, 1):
        yield [
            text_cell(tasks[request.task]),
            text_cell(workers[request.annotator]),
            str(priority),
            number_cell(request.gain),
            text_cell(reason(crowd, belief, votes, given, request)),
        ]


def _summary(crowd: Annotations, belief: Belief, plan: Sequence[Request], budget: int) -> str:
    """Says what is asked for, and what it is expected to bring."""
    now = float(belief.probas[crowd.annotated].max(axis=1).mean())
    gained = sum(request.gain for request in plan) / max(int(crowd.annotated.sum()), 1)
    said = (
        f"{len(plan):,} labels of {len({r.task for r in plan}):,} tasks by"
        f" {len({r.annotator for r in plan}):,} annotators; expected accuracy of the consensus"
        f" {now:.3f}, then {now + gained:.3f}"
    )
    if len(plan) < budget:
        said += f"; no other of the {budget:,} is worth anything or can be asked for"
    return said


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one line on stderr."""
    return run(lambda: relabel(_parser().parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
