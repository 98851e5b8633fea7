"""Saving fitted objects to a folder, without pickle; `neucrowd_tf.saving.loading` loads them.

A folder holds `estimator.json` (class, parameters, plain results), `arrays.npz` (numeric results),
a `.keras` file for each Keras model and a sub-folder for each fitted part. It is written under a
temporary name and renamed when complete.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
from pathlib import Path
from typing import Any, Self

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Fields, Network
from neucrowd_tf.errors import DataError
from neucrowd_tf.io.files.arrays import save_arrays
from neucrowd_tf.io.files.atomic import atomic_folder
from neucrowd_tf.io.files.json_text import write_json
from neucrowd_tf.saving.loading import CLASSES, FORMAT, PLAIN, load


class Persistent:
    """A mix-in that gives objects in scikit-learn's style `save(folder)`; see `loading.load`.

    It saves parameters (`get_params`) and attributes whose names end in `_`. Names that begin with
    `_` are caches and are not saved. Values may be numbers, text, lists and dicts of them, arrays,
    `Annotations`, Keras models, optimizers and schedules, and other `Persistent` objects. A
    function that makes a network is saved as "module:function" if Python can import it; otherwise
    the network that it makes is saved. Of a function that makes an optimizer, the optimizer is
    saved.
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        CLASSES[f"{cls.__module__}:{cls.__qualname__}"] = cls

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the fitted object; a folder with a saved object is replaced.

        What was written is read again before anything is replaced.

        Raises:
            FileExistsError: the folder exists and does not hold a saved object.
            DataError: what was written cannot be loaded, such as a layer that Keras does not know.
            TypeError: a value that cannot be saved.
        """
        target = Path(folder)
        if target.exists() and not (target / "estimator.json").exists() and any(target.iterdir()):
            raise FileExistsError(f"{target}: expected a new folder or one with a saved estimator")
        with atomic_folder(target) as temporary:
            self._write(temporary)
            try:
                load(temporary)
            except DataError as error:
                reason = str(error).replace(f"{temporary}{os.sep}", "")
                raise DataError(f"{target}: nothing was saved. {reason}") from error

    def _write(self, folder: Path, around: object = None) -> None:
        """Writes this object; `around` is the fitted estimator of which it is a parameter."""
        owner = getattr(self, "estimator_", self if hasattr(self, "feature_shape_") else around)
        writer = _Writer(folder, owner)
        params = {}
        for name, value in self.get_params(deep=False).items():  # type: ignore[attr-defined]
            portable = _portable(self, name, value, owner)
            params[name] = writer.packed(portable, f"param.{name}")
        attributes = {}
        for name, value in vars(self).items():
            if name.endswith("_") and not name.startswith("_"):
                attributes[name] = writer.packed(value, name)
        class_name = f"{type(self).__module__}:{type(self).__qualname__}"
        record = {"format": FORMAT, "class": class_name, "params": params, "attributes": attributes}
        save_arrays(folder / "arrays.npz", writer.arrays)
        write_json(folder / "estimator.json", record)

    @classmethod
    def _restore(cls, params: Fields, attributes: Fields) -> Self:
        """Returns a fitted object, without parameters of an earlier version that had no value."""
        accepted = inspect.signature(cls).parameters
        params = {name: x for name, x in params.items() if name in accepted or x is not None}
        restored = cls(**params)
        vars(restored).update(attributes)
        return restored


def _portable(model: Network, name: str, value: Any, owner: Any) -> Any:
    """Returns a parameter, or what is saved for a function: an import path, or what it makes.

    Args:
        model: the object with the parameter.
        name: of the parameter.
        value: of the parameter.
        owner: a fitted estimator with the same features and classes, or None.
    """
    if not inspect.isroutine(value) and not inspect.isclass(value):
        return value
    if name == "optimizer":
        return value()
    if name not in getattr(model, "nested", {}):
        return value
    path = f"{value.__module__}:{value.__qualname__}"
    if value.__module__ != "__main__" and "<" not in path:
        return path
    if owner is None:
        raise TypeError(
            f"{name}: a function that Python cannot import is saved as the network that it makes,"
            " once the estimator is fitted. Fit it first, or name a function of a module,"
            ' "module:function".'
        )
    shape = tuple(owner.feature_shape_)
    sizes: list[Any] = [shape, len(owner.classes_)] if name == "base" else [shape]
    network: Network = value(*sizes)
    if not network.built:
        network.build((None, *shape))
    return network


@dataclasses.dataclass
class _Writer:
    """Writes the values of an object to a folder; arrays are collected for arrays.npz."""

    folder: Path
    owner: object  # see `_portable`
    arrays: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def packed(self, value: object, key: str) -> Any:
        """Returns what stands for a value in estimator.json; `key` names its array or file."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not np.isfinite(value):
            return {"float": repr(value)}
        if isinstance(value, PLAIN):
            return value
        if isinstance(value, np.ndarray):
            if value.dtype == object:
                return {"names": [self.packed(item, key) for item in value.tolist()]}
            self.arrays[key] = value
            return {"array": key}
        if isinstance(value, (list, tuple)):
            items = [self.packed(item, f"{key}.{index}") for index, item in enumerate(value)]
            return {"tuple" if isinstance(value, tuple) else "list": items}
        if isinstance(value, dict):
            pairs = []
            for index, (name, item) in enumerate(value.items()):
                pairs.append([self.packed(name, key), self.packed(item, f"{key}.{index}")])
            return {"dict": pairs}
        if isinstance(value, Annotations):
            return {"annotations": self.packed(_annotation_parts(value), key)}
        if isinstance(value, Persistent):
            part = self.folder / key
            part.mkdir()
            value._write(part, self.owner)
            return {"object": key}
        if keras := sys.modules.get("keras"):
            if isinstance(value, keras.Model):
                value.save(self.folder / f"{key}.keras")
                return {"keras": f"{key}.keras"}
            schedule = keras.optimizers.schedules.LearningRateSchedule
            if isinstance(value, (keras.optimizers.Optimizer, schedule)):
                return {"keras_object": keras.saving.serialize_keras_object(value)}
            name = getattr(value, "__name__", "")
            if name and getattr(keras.activations, name, None) is value:
                return name
        raise TypeError(
            f"{key}: a {type(value).__name__} cannot be saved. Replace it with set_params, by a"
            " name or a Keras object, and save again."
        )


def _annotation_parts(value: Annotations) -> Fields:
    """Returns the arguments that make the annotations again, see `loading`."""
    names = ["instance_names", "class_names"]
    parts = {}
    if value.has_identities:
        names += ["instances", "annotators", "labels", "generated", "annotator_names"]
    else:
        parts["counts"] = value.vote_counts()
    return parts | {name: getattr(value, name) for name in names}
