"""The private names of Keras and TensorFlow that this package uses, all of them.

Each is looked for when this module is imported, so that a version without one of them ends in one
line and not in wrong numbers.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator

import keras
import numpy as np
from keras.src.backend.common import global_state
from keras.src.random import seed_generator
from tensorflow.python.eager import context

from neucrowd_tf.declare.types import KerasOptimizer, Layer, Network, Tensor

_DECAY = ("_exclude_from_weight_decay", "_exclude_from_weight_decay_pattern")
_LISTS = ("_trainable_variables", "_non_trainable_variables")


def layers_of(model: Network) -> list[Layer]:
    """Returns all layers within a model or a layer, at any depth, without itself."""
    return list(model._flatten_layers(include_self=False))


def own_variables(layer: Layer) -> list[Tensor]:
    """Returns the variables that a layer made itself, trainable ones first, as they were made."""
    return [variable for name in _LISTS for variable in getattr(layer, name, ())]


@contextlib.contextmanager
def global_seeds_stay() -> Iterator[None]:
    """Within, draws without a seed do not change the state of this thread's generator.

    The generator does not exist before the first such draw, or after
    `keras.utils.set_random_seed`.
    """
    name = seed_generator.GLOBAL_SEED_GENERATOR
    generator = global_state.get_global_attribute(name)
    state = None if generator is None else np.array(generator.state)
    try:
        yield
    finally:
        global_state.set_global_attribute(name, generator)
        if generator is not None:
            generator.state.assign(state)


def maker_of(tensor: Tensor) -> tuple[Layer, Tensor | None]:
    """Returns the layer that made a symbolic tensor, and its first input (None for an `Input`)."""
    history = tensor._keras_history
    inputs = history.operation._inbound_nodes[history.node_index].input_tensors
    return history.operation, inputs[0] if inputs else None


def learning_rate_of(optimizer: KerasOptimizer) -> Tensor | None:
    """Returns an optimizer's learning rate, a variable or a schedule; None if it has none."""
    return getattr(optimizer, "_learning_rate", None)


def trained_by(optimizer: KerasOptimizer) -> list[Tensor]:
    """Returns the variables that an optimizer was built for."""
    return optimizer._trainable_variables


def moments_of(adam: KerasOptimizer, variable: Tensor) -> tuple[Tensor, Tensor]:
    """Returns Adam's first and second moments of a variable."""
    index = adam._get_variable_index(variable)
    return adam._momentums[index], adam._velocities[index]


def clipped(optimizer: KerasOptimizer, gradients: list[Tensor]) -> list[Tensor]:
    """Returns gradients as an optimizer clips them."""
    return optimizer._clip_gradients(gradients)


def copy_decay(optimizer: KerasOptimizer, copy: KerasOptimizer) -> None:
    """Excludes the same variables from a copy's weight decay, which configurations do not have."""
    for name in _DECAY:
        if hasattr(optimizer, name):
            setattr(copy, name, getattr(optimizer, name))


def forget_first_epoch(model: Network) -> None:
    """Clears the first epoch that `BackupAndRestore` sets."""
    model._initial_epoch = None


def first_epoch(model: Network) -> int | None:
    """Returns the epoch that `BackupAndRestore` has set, or None."""
    return model._initial_epoch  # type: ignore[no-any-return]


def forget_swap(callback: keras.callbacks.SwapEMAWeights) -> None:
    """Makes a callback forget that weights are swapped, as an earlier fit's were."""
    callback._ema_weights_in_model = False


def clear_kernels() -> None:
    """Frees the kernels that TensorFlow keeps; those in use are rebuilt."""
    context.context().clear_kernel_cache()


def _names_in(cls: type) -> set[str]:
    """Returns the names that a class and its bases define or use in their methods."""
    names: set[str] = set()
    for base in cls.__mro__:
        names |= set(vars(base))
        for function in filter(inspect.isfunction, vars(base).values()):
            names |= set(function.__code__.co_names)
    return names


def _missing() -> list[str]:
    """Returns the names that this version does not have.

    It makes no variable, after which the number of TensorFlow's threads could not be set.
    """
    adam = keras.optimizers.Adam
    methods = {
        "_flatten_layers": keras.Model,
        "_clip_gradients": adam,
        "_get_variable_index": adam,
        "clear_kernel_cache": context.Context,
    }
    attributes = {
        keras.Model: {"_initial_epoch", *_LISTS},
        adam: {"_learning_rate", "_trainable_variables", "_momentums", "_velocities", *_DECAY},
        keras.callbacks.SwapEMAWeights: {"_ema_weights_in_model"},
    }
    missing = [name for name, cls in methods.items() if not hasattr(cls, name)]
    for cls, names in attributes.items():
        missing += sorted(names - _names_in(cls))
    try:
        maker_of(keras.Input((1,), name="probe"))
    except AttributeError as error:
        missing.append(str(error.name))
    return missing


if _absent := _missing():
    raise ImportError(
        f"Keras {keras.__version__} has no {', '.join(_absent)}, which neucrowd_tf uses. Install a"
        " version of Keras that it names in its requirements."
    )
