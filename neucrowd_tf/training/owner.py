"""Whose a checkpoint is: a digest of what is fitted, and to what data.

Functions and classes count by what they do (their code, closure and defaults), never by name. Keras
objects count by their configuration.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import types
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Array
from neucrowd_tf.io.files.arrays import array_digest
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    import keras

# Functions that Keras and the loop compile for a model, and keep from one fit to the next.
COMPILED = ("train_function", "test_function", "predict_function", "_compiled_steps")
# What a class of these remembers is their versions' matter, and is not looked at.
LIBRARIES = ("builtins", "keras", "neucrowd_tf", "numpy", "sklearn", "tensorflow", "baselines")
DEPTH = 12  # of objects within objects; what lies deeper counts by its class


def owner_of(estimator: Any, features: Array, annotations: Annotations, *validation: Array) -> str:
    """Returns a digest of an estimator's arguments and of its data.

    It is the same in each process.

    Args:
        estimator: with `get_params`.
        features: `[N, ...]`, or texts `[N]`.
        annotations: of N instances.
        validation: its features and labels, if there are any.
    """
    arrays = [features, annotations.class_names, annotations.vote_counts(), *validation]
    if annotations.has_identities:
        arrays += [annotations.instances, annotations.annotators, annotations.labels]
    identity = {
        "class": _plain(type(estimator)),
        "arguments": _plain(estimator.get_params(deep=False)),
        "data": [
            array.digest() if hasattr(array, "digest") else array_digest(np.asarray(array))
            for array in arrays
        ],
        "encoder": getattr(getattr(estimator, "encoder_", None), "digest_", ""),
    }
    return _digest(identity)


def with_network(run: Run, model: keras.Model, optimizers: Iterable[Any]) -> Run:
    """Returns a run whose owner includes the configuration of what is trained."""
    if run.checkpoints is None:
        return run
    layers = _layers_in(model)
    # A model of ours is no configuration: its parts are.
    keras_own = [layer for layer in layers if type(layer).__module__.startswith("keras.")]
    parts = [_network(layer) for layer in keras_own]
    return _further(run, [parts, [_plain(value) for value in optimizers]])


def with_start(run: Run, values: Iterable[Array]) -> Run:
    """Returns a run whose owner includes the weights that training starts from."""
    if run.checkpoints is None:
        return run
    return _further(run, [array_digest(np.asarray(value)) for value in values])


def _further(run: Run, identity: Any) -> Run:
    return dataclasses.replace(run, owner=_digest([run.owner, identity]))


def _digest(identity: Any) -> str:
    text = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: Any, depth: int = 0) -> Any:
    """Returns what is the same in each process of an object, as JSON can hold it."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if depth > DEPTH:
        return type(value).__qualname__

    def inner(part: Any) -> Any:
        return _plain(part, depth + 1)

    if isinstance(value, Mapping):
        return [[inner(key), inner(item)] for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [inner(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(json.dumps(inner(item)) for item in value)
    if isinstance(value, (np.generic, np.ndarray)):
        if np.size(value) < 1000:
            return value.tolist()
        return array_digest(np.asarray(value))
    if isinstance(value, (bytes, complex)) or value is Ellipsis:
        return repr(value)
    if isinstance(value, functools.partial):
        return ["partial", inner(value.func), inner(value.args), inner(value.keywords)]
    if isinstance(value, types.MethodType):
        return ["method", inner(value.__func__), inner(value.__self__)]
    if isinstance(value, types.FunctionType):
        return _function(value, depth)
    if isinstance(value, types.CodeType):
        return [value.co_code.hex(), inner(value.co_names), inner(value.co_consts)]
    if isinstance(value, type):
        return _class(value, depth)
    if hasattr(value, "__qualname__"):  # builtins
        return _name(value)
    if hasattr(value, "get_params"):
        return [inner(type(value)), inner(value.get_params(deep=False))]
    if hasattr(value, "digest_"):  # a fitted encoder
        return [inner(type(value)), value.digest_]
    return [inner(type(value)), _state(value, depth)]


def _is_users(kind: type) -> bool:
    """Whether a class is neither a library's nor of this package."""
    package = kind.__module__.partition(".")[0]
    return package not in LIBRARIES


def _class(value: type, depth: int) -> Any:
    """Returns a class's code; of a user's class also what it and its methods remember."""
    members = [getattr(each, "__func__", each) for each in vars(value).values()]
    functions: list[Any] = [each for each in members if isinstance(each, types.FunctionType)]
    if not _is_users(value):
        return [_name(value), [_plain(each.__code__, depth + 1) for each in functions]]
    functions += [each.fget for each in members if isinstance(each, property) and each.fget]
    constants = {
        name: x
        for name, x in vars(value).items()
        if isinstance(x, (bool, int, float, str)) and not name.startswith("__")
    }
    bases = [base for base in value.__bases__ if base is not object]
    parts = [*(_function(each, depth + 1) for each in functions), constants, bases]
    return [_name(value), [_plain(part, depth + 1) for part in parts]]


def _function(value: types.FunctionType, depth: int) -> Any:
    """Returns a function's code, and what it remembers.

    Of what it names in its module, numbers and texts count.
    """
    cells = []
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        if name == "__class__":  # the method's own class, for `super`
            continue
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            cells.append(None)
    names = [name for name in value.__code__.co_names if name in value.__globals__]
    values = {name: value.__globals__[name] for name in names}
    constants = {name: x for name, x in values.items() if isinstance(x, (bool, int, float, str))}
    defaults = [value.__defaults__, value.__kwdefaults__]
    return [_plain(part, depth + 1) for part in (value.__code__, cells, defaults, constants)]


def _state(value: Any, depth: int) -> Any:
    """Returns an object's configuration, or its attributes if it has none."""
    if hasattr(value, "layers") and hasattr(value, "get_config"):
        return _network(value, depth)
    if hasattr(value, "get_config"):
        # A configuration names the classes of an optimizer's own schedule or losses, no more.
        classes = {type(part) for part in vars(value).values() if _is_users(type(part))}
        ordered = sorted(classes, key=_name)
        try:
            # An optimizer's name has a number that Keras adds.
            return _plain([{**value.get_config(), "name": ""}, ordered], depth + 1)
        except NotImplementedError:  # a schedule of the user's
            pass
    return _plain(getattr(value, "__dict__", {}), depth + 1)


def _layers_in(model: Any) -> list[Any]:
    """Returns a layer or a model, its layers, and theirs."""
    inner = [each for layer in getattr(model, "layers", ()) for each in _layers_in(layer)]
    return [model, *inner]


def _network(layer: Any, depth: int = 0) -> Any:
    """Returns a layer's or a model's configuration, and the functions among its layers' attributes.

    Names of layers have numbers that Keras adds, so that their order replaces them.
    """
    try:
        config = layer.get_config()
    except (NotImplementedError, TypeError):  # a user's own class
        config = {}
    names: dict[str, str] = {}

    def collect(part: Any) -> None:
        if isinstance(part, dict):
            if isinstance(part.get("name"), str):
                names.setdefault(part["name"], f"#{len(names)}")
            for item in part.values():
                collect(item)
        elif isinstance(part, (list, tuple)):
            for item in part:
                collect(item)

    def renamed(part: Any) -> Any:
        if isinstance(part, dict):
            # A network that several fits share has the first one's seeds; a fit draws by its own,
            # which is among the arguments.
            return {str(key): renamed(item) for key, item in part.items() if key != "seed"}
        if isinstance(part, (list, tuple)):
            return [renamed(item) for item in part]
        if isinstance(part, str):
            return names.get(part, part)
        return _plain(part, depth + 1)

    collect(config)
    functions = []
    for each in _layers_in(layer):
        if not type(each).__module__.startswith(("keras.", "neucrowd_tf.")):
            functions.append(_plain(type(each), depth + 1))
        for name, value in vars(each).items():
            # Keras wraps methods such as `build` in functions that hold the layer itself.
            own = not hasattr(type(each), name) and name not in COMPILED
            if isinstance(value, types.FunctionType) and own:
                functions.append(_plain(value, depth + 1))
    return [renamed(config), functions]


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}:{value.__qualname__}"
