"""The files of a run: their names, and the schema of its JSON files."""

from __future__ import annotations

import dataclasses
import itertools
import types
from pathlib import Path
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.files.reading import digest
from neucrowd_tf.io.images import IMAGES

# metrics.json is written last: it marks a finished run.
FINISHED, CONFIG, STATUS = "metrics.json", "config.json", "status.json"
SAVED_MODEL, CHECKPOINTS, TENSORBOARD = "saved_model", "checkpoints", "tensorboard"
HISTORY, EVALUATION, CURVES = "history.json", "evaluation.json", "curves.csv"
PREDICTIONS, ANNOTATORS, TUNING = "predictions.csv", "annotators.csv", "tuning.csv"
LABELS = "labels.csv"  # only with --dataset=table
OUT_OF_FOLD = "oof.csv"  # only of methods that hold out every training item, as auto does
REPORT = "report.html"
FILES = (
    *(FINISHED, CONFIG, STATUS, HISTORY, EVALUATION, CURVES, PREDICTIONS, ANNOTATORS, TUNING),
    *(LABELS, OUT_OF_FOLD, REPORT),
)
FOLDERS = (CHECKPOINTS, TENSORBOARD, SAVED_MODEL)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """A JSON file of this project, of which some fields are declared with their types.

    Attributes:
        content: the whole file, other fields included.
    """

    REMEDY: ClassVar[str] = "Remove it."

    content: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a file and checks the declared fields.

        Raises:
            DataError: no such file, not an object, or a field that is missing or of another type.
        """
        try:
            content = read_json(path)
        except DataError as error:
            raise DataError(f"{error}. {cls.REMEDY}") from None
        if not isinstance(content, dict):
            raise DataError(f"{path}: not an object. {cls.REMEDY}")
        kinds = get_type_hints(cls)
        values = {}
        for field in dataclasses.fields(cls)[1:]:
            make: Any = field.default_factory
            default = field.default if make is dataclasses.MISSING else make()
            value = content.get(field.name, default)
            if not isinstance(value, _classes(kinds[field.name])):
                raise DataError(f"{path}: {field.name}: missing or of another type. {cls.REMEDY}")
            values[field.name] = value
        return cls(content=content, **values)


def _classes(kind: Any) -> tuple[type, ...]:
    """Returns the classes of an annotation: (list, NoneType) of `list[str] | None`."""
    if get_origin(kind) is types.UnionType:
        return tuple(itertools.chain.from_iterable(map(_classes, get_args(kind))))
    return (get_origin(kind) or kind,)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Record):
    """config.json: what is needed to make the run again.

    Attributes:
        settings: everything but the code that the result depends on; under `digests` the SHA-256
            of the input files by the names of their flags.
        parameters: the estimator's parameters.
    """

    REMEDY = "Remove the folder to make the run again."

    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    parameters: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Metrics(Record):
    """metrics.json: how a finished run was scored.

    Attributes:
        test: metrics of the test instances.
        timings: seconds and megabytes.
    """

    REMEDY = "Remove it to make the run again."

    test: dict[str, Any]
    timings: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportedNames(Record):
    """assets.extra/names.json of a SavedModel: what its inputs and outputs are.

    Attributes:
        classes: names of the outputs.
        features: names of the inputs; None for texts and arrays.
        encoder: "source" and "digest" of the encoder whose vectors are the inputs, or None.
    """

    REMEDY = "Export the model again."

    classes: list[str | int | float]
    features: list[str] | None = None
    encoder: dict[str, str] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class SavedEstimator(Record):
    """estimator.json of a saved estimator; see `neucrowd_tf.persistence`."""

    REMEDY = "Fit and save it again; CHANGELOG.md has replacements of removed arguments."

    format: int
    params: dict[str, Any]
    attributes: dict[str, Any]


def read_config(run: Path) -> Config:
    """Returns a run's config.json; an empty one without that file."""
    path = run / CONFIG
    return Config.read(path) if path.exists() else Config(content={})


def input_digest(name: str, path: Path) -> str:
    """Returns the SHA-256 of an input file or folder; only images count in a folder of images."""
    return digest(path, IMAGES if name == "images" else None)
