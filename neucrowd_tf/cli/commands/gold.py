"""The command `neucrowd gold`: draws items that are worth a gold label."""

from __future__ import annotations

import numpy as np

from neucrowd_tf.certainty.inference import infer
from neucrowd_tf.cli.command_line import check_outputs, write_outputs
from neucrowd_tf.cli.commands.gold_flags import Gold
from neucrowd_tf.cli.commands.reading import models_of, read_labels
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.gold import DRAWN, RANDOM
from neucrowd_tf.io.tables.writing import columns_csv

USES = {
    RANDOM: "at random. They estimate accuracy and class shares (aggregate --gold) and calibrate.",
    "doubt": "with the most doubtful labels. Their gold labels correct the most errors. Do not"
    " estimate accuracy or class shares from them: use --by=random for that.",
    "groups": "on which two opposed groups of annotators differ. Their gold labels show which group"
    " is right. Do not estimate accuracy or class shares from them: use --by=random for that.",
}


def run(flags: Gold) -> list[str]:
    """Writes the drawn items; returns notes for standard error.

    Raises:
        UsageError, DataError: flags or data that cannot be used.
    """
    inputs = {"--annotations": flags.annotations, "--gold": flags.gold}
    check_outputs({"--output": flags.output}, inputs)
    reading, gold = read_labels(flags.annotations, flags, flags.gold)
    crowd = reading.annotations
    models = models_of(reading, flags.annotations, flags.model_annotator)
    result = infer(crowd, gold=gold, seed=flags.seed, models=models, families=flags.family)
    rows = np.flatnonzero(crowd.annotated & (result.gold < 0))
    if not len(rows):
        raise DataError(f"{flags.gold}: all items have gold labels. No item is left to draw.")
    rng = np.random.default_rng(flags.seed)
    order = rng.permutation(rows)
    by = flags.by or (RANDOM if result.opposed is None else "groups")
    if by == "doubt":
        order = order[np.argsort(result.probas[order].max(axis=1), kind="stable")]
    elif by == "groups":
        if result.opposed is None:
            raise UsageError(
                "--by=groups: annotators do not split into opposed groups. Leave it out."
            )
        differ = result.opposed.differ(crowd)[order]
        order = np.concatenate([order[differ], order[~differ]])
    drawn = order[: flags.size]
    columns = {
        "task": crowd.instance_names[drawn],
        "true_label": [""] * len(drawn),
        "consensus": crowd.class_names[result.labels[drawn]],
        "probability": result.probas[drawn].max(axis=1),
        DRAWN: [by] * len(drawn),
    }
    write_outputs({flags.output: columns_csv(columns.items())})
    return [
        f"{len(drawn):,} of {len(rows):,} items {USES[by]}",
        "Fill in the column true_label, if possible without looking at the column consensus.",
    ]
