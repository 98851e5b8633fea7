"""Copies of a user's Keras networks, and optimizers rebuilt for each fit."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import keras

from neucrowd_tf.errors import DataError
from neucrowd_tf.training.state import read_variables, reinitialise, seed_generators

Values = list[tuple[Any, Any]]


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
    if not model.built and input_shape is not None:
        model.build((None, *input_shape))
    plain = type(model).__module__.startswith("keras.")
    options: dict[str, Any] = {"clone_function": _copy_layer, "recursive": True} if plain else {}
    try:
        copy = keras.models.clone_model(model, **options)
        if not copy.built:
            copy.build((None, *(input_shape or model.input_shape[1:])))
    except (ValueError, TypeError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0]
        raise DataError(
            f"{argument}: the Keras model cannot be copied from its configuration: {reason}. Give"
            " its layers a get_config, or pass a function that builds the model."
        ) from None
    for original, variable in zip(model.variables, copy.variables, strict=True):
        variable.assign(original.value)
        variable.trainable = original.trainable
    for layer in copy._flatten_layers():
        if layer.variables and hasattr(layer, "finalize_state"):
            layer.finalize_state()
    return copy


def _copy_layer(layer: Any) -> Any:
    """Returns a layer from its configuration, with what a vocabulary or assets hold.

    Lookup layers need it before they are called; variables come later, when all are built.
    """
    copy = type(layer).from_config(layer.get_config())
    if not hasattr(layer, "save_assets"):
        return copy
    store: dict[str, Any] = {}
    layer.save_own_variables(store)
    copy.load_own_variables(store)
    with tempfile.TemporaryDirectory() as folder:
        layer.save_assets(folder)
        copy.load_assets(folder)
    return copy


def starting_values(model: keras.Model, pretrained: bool) -> Values:
    """Returns the variables of a network that every fit starts from the values they have now.

    These are non-trainable state and frozen weights; with `pretrained` all weights. States of
    random generators are never among them.
    """
    drawn = {id(generator.state) for generator in seed_generators(model)}
    if not pretrained:
        drawn |= {id(variable) for variable in model.trainable_variables}
    variables = [variable for variable in model.variables if id(variable) not in drawn]
    return list(zip(variables, read_variables(variables), strict=True))


def warn_redrawn(model: keras.Model, argument: str, pretrained: bool) -> None:
    """Warns that the trainable weights of a user's model instance will be drawn from the seed."""
    if not pretrained and model.trainable_variables:
        warnings.warn(
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
    argument: str = "encoder",
) -> keras.Model:
    """Returns a copy of a user's network for one fit.

    Args:
        network: a Keras model, or a function of the input shape that makes one.
        seed: draws the trainable weights, and dropout masks.
        input_shape: of an instance.
        pretrained: whether trainable weights start from the network's, too.
        argument: its name in errors and warnings.
    """
    if isinstance(network, keras.Model):
        warn_redrawn(network, argument, pretrained)
    else:
        network = network(tuple(input_shape or ()))
    copy = copy_network(network, argument, input_shape)
    start = starting_values(copy, pretrained)
    before = {id(variable): variable.numpy() for variable in copy.trainable_variables}
    undrawn = reinitialise(copy, seed)
    for variable, value in [*((each, before[id(each)]) for each in undrawn), *start]:
        variable.assign(value)
    return copy
