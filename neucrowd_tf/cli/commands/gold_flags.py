"""The flags of `neucrowd gold`, which `gold.py` carries out."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from neucrowd_tf.cli.command_line import STDOUT, LabelFlags
from neucrowd_tf.declare.declarations import SEED, whole
from neucrowd_tf.io.schema import ANNOTATIONS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gold(LabelFlags):
    """Draws items that are worth a gold label.

    Fill in the column true_label and pass the file to --gold of aggregate, report, relabel or run.
    """

    annotations: Annotated[Path, ANNOTATIONS] = dataclasses.field()  # required here
    size: Annotated[int, whole(1), "Number of items to draw."] = 50
    output: Annotated[
        Path, "CSV to write: task,true_label,consensus,probability,drawn. `-` prints."
    ] = STDOUT
    by: Annotated[
        Literal["random", "doubt", "groups"] | None,
        "How items are drawn: `random` for estimates, `doubt` for the most doubtful labels,"
        " `groups` for items on which opposed groups of annotators differ. By default `groups` if"
        " there are such groups, otherwise `random`.",
    ] = None
    gold: Annotated[
        Path | None, "CSV task,label: gold labels that exist already. Their items are not drawn."
    ] = None
    seed: Annotated[int, SEED, "Seed of the random draw."] = 0
