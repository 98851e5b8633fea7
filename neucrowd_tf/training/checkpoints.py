"""A checkpoint: where a training run stands, in one file."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import keras
import tensorflow as tf

from neucrowd_tf.declare.types import Array
from neucrowd_tf.training.early_stopping import History
from neucrowd_tf.training.run import Run, warn_unusable
from neucrowd_tf.training.state import (
    fits,
    from_text,
    model_variables,
    pack,
    read_variables,
    to_text,
    unpack,
    write_variables,
)

CHECKPOINT = "train.npz"
_STATE = "state0/"  # precedes the names of a `Stateful`'s arrays


class Stateful(Protocol):
    """Whatever else a batch depends on; its arrays are part of each checkpoint."""

    def get_state(self) -> dict[str, Array]: ...

    def set_state(self, state: dict[str, Array]) -> None: ...


class Checkpoint:
    """Where a training run stands, and the file that holds it.

    Attributes:
        history: what was logged so far.
        weights: of the best epoch so far, or the latest averages of weights.
        finished: whether nothing is left to train.
    """

    def __init__(self, model: keras.Model, run: Run, state: Stateful | None) -> None:
        """Resumes from the checkpoint; if it cannot be used, there is a warning."""
        self.model = model
        self.run = run
        self.state = state
        self.history = History()
        self.finished = False
        self.weights: list[Array] = []
        self._saved = time.monotonic()
        if (arrays := run.saved(CHECKPOINT)) is not None:
            self._restore(arrays)

    def _restore(self, arrays: dict[str, Array]) -> None:
        variables = model_variables(self.model)
        values = unpack("variables", arrays)
        weights = unpack("best", arrays)
        record = from_text(arrays["record"])
        fitting = fits(variables, values) and (not weights or fits(self.model.variables, weights))
        if not fitting or set(record) != {"finished", *dataclasses.asdict(self.history)}:
            received = "another model's or another version's"
            return warn_unusable(Path(self.run.checkpoints or "", CHECKPOINT), received)
        self.finished = record.pop("finished")
        self.history = History(**record)
        self.weights = weights
        write_variables(variables, values)
        if self.state is not None:
            state = {}
            for name, array in arrays.items():
                if name.startswith(_STATE):
                    state[name.removeprefix(_STATE)] = array
            self.state.set_state(state)

    def record(self, epoch: int, values: Mapping[str, float]) -> None:
        """Appends an epoch's values to the logs and to TensorBoard."""
        for name, value in values.items():
            self.history.logs.setdefault(name, []).append(value)
        scalars = {**values}
        # A `MultiOptimizer` has several.
        rate = getattr(self.model.optimizer, "learning_rate", None)
        if rate is not None and self.run.tensorboard is not None:
            scalars["learning_rate"] = float(tf.convert_to_tensor(rate))
        self.run.scalars(epoch, scalars)

    def save_if_due(self) -> None:
        """Saves if the last checkpoint is `run.checkpoint_seconds` old."""
        if time.monotonic() - self._saved >= self.run.checkpoint_seconds:
            self.save()

    def end(self) -> None:
        """Gives the model the weights that training ends with."""
        if self.weights:
            write_variables(self.model.variables, self.weights)

    def finish(self) -> None:
        """Marks the run as finished; the best weights are the model's by now."""
        self.finished = True
        self.weights = []
        self.save()

    def save(self) -> None:
        """Writes the whole state as one file."""
        if self.run.checkpoints is None or not self.run.first_worker:
            return
        record = {**dataclasses.asdict(self.history), "finished": self.finished}
        arrays = pack("variables", read_variables(model_variables(self.model)))
        arrays |= pack("best", self.weights) | {"record": to_text(record)}
        if self.state is not None:
            for name, array in self.state.get_state().items():
                arrays[_STATE + name] = array
        self.run.save(CHECKPOINT, arrays)
        self._saved = time.monotonic()
