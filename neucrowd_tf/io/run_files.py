"""The files of a run: their names, and the schema of its JSON files."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.files.reading import digest
from neucrowd_tf.io.files.records import Record
from neucrowd_tf.io.images import IMAGES

# metrics.json is written last: it marks a finished run.
FINISHED = "metrics.json"
CONFIG = "config.json"
STATUS = "status.json"
SAVED_MODEL = "saved_model"
CHECKPOINTS = "checkpoints"
TENSORBOARD = "tensorboard"
HISTORY = "history.json"
EVALUATION = "evaluation.json"
CURVES = "curves.csv"
PREDICTIONS = "predictions.csv"
ANNOTATORS = "annotators.csv"
TUNING = "tuning.csv"
LABELS = "labels.csv"  # only with --dataset=table
OUT_OF_FOLD = "oof.csv"  # only of methods that hold out every training item, as auto does
REPORT = "report.html"
FILES = (
    FINISHED,
    CONFIG,
    STATUS,
    HISTORY,
    EVALUATION,
    CURVES,
    PREDICTIONS,
    ANNOTATORS,
    TUNING,
    LABELS,
    OUT_OF_FOLD,
    REPORT,
)
FOLDERS = (CHECKPOINTS, TENSORBOARD, SAVED_MODEL)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Record):
    """config.json: what is needed to make the run again.

    Attributes:
        settings: everything but the code that the result depends on; under `digests` the SHA-256
            of the input files by the names of their flags.
        parameters: the estimator's parameters.
    """

    REMEDY = "Remove the folder to make the run again."

    settings: Fields = dataclasses.field(default_factory=dict)
    parameters: Fields = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Metrics(Record):
    """metrics.json: how a finished run was scored.

    Attributes:
        test: metrics of the test instances.
        timings: seconds and megabytes.
    """

    REMEDY = "Remove it to make the run again."

    test: Fields
    timings: Fields = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportedNames(Record):
    """assets.extra/names.json of a SavedModel: what its inputs and outputs are.

    Attributes:
        classes: names of the outputs.
        features: names of the inputs; None for texts and arrays.
        encoder: "source" and "digest" of the encoder whose vectors are the inputs, or None.
        scale: of the classes: "nominal" or "ordinal".
    """

    REMEDY = "Export the model again."

    classes: list[str | int | float]
    features: list[str] | None = None
    encoder: dict[str, str] | None = None
    scale: str = "nominal"


def read_config(run: Path) -> Config:
    """Returns a run's config.json; an empty one without that file."""
    path = run / CONFIG
    if path.exists():
        return Config.read(path)
    return Config(content={})


def input_digest(name: str, path: Path) -> str:
    """Returns the SHA-256 of an input file or folder; only images count in a folder of images."""
    return digest(path, IMAGES if name == "images" else None)
