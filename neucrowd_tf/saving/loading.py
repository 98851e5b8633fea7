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
CLASSES: dict[str, type[Any]] = {}  # those that `Persistent` saves, by module and name

_PACKAGES = ("neucrowd_tf.", "baselines.", "reproduction.")
_LAYERS = (
    *("anno_reg", "annot_mix", "ccc", "coinnet", "conal", "crowd_layer"),
    *("crowdar", "doctor_net", "geocrowdnet", "madl", "trace_reg", "unionnet"),
)
# Where the classes that 0.2 saved are now: modules and packages.
_MOVED = {
    **{f"methods.{layer}": f"methods.crowd_layers.{layer}" for layer in _LAYERS},
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


def _read(path: Path) -> Fields:
    """Returns what estimator.json holds."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: {error}. {REMEDY}") from None
    if not isinstance(record, dict):
        raise DataError(f"{path}: not an object. {REMEDY}")
    for name, kind in (("format", int), ("params", dict), ("attributes", dict)):
        if not isinstance(record.get(name), kind):
            raise DataError(f"{path}: {name}: missing or of another type. {REMEDY}")
    return record


def _unpack_all(values: Fields, folder: Path, arrays: dict[str, np.ndarray]) -> Fields:
    return {name: _unpack(value, folder, arrays) for name, value in values.items()}


def _unpack(value: Any, folder: Path, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, PLAIN):
        return value
    ((kind, content),) = value.items()
    if kind == "float":
        return float(content)
    if kind == "array":
        return arrays[content]
    if kind == "names":
        items = (_unpack(item, folder, arrays) for item in content)
        return np.fromiter(items, dtype=object, count=len(content))
    if kind in ("list", "tuple"):
        unpacked = [_unpack(item, folder, arrays) for item in content]
        if kind == "tuple":
            return tuple(unpacked)
        return unpacked
    if kind == "dict":
        return {_unpack(k, folder, arrays): _unpack(v, folder, arrays) for k, v in content}
    if kind == "annotations":
        fields = _unpack(content, folder, arrays)
        fields |= {name: as_name_array(x) for name, x in fields.items() if name.endswith("_names")}
        if "counts" in fields:
            return Annotations.from_votes(**fields)
        return Annotations(**fields)
    if kind == "object":
        return load(folder / Path(content).name)
    if kind in ("keras", "keras_object"):
        objects = importlib.import_module("neucrowd_tf.saving.keras_objects")
        if kind == "keras_object":
            return objects.object_of(content)
        return objects.load_network(folder / Path(content).name, _PACKAGES[1:])
    raise DataError(f"{folder}: expected a saved estimator, received a value of kind {kind!r}")


def present_name(name: str) -> str:
    """Returns where a class that 0.2 saved is now: module and class."""
    module, _, kind = name.partition(":")
    inner = module.removeprefix("neucrowd_tf.")
    for earlier, present in _MOVED.items():
        if inner == earlier or inner.startswith(f"{earlier}."):
            return f"neucrowd_tf.{present}{inner.removeprefix(earlier)}:{kind}"
    return name


def load(folder: str | os.PathLike[str]) -> Any:
    """Loads a folder that `save` wrote.

    Only classes of this project and imported subclasses are instantiated.

    Raises:
        DataError: no saved estimator, or one of another format, version or unknown class.
    """
    source = Path(folder)
    if not (source / "estimator.json").is_file():
        raise DataError(
            f"{source}: estimator.json is missing. Name the folder of a saved estimator."
        )
    record = _read(source / "estimator.json")
    name = present_name(str(record.get("class")))
    if record["format"] != FORMAT:
        raise DataError(f"{source}: format {record['format']}, not {FORMAT}. {REMEDY}")
    try:
        if name not in CLASSES and name.startswith(_PACKAGES):
            importlib.import_module(name.partition(":")[0])
        if name not in CLASSES:
            raise DataError(f"{source}: no class {name}. Import the module that defines it first.")
        arrays = load_arrays(source / "arrays.npz")
        params = _unpack_all(record["params"], source, arrays)
        attributes = _unpack_all(record["attributes"], source, arrays)
        return CLASSES[name]._restore(params, attributes)
    except (TypeError, KeyError, ImportError, AttributeError) as error:
        raise DataError(
            f"{source}: saved by another version ({type(error).__name__}: {error}). {REMEDY}"
        ) from error
