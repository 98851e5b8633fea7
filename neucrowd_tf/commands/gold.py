"""The command `neucrowd gold`: draws items that are worth a gold label."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Annotated

import numpy as np

from neucrowd_tf.cli.command_line import (
    STDOUT,
    LabelFlags,
    check_models,
    check_outputs,
    run_command,
    write_outputs,
)
from neucrowd_tf.declare import one_of, whole
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.gold import read_gold
from neucrowd_tf.io.labels import read_annotations
from neucrowd_tf.io.schema import ANNOTATIONS
from neucrowd_tf.io.tables.writing import number_cell, text_cell, to_csv

HEADER = ("task", "true_label", "consensus", "probability")
USES = {
    "random": "at random. They estimate accuracy and class shares (aggregate --gold) and"
    " calibrate.",
    "doubt": "with the most doubtful labels. Their gold labels correct the most errors. Do not"
    " estimate accuracy or class shares from them: use --by=random for that.",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags(LabelFlags):
    """Draws items that are worth a gold label.

    Fill in the column true_label and pass the file to --gold of aggregate, report, relabel or run.
    """

    annotations: Annotated[Path, ANNOTATIONS] = dataclasses.field()  # required here
    size: Annotated[int, whole(1), "Number of items to draw."] = 50
    output: Annotated[Path, f"CSV to write: {','.join(HEADER)}. `-` prints."] = STDOUT
    by: Annotated[
        str,
        one_of(*USES),
        "How items are drawn: `random` for estimates, `doubt` for the most doubtful labels.",
    ] = "random"
    gold: Annotated[
        Path | None, "CSV task,label: gold labels that exist already. Their items are not drawn."
    ] = None
    seed: Annotated[int, whole(0), "Seed of the random draw."] = 0


def gold(flags: Flags) -> list[str]:
    """Writes the drawn items; returns notes for standard error.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    inputs = {"--annotations": flags.annotations, "--gold": flags.gold}
    check_outputs({"--output": flags.output}, inputs)
    # Errors in the flags are reported before slow imports.
    from neucrowd_tf.certainty.inference import infer

    crowd = read_annotations(flags.annotations, flags).annotations
    check_models(flags.model_annotator, crowd.annotator_names.tolist())
    labels = None if flags.gold is None else read_gold(flags.gold, crowd, flags)
    result = infer(
        crowd, gold=labels, seed=flags.seed, models=flags.model_annotator, families=flags.family
    )
    rows = np.flatnonzero(crowd.annotated & (result.gold < 0))
    if not len(rows):
        raise DataError(f"{flags.gold}: all items have gold labels. No item is left to draw.")
    rng = np.random.default_rng(flags.seed)
    order = rng.permutation(rows)
    if flags.by == "doubt":
        order = order[np.argsort(result.probas[order].max(axis=1), kind="stable")]
    drawn = order[: flags.size]
    names, classes = crowd.instance_names.tolist(), crowd.class_names.tolist()
    cells = (
        [
            text_cell(names[row]),
            "",
            text_cell(classes[result.labels[row]]),
            number_cell(float(result.probas[row].max())),
        ]
        for row in drawn.tolist()
    )
    write_outputs({flags.output: to_csv(HEADER, cells)})
    return [
        f"{len(drawn):,} of {len(rows):,} items {USES[flags.by]}",
        "Fill in the column true_label, if possible without looking at the column consensus.",
    ]


main = functools.partial(run_command, Flags, gold, "neucrowd gold")
