"""The flags of each command; the command's own module is imported when they have been parsed."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from neucrowd_tf.cli.command_line import STDOUT, LabelFlags, run
from neucrowd_tf.declare.declarations import number, whole
from neucrowd_tf.declare.flag_parsing import parse
from neucrowd_tf.io.roles import RUNNING
from neucrowd_tf.io.schema import ANNOTATIONS, TableOptions

SCALE = "`ordinal`: classes are ordered, and labels near the truth count as nearly right."


@dataclasses.dataclass(frozen=True, kw_only=True)
class Aggregate(LabelFlags):
    """Infers one label per item from the labels of many annotators.

    A folder, a Parquet file or any file with --engine is read by parts, so that it may be larger
    than memory; the output is then a folder of Parquet files.
    """

    annotations: Annotated[Path, ANNOTATIONS] = dataclasses.field()  # required here
    method: Annotated[
        str | None, "Truth-inference method. Default: consensus (dawid_skene with --engine)."
    ] = None
    output: Annotated[
        Path, "CSV to write: task,label,probability,num_labels,num_tied. `-` prints."
    ] = STDOUT
    annotators: Annotated[
        Path | None, "CSV to write: skill, note and confusion matrix of each annotator."
    ] = None
    seed: Annotated[int, whole(0), "Seed of a method's random draws."] = 0
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Convert(TableOptions):
    """Writes the labels of an annotation tool's export, or of a table, as task,annotator,label.

    What was read and left out is printed to standard error.
    """

    input: Annotated[Path, "Export or table: a file, or SageMaker's folder."]
    output: Annotated[Path, "CSV to write: task,annotator,label. `-` prints."] = STDOUT
    tasks: Annotated[
        Path | None, "CSV to write: task,text, if the export has the texts that were labelled."
    ] = None
    gold: Annotated[
        Path | None, "CSV to write: task,true_label, if the export has true labels."
    ] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gold(LabelFlags):
    """Draws items that are worth a gold label.

    Fill in the column true_label and pass the file to --gold of aggregate, report, relabel or run.
    """

    annotations: Annotated[Path, ANNOTATIONS] = dataclasses.field()  # required here
    size: Annotated[int, whole(1), "Number of items to draw."] = 50
    output: Annotated[Path, "CSV to write: task,true_label,consensus,probability. `-` prints."] = (
        STDOUT
    )
    by: Annotated[
        Literal["random", "doubt"],
        "How items are drawn: `random` for estimates, `doubt` for the most doubtful labels.",
    ] = "random"
    gold: Annotated[
        Path | None, "CSV task,label: gold labels that exist already. Their items are not drawn."
    ] = None
    seed: Annotated[int, whole(0), "Seed of the random draw."] = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Merge(TableOptions):
    """Adds new labels, such as the answers to relabel.csv, to a table of labels.

    If an annotator has labelled an item before, the new label replaces the earlier one. Flags that
    say how a file is read apply to both files; a named column, to the file that has it.
    """

    annotations: Annotated[Path, ANNOTATIONS]
    labels: Annotated[
        Path,
        "File of new labels: task,annotator,label, or another layout that --annotations accepts."
        " Rows without a label are ignored.",
    ]
    output: Annotated[Path, "CSV to write: task,annotator,label. `-` prints."] = STDOUT


@dataclasses.dataclass(frozen=True, kw_only=True)
class Predict(TableOptions):
    """Scores items with an exported model.

    A SavedModel is a program: use only models that you trust.
    """

    model: Annotated[Path, "Folder saved_model of a run with --export."]
    features: Annotated[Path | None, "CSV, Parquet or NPY of items and their features."] = None
    texts: Annotated[Path | None, "CSV task,text, for a model of texts."] = None
    images: Annotated[Path | None, "Folder of images, whose file names are item names."] = None
    encoder: Annotated[str | None, "Folder of the encoder (with --texts), if it has moved."] = None
    output: Annotated[Path, "CSV to write: task,predicted,p_<class>... `-` prints."]
    ignore_columns: Annotated[tuple[str, ...], "Columns of --features to leave out."] = ()


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
    seed: Annotated[int, whole(0), "Seed of the consensus' random draws."] = 0
    most_each: Annotated[int | None, whole(1), "Most labels per annotator."] = None
    scale: Annotated[Literal["nominal", "ordinal"], SCALE] = "nominal"
    per_task: Annotated[int, whole(1), "Largest number of labels per item."] = 2
    ask: Annotated[
        tuple[str, ...],
        "Annotators that can be asked, also new ones. Default: all that are not models.",
    ] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report(LabelFlags):
    """Writes a report on a crowd's labels as one HTML page."""

    annotations: Annotated[Path, ANNOTATIONS] = dataclasses.field()  # required here
    scale: Annotated[
        Literal["nominal", "ordinal", "interval"],
        "Which disagreements are larger, for the coefficients of agreement.",
    ] = "nominal"
    features: Annotated[
        Path | None, "Table of features. The report covers its items, in its order."
    ] = None
    agreement: Annotated[
        Path | None,
        "Folder to write CSV files of the agreement to: coefficients, classes, items and pairs of"
        " annotators.",
    ] = None
    output: Annotated[Path, "HTML page to write; `-` prints it."] = Path("report.html")


FLAGS: dict[str, type[TableOptions]] = {
    kind.__name__.lower(): kind
    for kind in (Aggregate, Convert, Gold, Merge, Predict, Relabel, Report)
}


def call(name: str, argv: Sequence[str]) -> int:
    """Runs a command; returns the exit code.

    Args:
        name: the command's, which is also its module's. `run(flags)` there returns notes for
            standard error.
        argv: its flags.
    """
    RUNNING.set((name, *argv))

    def command() -> list[str]:
        flags = parse(FLAGS[name], argv, f"neucrowd {name}")
        notes: list[str] = importlib.import_module(f"neucrowd_tf.cli.commands.{name}").run(flags)
        return notes

    return run(command)
