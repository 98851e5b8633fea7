"""The flags of `neucrowd relabel`, which `relabel.py` carries out."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from neucrowd_tf.cli.command_line import SCALE, STDOUT, LabelFlags
from neucrowd_tf.declare.declarations import SEED, number, whole
from neucrowd_tf.declare.types import Entries


@dataclasses.dataclass(frozen=True, kw_only=True)
class Relabel(LabelFlags):
    """Lists the labels to ask for next, the most useful first: item, annotator and reason."""

    run: Annotated[Path | None, "Run with --dataset=table that has the labels."] = None
    budget: Annotated[int, whole(1), "Number of labels; with --cost, the sum of their prices."]
    output: Annotated[
        Path,
        "CSV to write: task,annotator,priority,gain,reason, and cost and text if there are any."
        " `-` prints.",
    ] = STDOUT
    probabilities: Annotated[
        Path | None, "CSV task,p_<class>: a model's held-out predictions. Default: --run's oof.csv."
    ] = None
    cost: Annotated[Path | None, "CSV annotator,cost: price of a label. Default: 1."] = None
    least_gain: Annotated[
        float, number(least=0), "Leaves out labels whose gain (per cost) is smaller than this."
    ] = 0.0
    seed: Annotated[int, SEED, "Seed of the consensus' random draws."] = 0
    most_each: Annotated[
        int | None,
        whole(1),
        "Most labels per annotator. Default: twice an even share, more if the budget is not spent.",
    ] = None
    scale: Annotated[Literal["nominal", "ordinal"], SCALE] = "nominal"
    per_task: Annotated[int, whole(1), "Largest number of labels per item."] = 2
    ask: Annotated[
        Entries, "Annotators that can be asked, also new ones. Default: all that are not models."
    ] = ()
