"""Saving fitted objects to a folder and loading them again, without pickle.

A folder holds `estimator.json` (class, parameters, plain results), `arrays.npz` (numeric results),
a `.keras` file for each Keras model and a sub-folder for each fitted part. It is written under a
temporary name and renamed when complete.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import re
import sys
import zipfile
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from neucrowd_tf.annotations import Annotations, as_name_array
from neucrowd_tf.declare import nest
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.arrays import load_arrays, save_arrays
from neucrowd_tf.io.files.atomic import atomic_folder
from neucrowd_tf.io.files.json import write_json
from neucrowd_tf.io.files.records import Record

FORMAT = 1
_PACKAGES = ("neucrowd_tf.", "baselines.", "reproduction.")
# Where classes of an earlier version are now; its files can be loaded, Keras' parts by their names.
_MOVED = (
    (r"^[\w.]+:SelfTrained\w+$", "neucrowd_tf.dasc.estimator:DASC"),
    (r"^neucrowd_tf\.(rll|neucrowd)\.released:", r"reproduction.controls.\1:"),
    (r":(UnionNet|GeoCrowdNet)[ABFW]$", r":\1"),
    (
        r"^(?:neucrowd_tf\.crowd_layers|baselines)\.(anno_reg|annot_mix|ccc|coinnet|conal|crowd_layer"
        r"|crowdar|doctor_net|geocrowdnet|madl|trace_reg|unionnet):",
        r"neucrowd_tf.methods.\1:",
    ),
)
_PLAIN = (bool, int, float, str, type(None))


@dataclasses.dataclass(frozen=True, kw_only=True)
class SavedEstimator(Record):
    """estimator.json of a saved estimator."""

    REMEDY = "Fit and save it again; CHANGELOG.md has replacements of removed arguments."

    format: int
    params: dict[str, Any]
    attributes: dict[str, Any]


class Persistent:
    """A mix-in that gives objects in scikit-learn's style `save(folder)`; see `load`.

    Parameters (`get_params`) and attributes whose names end in `_` are kept; names that begin with
    `_` are caches and are not. Values may be numbers, text, lists and dicts of them, arrays,
    `Annotations`, Keras models and other `Persistent` objects.
    """

    _classes: ClassVar[dict[str, type[Persistent]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Persistent._classes[f"{cls.__module__}:{cls.__qualname__}"] = cls

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the fitted object; an existing folder that holds another one is replaced.

        Raises:
            FileExistsError: the folder exists and does not hold a saved object.
        """
        target = Path(folder)
        if target.exists() and not (target / "estimator.json").exists() and any(target.iterdir()):
            raise FileExistsError(f"{target}: expected a new folder or one with a saved estimator")
        with atomic_folder(target) as temporary:
            self._write(temporary)

    def _write(self, folder: Path) -> None:
        arrays: dict[str, np.ndarray] = {}
        params = {
            name: _pack(value, f"param.{name}", folder, arrays)
            for name, value in self.get_params(deep=False).items()  # type: ignore[attr-defined]
        }
        attributes = {
            name: _pack(value, name, folder, arrays)
            for name, value in vars(self).items()
            if name.endswith("_") and not name.startswith("_")
        }
        kind = f"{type(self).__module__}:{type(self).__qualname__}"
        record = {"format": FORMAT, "class": kind, "params": params, "attributes": attributes}
        save_arrays(folder / "arrays.npz", arrays)
        write_json(folder / "estimator.json", record)

    @classmethod
    def _restore(cls, params: dict[str, Any], attributes: dict[str, Any]) -> Self:
        # An earlier version had the options of a network among the arguments.
        params = nest(cls, {}, params)
        accepted = inspect.signature(cls).parameters
        params = {name: x for name, x in params.items() if name in accepted or x is not None}
        restored = cls(**params)
        for name, value in attributes.items():
            setattr(restored, name, value)
        return restored


