"""Whose a checkpoint is: a digest of all that a fit is given, its data and its arguments."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.io.files.arrays import array_digest
from neucrowd_tf.io.files.reading import digest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations


def owner_of(
    estimator: Any, features: NDArray[Any], annotations: Annotations, *held: NDArray[Any]
) -> str:
    """Returns a digest of an estimator's arguments and of what it is fitted to, the same in each
    process.

    Args:
        estimator: with `get_params`.
        features: `[N, ...]`, or texts `[N]`.
        annotations: of N instances.
        held: what there is of validation data.
    """
    arrays = [features, annotations.class_names, annotations.vote_counts(), *held]
    if annotations.has_identities:
        arrays += [annotations.instances, annotations.annotators, annotations.labels]
    said = {
        "class": _name(type(estimator)),
        "arguments": _plain(estimator.get_params(deep=False)),
        "data": [array_digest(np.asarray(array)) for array in arrays],
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Returns what of an argument is the same in each process: of a file its bytes, wherever it
    lies, of an object its class.
    """
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, (str, Path)):
        return _digest(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return array_digest(value)
    if hasattr(value, "get_params") and not isinstance(value, type):
        return [_name(type(value)), _plain(value.get_params(deep=False))]
    return _name(value if hasattr(value, "__qualname__") else type(value))


def _digest(text: str | Path) -> str:
    try:
        return digest(text) if Path(text).is_file() else str(text)
    except (OSError, ValueError):  # a text that is no path; a file that cannot be read
        return str(text)


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}:{value.__qualname__}"
