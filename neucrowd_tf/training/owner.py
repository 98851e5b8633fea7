"""Whose a checkpoint is: a digest of what is fitted, and to what data.

Functions and classes count by what they do (their code, closure and defaults), never by name. Keras
objects count by their configuration.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import sysconfig
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare.types import Array, Estimator, Network
from neucrowd_tf.io.files.arrays import array_digest
from neucrowd_tf.training.features import LazyFeatures
from neucrowd_tf.training.run import Run

# Functions that Keras and the loop compile for a model, and keep from one fit to the next.
COMPILED = ("train_function", "test_function", "predict_function", "_compiled_steps")
# What a class of these remembers is their versions' matter, and is not looked at.
LIBRARIES = ("builtins", "keras", "neucrowd_tf", "numpy", "sklearn", "tensorflow", "baselines")
# Values in a module that change what a function of it computes.
NAMED = (
    *(bool, int, float, str, bytes, list, tuple, dict, set, frozenset),
    *(np.ndarray, np.generic, functools.partial),
)
# Folders of Python and its packages, without the environment's root.
FOLDERS = ("stdlib", "platstdlib", "purelib", "platlib")
INSTALLED = tuple(os.path.join(sysconfig.get_path(x), "") for x in FOLDERS)
DEPTH = 18  # of objects within objects; what lies deeper counts by its class


def owner_of(
    estimator: Estimator,
    features: Array | LazyFeatures,
    annotations: Annotations,
    *validation: Array | LazyFeatures,
) -> str:
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
        if annotations.generated.any():
            arrays.append(annotations.generated)
    identity = {
        "class": _plain(type(estimator)),
        "arguments": _plain(estimator.get_params(deep=False)),
        "data": list(map(_data_digest, arrays)),
        "encoder": getattr(getattr(estimator, "encoder_", None), "digest_", ""),
    }
    return _digest(identity)


def _data_digest(values: Array | LazyFeatures) -> str:
    if isinstance(values, LazyFeatures):
        return values.digest()
    return array_digest(np.asarray(values))


def with_network(run: Run, model: Network, optimizers: Iterable[Any]) -> Run:
    """Returns a run whose owner includes the configuration of what is trained."""
    if run.checkpoints is None:
        return run
    parts = []
    for layer in _layers_in(model):
        if type(layer).__module__.startswith("keras."):  # ours are no configurations
            parts.append(_network(layer, _plain))
    return _further(run, [parts, list(map(_plain, optimizers))])


def with_start(run: Run, values: Iterable[Array]) -> Run:
    """Returns a run whose owner includes the weights that training starts from."""
    if run.checkpoints is None:
        return run
    return _further(run, list(map(_data_digest, values)))


def _further(run: Run, identity: Any) -> Run:
    return dataclasses.replace(run, owner=_digest([run.owner, identity]))


def _digest(identity: Any) -> str:
    text = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: Any, depth: int = 0, before: dict[int, int] | None = None) -> Any:
    """Returns what is the same in each process of an object, as JSON can hold it.

    Args:
        value: the object.
        depth: how many objects it is within.
        before: the functions and classes that were looked at, numbered: they may name each other.
    """
    if value is None or isinstance(value, (str, int, float)):
        return value
    if depth > DEPTH:
        return type(value).__qualname__
    before = {} if before is None else before
    if isinstance(value, (types.FunctionType, type)):
        if id(value) in before:
            return ["again", before[id(value)]]
        before[id(value)] = len(before)

    def inner(item: Any) -> Any:
        return _plain(item, depth + 1, before)

    if isinstance(value, Mapping):
        return list(map(inner, value.items()))
    if isinstance(value, (list, tuple)):
        return list(map(inner, value))
    if isinstance(value, (set, frozenset)):
        # Each with numbers of its own: a set's order differs between processes.
        return sorted(json.dumps(_plain(item, depth + 1, dict(before))) for item in value)
    if isinstance(value, (np.generic, np.ndarray)):
        if np.size(value) < 1000:
            return value.tolist()
        return array_digest(np.asarray(value))
    if isinstance(value, (bytes, complex)) or value is Ellipsis:
        return repr(value)
    if isinstance(value, functools.partial):
        return ["partial", inner([value.func, value.args, value.keywords])]
    if isinstance(value, types.MethodType):
        return ["method", inner([value.__func__, value.__self__])]
    if isinstance(value, types.FunctionType):
        return inner(_parts_of_function(value))
    if isinstance(value, types.CodeType):
        return [value.co_code.hex(), inner([value.co_names, value.co_consts])]
    if isinstance(value, type):
        return [_name(value), inner(_parts_of_class(value))]
    if hasattr(value, "__qualname__"):  # builtins
        return _name(value)
    return [inner(type(value)), _state(value, inner)]


def _is_users(value: type | types.FunctionType) -> bool:
    """Whether a class or function is neither a library's nor of this package."""
    if isinstance(value, types.FunctionType) and not _is_file_of_user(value.__code__.co_filename):
        return False
    return str(value.__module__).partition(".")[0] not in LIBRARIES


