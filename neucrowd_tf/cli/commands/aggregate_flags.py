"""The flags of `neucrowd aggregate`, which `aggregate.py` carries out."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from neucrowd_tf.cli.command_line import SCALE, STDOUT, LabelFlags
from neucrowd_tf.declare.declarations import SEED, number, whole
from neucrowd_tf.io.schema import ANNOTATIONS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Aggregate(LabelFlags):
    """Infers one label per item from the labels of many annotators.

    The same labels give the same result in any format, and in one file or in a folder of tables.
    With --engine, and from ten million labels on, they are read by parts, so that they may be
    larger than memory. If --output names a folder, the labels of a folder or a Parquet file are
    written there, as Parquet.
    """

    annotations: Annotated[Path, ANNOTATIONS] = dataclasses.field()  # required here
    method: Annotated[
        str | None,
        "Truth-inference method. Default: consensus (dawid_skene if labels are read by parts).",
    ] = None
    output: Annotated[
        Path, "CSV to write: task,label,probability,num_labels,num_tied. `-` prints."
    ] = STDOUT
    annotators: Annotated[
        Path | None, "CSV to write: skill, note and confusion matrix of each annotator."
    ] = None
    seed: Annotated[int, SEED, "Seed of a method's random draws."] = 0
    ties: Annotated[
        Literal["random", "first", "prior"] | None,
        "What decides between equally probable classes: `random` (with --seed), `first` in the"
        " order of the classes, or `prior`, the class with most votes. Default: first; for"
        " majority_vote random.",
    ] = None
    scale: Annotated[Literal["nominal", "ordinal"], SCALE + " Adds the column expected_value."] = (
        "nominal"
    )
    engine: Annotated[
        Literal["local", "dask"] | None,
        "Reads the labels by parts, with threads of this machine or with Dask workers.",
    ] = None
    workers: Annotated[int | None, whole(1), "Threads or Dask processes (with --engine)."] = None
    scheduler: Annotated[str | None, "Address tcp://host:port (with --engine=dask)."] = None
    resume: Annotated[bool, "Continues an interrupted fit (with --engine)."] = False
    max_iter: Annotated[int | None, whole(1), "Most iterations (with --engine)."] = None
    tol: Annotated[float | None, number(least=0), "With --engine: least rise of the objective."] = (
        None
    )
