"""What `train` trains: a Keras model in batches, or networks that learn in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import keras
import tensorflow as tf

from neucrowd_tf.declare.types import Array, Layer, NamedValues, Network, Tensor
from neucrowd_tf.nn.keras_private import layers_of
from neucrowd_tf.training.compiled_steps import compiled_steps, free_earlier
from neucrowd_tf.training.run import Run

# Runs an epoch by its number, with calls of Keras' callbacks, and returns its figures.
Epoch = Callable[[int, keras.callbacks.CallbackList], NamedValues]


class Learner:
    """Networks that train together, each with an optimizer of its own.

    It has as much of a Keras model as `train` and callbacks need. A subclass sets its optimizers as
    attributes and says which networks it has.

    Attributes:
        optimizer: the one whose learning rate is logged.
        stop_training: callbacks set it.
    """

    optimizer: keras.optimizers.Optimizer
    stop_training: bool = False

    def __init__(self) -> None:
        free_earlier()

    @property
    def networks(self) -> Sequence[Network | Layer]:
        """The networks, in the order in which a seed draws their weights."""
        raise NotImplementedError

    @property
    def layers(self) -> list[Layer]:
        """The networks and their layers, each once."""
        return layers_of(self._together())

    @property
    def variables(self) -> list[Tensor]:
        """All weights and states of random generators."""
        return self._together().variables

    @property
    def trainable_variables(self) -> list[Tensor]:
        """The weights that are trained."""
        return self._together().trainable_variables

    def get_weights(self) -> list[Array]:
        """Returns the values of all variables, for callbacks."""
        return self._together().get_weights()

    def set_weights(self, weights: Sequence[Array]) -> None:
        """Sets the values of all variables, for callbacks."""
        self._together().set_weights(weights)

    def save_weights(self, filepath: str, overwrite: bool = True) -> None:
        """Saves all variables, for callbacks."""
        self._together().save_weights(filepath, overwrite=overwrite)

    def _together(self) -> keras.Model:
        """Returns a Keras model that has the networks as its layers, in their order."""
        whole = keras.Model(name="networks")
        for index, network in enumerate(self.networks):
            setattr(whole, f"network_{index}", network)
        whole.built = True
        return whole


def in_turns(play: Callable[[int], NamedValues]) -> Epoch:
    """Returns the epoch of networks that learn in turns: to callbacks it is one batch."""

    def epoch(number: int, hooks: keras.callbacks.CallbackList) -> NamedValues:
        hooks.on_train_batch_begin(0)
        logs = play(number)
        hooks.on_train_batch_end(0, logs)
        return logs

    return epoch


def in_batches(
    model: keras.Model, batches: Callable[[int], Iterable[Tensor]], steps: int, run: Run
) -> Epoch:
    """Returns the epoch of a compiled Keras model: its training steps.

    Args:
        model: `compile(steps_per_execution=...)` takes several steps a call.
        batches: `batches(first_step)` returns a `tf.data.Dataset` whose elements are functions of
            (seed, step) alone, from that step on and for at least the steps that are left.
        steps: of an epoch, or fewer if a callback ends training.
        run: its strategy shares steps among devices.
    """
    iterators: list[Iterator[Tensor]] = []
    if getattr(model, "_compiled_steps", None) is None:  # a new one
        free_earlier()

    def epoch(number: int, hooks: keras.callbacks.CallbackList) -> NamedValues:
        if not iterators:
            iterators.append(iter(batches(number * steps)))
        model.reset_metrics()
        take = compiled_steps(model, run.strategy)
        at_once = model.steps_per_execution
        logs: NamedValues = {}
        for step in range(0, steps, at_once):
            count = min(at_once, steps - step)
            hooks.on_train_batch_begin(step)
            logs = take(iterators[0], tf.constant(count))
            hooks.on_train_batch_end(step + count - 1, logs)
            if model.stop_training:
                break
        return logs

    return epoch
