"""Loading what `Persistent.save` wrote (see `neucrowd_tf.saving.persistent`), without pickle."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.annotations import Annotations, as_name_array
from neucrowd_tf.declare.types import Fields
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.arrays import load_arrays

FORMAT = 1
REMEDY = "Fit and save it again; CHANGELOG.md has replacements of removed arguments."
PLAIN = (bool, int, float, str, type(None))
CLASSES: dict[str, type[Any]] = {}  # subclasses of `Persistent`, by "module:name"

_PACKAGES = ("neucrowd_tf.", "baselines.", "reproduction.")
# Where the classes that 0.2 saved are now: modules and packages.
_MOVED = {
    "choice.auto": "methods.auto.estimator",
    "choice": "methods.auto",
    "crowd": "methods.crowd_layers.common",
    "crowding": "methods.crowding",
    "dasc": "methods.dasc",
    "iced": "methods.iced",
    "neucrowd": "methods.neucrowd",
    "rll": "methods.rll",
    "texts": "methods.texts",
    "training.linear": "training.logistic_head",
    "training.text_features": "encoders.tfidf",
    "two_stage": "methods.two_stage",
}
_LAYERS = (
    "anno_reg annot_mix ccc coinnet conal crowd_layer"
    " crowdar doctor_net geocrowdnet madl trace_reg unionnet"
)
for _layer in _LAYERS.split():
    _MOVED[f"methods.{_layer}"] = f"methods.crowd_layers.{_layer}"


def _read(path: Path) -> Fields:
    """Returns estimator.json as a dict with "format", "class", "params" and "attributes"."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: {error}. {REMEDY}") from None
    if not isinstance(record, dict):
        raise DataError(f"{path}: not an object. {REMEDY}")
    for name, expected in (("format", int), ("params", dict), ("attributes", dict)):
        if not isinstance(record.get(name), expected):
            raise DataError(f"{path}: {name}: missing or of another type. {REMEDY}")
    return record


class _Reader:
    """Reads the values of an object from its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.arrays = load_arrays(folder / "arrays.npz")

    def fields(self, record: Fields) -> Fields:
        """Returns an object's parameters or attributes by name."""
        return {name: self.value(packed) for name, packed in record.items()}

    def value(self, packed: Any) -> Any:
        """Returns the value that a part of estimator.json stands for."""
        if isinstance(packed, PLAIN):
            return packed
        ((kind, content),) = packed.items()
        if kind == "float":
            return float(content)
        if kind == "array":
            return self.arrays[content]
        if kind == "names":
            return np.fromiter(map(self.value, content), dtype=object, count=len(content))
        if kind == "list":
            return list(map(self.value, content))
        if kind == "tuple":
            return tuple(map(self.value, content))
        if kind == "dict":
            return {self.value(name): self.value(item) for name, item in content}
        if kind == "annotations":
            return _annotations(self.value(content))
        if kind == "object":
            return load(self.folder / Path(content).name)
        if kind in ("keras", "keras_object"):
            objects = importlib.import_module("neucrowd_tf.saving.keras_objects")
            if kind == "keras_object":
                return objects.object_of(content)
            return objects.load_network(self.folder / Path(content).name, _PACKAGES[1:])
        raise DataError(f"{self.folder}: a value of unknown kind {kind!r}. {REMEDY}")


def _annotations(parts: Fields) -> Annotations:
    parts |= {name: as_name_array(x) for name, x in parts.items() if name.endswith("_names")}
    if "counts" in parts:
        return Annotations.from_votes(**parts)
    return Annotations(**parts)


def present_name(name: str) -> str:
    """Returns where a class that 0.2 saved is now: module and class."""
    module, _, class_name = name.partition(":")
    inner = module.removeprefix("neucrowd_tf.")
    for earlier, present in _MOVED.items():
        if inner == earlier or inner.startswith(f"{earlier}."):
            return f"neucrowd_tf.{present}{inner.removeprefix(earlier)}:{class_name}"
    return name


def load(folder: str | os.PathLike[str]) -> Any:
    """Loads a folder that `save` wrote.

    Only classes of this project, and subclasses that have been imported, are instantiated.

    Raises:
        DataError: no saved estimator, or one of another format, version or unknown class.
    """
    source = Path(folder)
    if not (source / "estimator.json").is_file():
        raise DataError(f"{source}: estimator.json is missing. Name a saved estimator's folder.")
    record = _read(source / "estimator.json")
    name = present_name(str(record.get("class")))
    if record["format"] != FORMAT:
        raise DataError(f"{source}: format {record['format']}, not {FORMAT}. {REMEDY}")
    try:
        if name not in CLASSES and name.startswith(_PACKAGES):
            importlib.import_module(name.partition(":")[0])
        if name not in CLASSES:
            raise DataError(f"{source}: no class {name}. Import the module that defines it first.")
        reader = _Reader(source)
        params = reader.fields(record["params"])
        return CLASSES[name]._restore(params, reader.fields(record["attributes"]))
    except DataError:
        raise
    except (TypeError, KeyError, ImportError, AttributeError, ValueError, OSError) as error:
        raise DataError(
            f"{source}: saved by another version ({type(error).__name__}: {error}). {REMEDY}"
        ) from error
