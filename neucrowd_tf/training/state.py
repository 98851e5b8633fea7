"""The state of a training run as arrays.

With it, a run that was killed ends where an unbroken one does.

Keras' own checkpoints leave out the state of `SeedGenerator` (dropout) or the optimizer, and write
several files; one archive of all variables, written under a temporary name and renamed, cannot be
half new and half old.
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from sklearn.base import clone

from neucrowd_tf.declare.types import (
    Array,
    Estimator,
    Fields,
    KerasOptimizer,
    Layer,
    Network,
    Tensor,
)
from neucrowd_tf.errors import DataError, warn
from neucrowd_tf.nn.keras_private import layers_of, learning_rate_of, own_variables, trained_by

Values = list[tuple[Tensor, Tensor]]

_UNKNOWN = re.compile(r"Could not locate (?:class|function) '([^']+)'")


def why_not_made(error: Exception) -> str:
    """Returns why Keras cannot make an object from its configuration, and what to do."""
    if unknown := _UNKNOWN.search(str(error)):
        return (
            f"Keras does not know {unknown[1]}. Put @keras.saving.register_keras_serializable()"
            " before its definition, and import the module that has it before you load. Or save and"
            " load within keras.saving.custom_object_scope."
        )
    reason = str(error).strip().splitlines()[0]
    if "lambda" in reason:
        return (
            "Keras does not make functions without a name from a file. Replace the `lambda` by"
            " keras.ops on tensors, by a layer, or by a function with"
            " @keras.saving.register_keras_serializable() before it."
        )
    return f"{reason.rstrip('.')}."


def model_variables(model: keras.Model) -> list[Tensor]:
    """Returns every variable that a step may change.

    These are weights, seed generators, and the variables of all optimizers.
    """
    variables = list(model.variables)
    for optimizer in optimizers_of(model):
        variables += optimizer.variables
    return list({id(variable): variable for variable in variables}.values())


def optimizers_of(model: keras.Model) -> list[keras.optimizers.Optimizer]:
    """Returns a model's optimizers, the compiled one first."""
    values = [getattr(model, "optimizer", None), *vars(model).values()]
    optimizers = [value for value in values if isinstance(value, keras.optimizers.Optimizer)]
    return list(dict.fromkeys(optimizers))


def _with_inner(optimizers: Iterable[KerasOptimizer]) -> Iterator[Tensor]:
    """Yields optimizers and those that they hand variables to."""
    for optimizer in optimizers:
        yield optimizer
        if hasattr(optimizer, "inner_optimizer"):
            yield optimizer.inner_optimizer
        yield from getattr(optimizer, "optimizers", ())


def learning_rates(model: keras.Model) -> list[Tensor]:
    """Returns the variables of the learning rates that a callback may change."""
    rates = map(learning_rate_of, _with_inner(optimizers_of(model)))
    return [rate for rate in rates if isinstance(rate, keras.Variable)]


def averaging(model: keras.Model) -> list[Tensor]:
    """Returns the optimizers that keep moving averages of weights (`use_ema`)."""
    averages = []
    for optimizer in optimizers_of(model):
        if any(inner.use_ema for inner in _with_inner([optimizer])):
            averages.append(optimizer)
    return averages


@contextlib.contextmanager
def averaged(model: keras.Model) -> Iterator[None]:
    """Within, weights are their moving averages, where an optimizer keeps them."""
    optimizers = averaging(model)
    with restored(model.trainable_variables if optimizers else []):
        for optimizer in optimizers:
            optimizer.finalize_variable_values(trained_by(optimizer))
        yield


@contextlib.contextmanager
def restored(variables: Sequence[Tensor]) -> Iterator[None]:
    """Gives variables the values back that they had before."""
    values = read_variables(variables)
    try:
        yield
    finally:
        write_variables(variables, values)


def read_variables(variables: Iterable[Tensor]) -> list[Array]:
    """Returns copies of the variables' values."""
    return [np.array(tf.convert_to_tensor(variable.value)) for variable in variables]


def fits(variables: Sequence[Tensor], values: Sequence[Array]) -> bool:
    """Whether values can be assigned to variables: as many, of their shapes."""
    return [tuple(variable.shape) for variable in variables] == [value.shape for value in values]


def write_variables(variables: Sequence[Tensor], values: Sequence[Array]) -> None:
    """Assigns values to variables; numbers and shapes have to agree."""
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def pack(prefix: str, values: Sequence[Array]) -> dict[str, Array]:
    """Names a list of arrays for an archive."""
    return {f"{prefix}/{index:04d}": value for index, value in enumerate(values)}


def unpack(prefix: str, arrays: dict[str, Array]) -> list[Array]:
    """Returns the list that `pack` named."""
    return [arrays[key] for key in sorted(arrays) if key.startswith(f"{prefix}/")]