def _pack(value: Any, key: str, folder: Path, arrays: dict[str, np.ndarray]) -> Any:
    """Returns what stands for `value` in estimator.json; bulky things go to files of their own."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return {"names": [_pack(item, key, folder, arrays) for item in value.tolist()]}
        arrays[key] = value
        return {"array": key}
    if isinstance(value, (list, tuple)):
        packed: list[Any] = [_pack(v, f"{key}.{i}", folder, arrays) for i, v in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": packed}
    if isinstance(value, dict):
        packed = [
            [_pack(k, key, folder, arrays), _pack(v, f"{key}.{i}", folder, arrays)]
            for i, (k, v) in enumerate(value.items())
        ]
        return {"dict": packed}
    if isinstance(value, Annotations):
        return {"annotations": _pack(_annotation_parts(value), key, folder, arrays)}
    if isinstance(value, Persistent):
        item = folder / key
        item.mkdir()
        value._write(item)
        return {"object": key}
    keras = sys.modules.get("keras")
    if keras is not None and isinstance(value, keras.Model):
        value.save(folder / f"{key}.keras")
        return {"keras": f"{key}.keras"}
    raise TypeError(f"{key}: a {type(value).__name__} cannot be saved")


def _annotation_parts(value: Annotations) -> dict[str, Any]:
    names = ["instance_names", "class_names"]
    if value.has_identities:
        names = ["instances", "annotators", "labels", "generated", "annotator_names", *names]
    counts = {} if value.has_identities else {"counts": value.vote_counts()}
    return counts | {name: getattr(value, name) for name in names}


def _unpack(value: Any, folder: Path, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, _PLAIN):
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
        return tuple(unpacked) if kind == "tuple" else unpacked
    if kind == "dict":
        return {_unpack(k, folder, arrays): _unpack(v, folder, arrays) for k, v in content}
    if kind == "annotations":
        parts = _unpack(content, folder, arrays)
        parts |= {name: as_name_array(x) for name, x in parts.items() if name.endswith("_names")}
        return Annotations.from_votes(**parts) if "counts" in parts else Annotations(**parts)
    if kind == "object":
        return load(folder / Path(content).name)
    if kind == "keras":
        import keras

        path = folder / Path(content).name
        _import_layers(path)
        return keras.saving.load_model(path, compile=False, safe_mode=True)
    raise DataError(f"{folder}: expected a saved estimator, received a value of kind {kind!r}")


def _import_layers(path: Path) -> None:
    """Imports the modules of the layers in a Keras file: Keras finds only imported layers."""
    importlib.import_module("neucrowd_tf.layers")
    with zipfile.ZipFile(path) as content:
        config = content.read("config.json").decode("utf-8")
    for module in sorted(set(re.findall(r'"module": "([\w.]+)"', config))):
        if module.startswith(_PACKAGES[1:]):
            importlib.import_module(module)


def present_name(name: str) -> str:
    """Returns where a class of an earlier version is now: module and class."""
    for pattern, replacement in _MOVED:
        name = re.sub(pattern, replacement, name)
    return name


def load(folder: str | os.PathLike[str]) -> Any:
    """Loads a folder that `save` wrote.

    Only classes of this project and imported subclasses are instantiated.

    Raises:
        DataError: no saved estimator, or one of another format, version or unknown class.
    """
    source = Path(folder)
    if not (source / "estimator.json").is_file():
        raise DataError(f"{source}: no saved estimator, estimator.json is missing. Check the path.")
    record = SavedEstimator.read(source / "estimator.json")
    name = present_name(str(record.content.get("class")))
    if record.format != FORMAT:
        raise DataError(f"{source}: format {record.format}, not {FORMAT}. {record.REMEDY}")
    try:
        if name not in Persistent._classes and name.startswith(_PACKAGES):
            importlib.import_module(name.partition(":")[0])
        if name not in Persistent._classes:
            raise DataError(f"{source}: no class {name}. Import the module that defines it first.")
        arrays = load_arrays(source / "arrays.npz")
        params, attributes = (
            {key: _unpack(value, source, arrays) for key, value in item.items()}
            for item in (record.params, record.attributes)
        )
        return Persistent._classes[name]._restore(params, attributes)
    except (TypeError, KeyError, ImportError, AttributeError) as error:
        raise DataError(
            f"{source}: saved by another version ({type(error).__name__}: {error}). {record.REMEDY}"
        ) from error
