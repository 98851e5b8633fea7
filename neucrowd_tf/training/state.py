"""The state of a training run as arrays: what has to be kept so that a killed run ends where an
unbroken one does.

Keras' own checkpoints leave out the state of `SeedGenerator` (dropout) or the optimizer, and write
several files; one archive of all variables, written under a temporary name and renamed, cannot be
half new and half old.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def model_variables(model: keras.Model) -> list[Any]:
    """Returns every variable a step may change: weights, seed generators, and the variables of all
    optimizers.
    """
    variables = list(model.variables)
    seen = {id(variable) for variable in variables}
    optimizers = [model.optimizer] if getattr(model, "optimizer", None) is not None else []
    optimizers += [
        value for value in vars(model).values() if isinstance(value, keras.optimizers.Optimizer)
    ]
    for optimizer in optimizers:
        for variable in optimizer.variables:
            if id(variable) not in seen:
                seen.add(id(variable))
                variables.append(variable)
    return variables


def read_variables(variables: Iterable[Any]) -> list[NDArray[Any]]:
    """Returns copies of the variables' values."""
    return [np.array(keras.ops.convert_to_numpy(variable.value)) for variable in variables]


def fits(variables: Sequence[Any], values: Sequence[NDArray[Any]]) -> bool:
    """Whether values can be assigned to variables: as many, of their shapes."""
    return [tuple(variable.shape) for variable in variables] == [value.shape for value in values]


def write_variables(variables: Sequence[Any], values: Sequence[NDArray[Any]]) -> None:
    """Assigns values to variables; numbers and shapes have to agree."""
    if len(variables) != len(values):
        raise ValueError(
            f"expected {len(variables)} values, received {len(values)}: the checkpoint belongs to"
            " another model"
        )
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def pack(prefix: str, values: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Names a list of arrays for an archive."""
    return {f"{prefix}/{index:04d}": value for index, value in enumerate(values)}


def unpack(prefix: str, arrays: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Returns the list that `pack` named."""
    return [arrays[key] for key in sorted(arrays) if key.startswith(f"{prefix}/")]


def to_text(value: Any) -> NDArray[Any]:
    """Returns JSON as an array of bytes, which an archive can hold without pickle."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def from_text(array: NDArray[Any]) -> Any:
    """Returns what `to_text` was given."""
    return json.loads(array.tobytes().decode())


def _initializers(layer: Any) -> dict[int, Any]:
    """Returns a layer's initialisers by the identity of the variable that each of them makes."""
    found: dict[int, Any] = {}
    for name, value in vars(layer).items():
        if not name.endswith("_initializer") or not isinstance(
            value, keras.initializers.Initializer
        ):
            continue
        stem = name.removesuffix("_initializer").lstrip("_")
        for attribute in (stem, f"_{stem}"):
            variable = vars(layer).get(attribute)
            if variable is not None and hasattr(variable, "assign"):
                found[id(variable)] = value
    return found


def _generators(layer: Any) -> list[keras.random.SeedGenerator]:
    return [
        value for value in vars(layer).values() if isinstance(value, keras.random.SeedGenerator)
    ]


def seed_generators(model: keras.Model) -> list[keras.random.SeedGenerator]:
    """Returns the random generators of a model's layers, each of which may stand there twice."""
    return [generator for layer in model._flatten_layers() for generator in _generators(layer)]


def reinitialise(model: keras.Model, seed: int) -> list[Any]:
    """Gives a built model fresh weights and seeds drawn from `seed`, as if it had just been made.

    Returns:
        the trainable variables that stay as they were, because their layer names no initialiser (a
        user's own layer may not).

    Making a new model for every round leaks memory and compiles again; this reuses the compiled
    one. Weights whose layer names an initialiser are drawn anew, each from a seed of its own;
    biases and other constants start at what their initialiser says; moving statistics are reset.
    Optimizer variables are zeroed, but the learning rate stays.
    """
    draw = np.random.default_rng([seed, 0x1417])
    layers = [model, *model._flatten_layers(include_self=False)]
    done: set[int] = set()
    for layer in layers:
        makers = _initializers(layer)
        own = list(getattr(layer, "_trainable_variables", [])) + list(
            getattr(layer, "_non_trainable_variables", [])
        )
        for variable in own:
            maker = makers.get(id(variable))
            if maker is None or id(variable) in done:
                continue
            done.add(id(variable))
            config = maker.get_config()
            if "seed" in config:
                config = {**config, "seed": int(draw.integers(2**31 - 1))}
            variable.assign(
                type(maker).from_config(config)(tuple(variable.shape), dtype=variable.dtype)
            )
        for generator in _generators(layer):
            state = np.array([int(draw.integers(2**31 - 1)), 0], dtype=np.uint32)
            generator.state.assign(state.astype(generator.state.dtype))
    reset_optimizer(getattr(model, "optimizer", None))
    return [variable for variable in model.trainable_variables if id(variable) not in done]


def reset_optimizer(optimizer: Any) -> None:
    """Forgets an optimizer's moments and step count; its learning rate stays."""
    if optimizer is None:
        return
    rate = optimizer._learning_rate if hasattr(optimizer, "_learning_rate") else None
    for variable in optimizer.variables:
        if variable is not rate:
            variable.assign(np.zeros(tuple(variable.shape), dtype=variable.dtype))