def to_text(value: object) -> Array:
    """Returns JSON as an array of bytes, which an archive can hold without pickle."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def from_text(array: Array) -> Layer:
    """Returns what `to_text` was given."""
    return json.loads(array.tobytes().decode())


def _initializers(layer: Layer) -> dict[int, Tensor]:
    """Returns a layer's initialisers by the identity of the variable that each of them makes."""
    initializers: dict[int, Tensor] = {}
    for name, value in vars(layer).items():
        stem = name.removesuffix("_initializer").lstrip("_")
        if stem == name.lstrip("_") or not isinstance(value, keras.initializers.Initializer):
            continue
        for attribute in (stem, f"_{stem}"):
            variable = vars(layer).get(attribute)
            if variable is not None and hasattr(variable, "assign"):
                initializers[id(variable)] = value
    return initializers


def _generators(layer: Layer) -> list[keras.random.SeedGenerator]:
    return [x for x in vars(layer).values() if isinstance(x, keras.random.SeedGenerator)]


def _with_layers(model: Network) -> list[Layer]:
    """Returns a Keras model and its layers, or the layers of networks that train together."""
    if isinstance(model, keras.Model):
        return [model, *layers_of(model)]
    return model.layers


def reinitialise(model: keras.Model, seed: int) -> list[Tensor]:
    """Gives a built model fresh weights and seeds drawn from `seed`, as if it had just been made.

    Returns:
        the trainable variables that stay as they were, because their layer names no initialiser (a
        user's own layer may not).

    Making a new model for every round leaks memory and compiles again; this reuses the compiled
    one. Weights whose layer names an initialiser are drawn anew, each from a seed of its own;
    biases and other constants start at what their initialiser says; moving statistics and the
    optimizer are reset.
    """
    rng = np.random.default_rng([seed, 0x1417])
    drawn = set[int]()
    for layer in _with_layers(model):
        initializers = _initializers(layer)
        for variable in own_variables(layer):
            initializer = initializers.get(id(variable))
            if initializer is None or id(variable) in drawn:
                continue
            drawn.add(id(variable))
            config = initializer.get_config()
            if "seed" in config:
                config = {**config, "seed": int(rng.integers(2**31 - 1))}
            fresh = type(initializer).from_config(config)
            variable.assign(fresh(tuple(variable.shape), dtype=variable.dtype))
        for generator in _generators(layer):
            generator.state.assign([int(rng.integers(2**31 - 1)), 0])
    for optimizer in optimizers_of(model):
        reset_optimizer(optimizer)
    return [variable for variable in model.trainable_variables if id(variable) not in drawn]


def note_starts(model: keras.Model) -> None:
    """Builds a model's optimizers and notes how their states begin, once for each.

    What is a copy of the weights then (`ScheduleFreeAdamW`) is one after each reset.
    """
    for optimizer in optimizers_of(model):
        if not optimizer.built:
            optimizer.build(model.trainable_variables)
        if "_starts" in vars(optimizer):
            continue
        trained = model.trainable_variables
        weights = {}
        for variable, value in zip(trained, read_variables(trained), strict=True):
            weights[value.tobytes()] = variable
        starts: list[Tensor] = []
        for value in read_variables(optimizer.variables):
            if value.size and (value == value.flat[0]).all():  # without a copy of the weights' size
                starts.append(np.broadcast_to(value.flat[0], value.shape))
            else:
                starts.append(weights.get(value.tobytes(), value))
        object.__setattr__(optimizer, "_starts", starts)  # not an attribute that Keras is to track


def reset_optimizer(optimizer: KerasOptimizer) -> None:
    """Gives an optimizer the state and the learning rate that `note_starts` found."""
    variables = getattr(optimizer, "variables", ())
    starts = vars(optimizer).get("_starts", ())
    for variable, start in zip(variables, starts, strict=False):
        variable.assign(start.value if isinstance(start, keras.Variable) else start)


def copy_network(
    model: keras.Model, argument: str, input_shape: Sequence[int] | None = None
) -> keras.Model:
    """Returns a copy of a network with all of its state.

    Weights, batch statistics, vocabularies, boundaries, constants that `finalize_state` makes and
    which weights are frozen are the same in both.

    Args:
        model: any Keras model that can be made from its configuration.
        argument: its name in errors.
        input_shape: of an instance; a model that is not built yet is built with it.

    Raises:
        DataError: the model cannot be made from its configuration.
    """
    _build(model, input_shape)
    options: Fields = {}
    if _is_of_keras(model):
        options = {"clone_function": _copy_layer, "recursive": True}
    try:
        copied = keras.models.clone_model(model, **options)
        _build(copied, input_shape or model.input_shape[1:])
    except (ValueError, TypeError, NotImplementedError) as error:
        raise DataError(
            f"{argument}: the Keras model cannot be copied from its configuration:"
            f" {why_not_made(error)} Give its layers a get_config, or pass a function that builds"
            " the model."
        ) from None
    for original, variable in zip(model.variables, copied.variables, strict=True):
        variable.assign(original.value)
        variable.trainable = original.trainable
    for layer in (copied, *layers_of(copied)):
        if layer.variables and hasattr(layer, "finalize_state"):
            layer.finalize_state()
        if isinstance(layer, keras.layers.BatchNormalization) and tf.distribute.has_strategy():
            layer.synchronized = True  # or each replica has the statistics of its part alone
    return copied