def _is_file_of_user(path: str | None) -> bool:
    """Whether a module is no part of Python nor of an installed package."""
    return path is not None and not path.startswith(INSTALLED)


def _names_in(code: types.CodeType) -> set[str]:
    """Returns the names that a function and those within it look up."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names_in(constant)
    return names


def _named_values(value: types.FunctionType) -> dict[str, Any]:
    """Returns what a user's function names in its module and in further modules of the user.

    Functions, classes, numbers, texts, arrays and collections count, objects do not.
    """
    names = _names_in(value.__code__)
    modules = [value.__globals__]
    values: dict[str, Any] = {}
    for place, module in enumerate(modules):
        for name in sorted(names & module.keys()):
            item = module[name]
            key = f"{place} {name}"
            if isinstance(item, types.ModuleType):
                inside = vars(item)
                is_new = id(inside) not in map(id, modules)
                if is_new and _is_file_of_user(inside.get("__file__")):
                    modules.append(inside)
            elif isinstance(item, (types.FunctionType, type)):
                values[key] = item if _is_users(item) else _name(item)
            elif isinstance(item, NAMED):
                values[key] = item
    return values


def _constants(names: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the numbers and texts among named values, without those that Python sets."""
    constants = {}
    for name, value in names.items():
        if isinstance(value, (int, float, str)) and not name.startswith("__"):
            constants[name] = value
    return constants


def _parts_of_class(value: type) -> list[Any]:
    """Returns the code of a class, and what a user's class and its methods remember."""
    functions = []
    for member in vars(value).values():
        function = getattr(member, "fget" if isinstance(member, property) else "__func__", member)
        if isinstance(function, types.FunctionType):
            functions.append(function)
    if not _is_users(value):
        return [function.__code__ for function in functions]
    return [*functions, _constants(vars(value)), *value.__bases__]


def _parts_of_function(value: types.FunctionType) -> list[Any]:
    """Returns a function's code, and what it remembers.

    Of a user's function these are also the values that it names in its module. Of others, numbers
    and texts are.
    """
    code = value.__code__
    cells = []
    for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=True):
        if name == "__class__":  # the method's own class, for `super`
            continue
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            cells.append(None)
    if _is_users(value):
        named = _named_values(value)
    else:
        named = _constants({name: value.__globals__.get(name) for name in code.co_names})
    return [code, cells, value.__defaults__, value.__kwdefaults__, named]


def _state(value: Any, inner: Callable[[Any], Any]) -> Any:
    """Returns an object's arguments or configuration, or its attributes if it has neither.

    Args:
        value: the object.
        inner: `_plain` of its parts.
    """
    if hasattr(value, "get_params"):
        return inner(value.get_params(deep=False))
    if hasattr(value, "digest_"):  # a fitted encoder
        return value.digest_
    if hasattr(value, "get_config"):
        if hasattr(value, "layers"):
            return _network(value, inner)
        # A configuration names the classes of an optimizer's own schedule or losses, no more.
        classes = filter(_is_users, set(map(type, vars(value).values())))
        try:
            # An optimizer's name has a number that Keras adds.
            return inner([{**value.get_config(), "name": ""}, sorted(classes, key=_name)])
        except NotImplementedError:  # a schedule of the user's
            pass
    return inner(getattr(value, "__dict__", {}))


def _layers_in(model: Any) -> list[Any]:
    """Returns a layer or a model, its layers, and theirs."""
    layers = [model]
    for layer in getattr(model, "layers", ()):
        layers += _layers_in(layer)
    return layers


def _network(layer: Any, inner: Callable[[Any], Any]) -> Any:
    """Returns a layer's or a model's configuration, and the functions among its layers' attributes.

    Names of layers have numbers that Keras adds, so that their order replaces them.

    Args:
        layer: the layer or model.
        inner: `_plain` of its parts.
    """
    try:
        config = layer.get_config()
    except (NotImplementedError, TypeError):  # a user's own class
        config = {}
    names: dict[str, str] = {}

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("name"), str):
                names.setdefault(value["name"], f"#{len(names)}")
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            for item in value:
                collect(item)

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            # A network that several fits share has the first one's seeds; a fit draws by its own,
            # which is among the arguments.
            return {str(key): renamed(item) for key, item in value.items() if key != "seed"}
        if isinstance(value, (list, tuple)):
            return list(map(renamed, value))
        return names.get(value, value) if isinstance(value, str) else inner(value)

    collect(config)
    parts = []
    for each in _layers_in(layer):
        if not type(each).__module__.startswith(("keras.", "neucrowd_tf.")):
            parts.append(inner(type(each)))
        for name, value in vars(each).items():
            # Keras wraps methods such as `build` in functions that hold the layer itself.
            is_own = not hasattr(type(each), name) and name not in COMPILED
            if isinstance(value, types.FunctionType) and is_own:
                parts.append(inner(value))
    return [renamed(config), parts]


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}:{value.__qualname__}"
