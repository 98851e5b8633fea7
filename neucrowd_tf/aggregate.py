"""From labels alone to one label a task, and what is known of each annotator.

    python -m neucrowd_tf.aggregate --annotations=F --method=dawid_skene --output=labels.csv
        [--annotators=annotators.csv] [--gold=gold.csv] [--question=NAME] [--first] [--seed=0]

`--annotations` takes any layout that --dataset=table reads, an annotation tool's export, or `-`;
without `--output` the labels go to stdout.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.io.csv_cells import number_cell, text_cell, to_csv
from neucrowd_tf.io.files import write_text

if TYPE_CHECKING:
    from neucrowd_tf.aggregation import Aggregator
    from neucrowd_tf.annotations import Annotations

PROBLEM = 2
STDOUT = Path("-")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m neucrowd_tf.aggregate",
        description="Infers one label a task from the labels of many annotators.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--annotations", type=Path, required=True, help="labels, a tool's export, or - for stdin")
    add("--method", default="dawid_skene", help="the truth-inference method")
    add("--output", type=Path, default=STDOUT, help="CSV task,label,probability,num_labels")
    add("--annotators", type=Path, help="CSV to write: skill with an interval, and confusion")
    add("--gold", type=Path, help="CSV task,label: labels that are known")
    add("--question", help="which question of an export")
    add("--first", action="store_true", help="the first of several choices in an export's answer")
    add("--seed", type=int, default=0, help="of what a method draws")
    return parser


def aggregate(arguments: argparse.Namespace) -> list[str]:
    """Writes what the arguments ask for and returns notes for stderr.

    Raises:
        UsageError, DataError: what cannot be used, in a line.
    """
    # scikit-learn takes most of a second to load: what is wrong with the flags is said before.
    from neucrowd_tf.aggregation.catalogue import make_aggregator
    from neucrowd_tf.labelling.source import read_crowd, read_gold

    method = make_aggregator(arguments.method, arguments.seed)
    crowd, note = read_crowd(
        arguments.annotations, question=arguments.question, first=arguments.first
    )
    gold = None if arguments.gold is None else read_gold(arguments.gold, crowd)
    if arguments.annotators is not None:
        crowd.require_identities("--annotators")
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        method.fit(crowd, gold)
    labels = to_csv(("task", "label", "probability", "num_labels"), label_rows(crowd, method))
    if arguments.output == STDOUT:
        sys.stdout.write(labels)
    else:
        write_text(arguments.output, labels)
    if arguments.annotators is not None:
        write_text(arguments.annotators, annotators_csv(crowd, method))
    return [*([note] if note else []), *(f"warning: {one_line(w.message)}" for w in raised)]  # type: ignore[arg-type]


def label_rows(crowd: Annotations, method: Aggregator) -> Iterator[list[str]]:
    """Yields `task,label,probability,num_labels` of each task that has a label or a gold label."""
    names = [text_cell(name) for name in crowd.class_names.tolist()]
    given = crowd.vote_counts().sum(axis=1).tolist()
    for row, task in enumerate(crowd.instance_names.tolist()):
        if method.annotated_[row]:
            label = int(method.labels_[row])
            probability = number_cell(float(method.probas_[row, label]))
            yield [text_cell(task), names[label], probability, str(given[row])]


def annotators_csv(crowd: Annotations, method: Aggregator) -> str:
    """Returns a CSV with a row an annotator: `annotator,num_labels,skill,skill_low,skill_high` and
    `c_<true class>_<label>` for each pair of classes.

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
    header = ["annotator", "num_labels", "skill", "skill_low", "skill_high"]
    header += [f"c_{true}_{label}" for true in classes for label in classes]
    rows = (
        [
            text_cell(name),
            str(int(given[code])),
            *(number_cell(float(value[code])) for value in (skills, low, high)),
            *(number_cell(value) for value in errors[code].ravel().tolist()),
        ]
        for code, name in enumerate(crowd.annotator_names.tolist())
    )
    return to_csv(header, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or 2 with one line on stderr."""
    try:
        notes = aggregate(_parser().parse_args(argv))
    except (UsageError, DataError, OSError) as error:
        sys.stderr.write(f"error: {one_line(error)}\n")
        return PROBLEM
    for note in notes:
        sys.stderr.write(f"{note}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