def _is_of_keras(model: keras.Model) -> bool:
    """Whether a model's class is one of Keras."""
    return type(model).__module__.startswith("keras.")


def _build(model: keras.Model, input_shape: Sequence[int] | None) -> None:
    """Makes a model's variables; a class of the user's makes them when it is called."""
    if model.built or input_shape is None:
        return
    if _is_of_keras(model):
        model.build((None, *input_shape))
    else:
        model(keras.Input(tuple(input_shape)))


def made_by(function: Callable[..., keras.Model], argument: str, *sizes: Any) -> keras.Model:
    """Returns a copy of the network that a user's function makes.

    A network that cannot be copied (one with a `Lambda` layer, say) is returned itself.

    Args:
        function: of the shape of an instance, and perhaps of the number of classes.
        argument: its name in errors.
        sizes: what it is called with, the shape first.

    Raises:
        DataError: it makes something else.
    """
    model: Network = function
    if type(function).__module__.partition(".")[0] not in ("tf_keras", "torch"):
        model = function(*sizes)
    if not isinstance(model, keras.Model):
        kind = type(model)
        raise DataError(
            f"{argument}: expected a model of Keras 3, or a function that makes one, received"
            f" {kind.__module__}.{kind.__qualname__}. Make it with `import keras`."
        )
    try:
        return copy_network(model, argument, sizes[0])
    except DataError:
        _build(model, sizes[0])
        return model


def _copy_layer(layer: Layer) -> Tensor:
    """Returns a layer from its configuration, with what a vocabulary or assets hold.

    Lookup layers need it before they are called; variables come later, when all are built.
    """
    copied = type(layer).from_config(layer.get_config())
    if hasattr(layer, "save_assets"):
        store: Fields = {}
        layer.save_own_variables(store)
        copied.load_own_variables(store)
        with tempfile.TemporaryDirectory() as folder:
            layer.save_assets(folder)
            copied.load_assets(folder)
    return copied


def starting_values(model: keras.Model, *, pretrained: bool) -> Values:
    """Returns the variables of a network that every fit starts from the values they have now.

    These are non-trainable state and frozen weights; with `pretrained` all weights. States of
    random generators are never among them.
    """
    drawn = set[int]()
    for layer in (model, *layers_of(model)):
        for generator in _generators(layer):
            drawn.add(id(generator.state))
    if not pretrained:
        drawn |= set(map(id, model.trainable_variables))
    variables = [variable for variable in model.variables if id(variable) not in drawn]
    return list(zip(variables, read_variables(variables), strict=True))


def warn_redrawn(model: keras.Model, argument: str, *, pretrained: bool) -> None:
    """Warns that the trainable weights of a user's model instance will be drawn from the seed."""
    if not pretrained and model.trainable_variables:
        warn(
            f"{argument}: each fit draws the model's trainable weights from the seed; frozen"
            " weights and other state are kept. Pass pretrained=True to start from its weights.",
            UserWarning,
            stacklevel=3,
        )


def user_network(
    network: keras.Model | Callable[..., keras.Model],
    seed: int,
    input_shape: Sequence[int] | None = None,
    *,
    pretrained: bool = False,
) -> keras.Model:
    """Returns a copy of a user's encoder for one fit.

    Args:
        network: a Keras model, or a function of the input shape that makes one.
        seed: draws the trainable weights, and dropout masks.
        input_shape: of an instance.
        pretrained: whether trainable weights start from the network's, too.
    """
    if isinstance(network, keras.Model):
        warn_redrawn(network, "encoder", pretrained=pretrained)
        encoder = copy_network(network, "encoder", input_shape)
    else:
        encoder = made_by(network, "encoder", tuple(input_shape or ()))
    start = starting_values(encoder, pretrained=pretrained)
    reinitialise(encoder, seed)  # what it does not draw stays
    for variable, value in start:
        variable.assign(value)
    return encoder


def snapshot(estimator: Estimator) -> Fields:
    """Returns the fitted state as arrays and plain values.

    The estimator, whose Keras model is `model_`, may then be refitted in place.
    """
    state = {}
    for name, value in vars(estimator).items():
        if name.endswith("_") and name != "model_":
            state[name] = copy.copy(value)
    return {"state": state, "weights": read_variables(estimator.model_.variables)}


def from_snapshot(estimator: Estimator, snapshot: Fields) -> Tensor:
    """Returns a fitted estimator of its own that is as this one was then."""
    copied = clone(estimator)
    copied.model_ = keras.models.clone_model(estimator.model_)
    return load_snapshot(copied, snapshot)


def load_snapshot(estimator: Estimator, snapshot: Fields) -> Tensor:
    """Takes a snapshot's state in place; `model_` must be this estimator's own."""
    for name, value in snapshot["state"].items():
        setattr(estimator, name, value)
    write_variables(estimator.model_.variables, snapshot["weights"])
    return estimator
