"""Saving fitted objects to a folder, without pickle; `neucrowd_tf.saving.loading` loads them.

A folder holds `estimator.json` (class, parameters, plain results), `arrays.npz` (numeric results),
a `.keras` file for each Keras model and a sub-folder for each fitted part. It is written under a
temporary name and renamed when complete.
"""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.io.files.arrays import save_arrays
from neucrowd_tf.io.files.atomic import atomic_folder
from neucrowd_tf.io.files.json_text import write_json

FORMAT = 1
PLAIN = (bool, int, float, str, type(None))


class Persistent:
    """A mix-in that gives objects in scikit-learn's style `save(folder)`; see `persistence.load`.

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
    if isinstance(value, PLAIN):
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
