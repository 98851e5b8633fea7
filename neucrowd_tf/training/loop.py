"""The one training loop, for one device and for the replicas of a strategy: a stateless pipeline,
validation, best epoch, checkpoints and exact resume.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import keras
import numpy as np

from neucrowd_tf.training.network_cache import free_earlier
from neucrowd_tf.training.run import Run, warn_damaged
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
from neucrowd_tf.training.steps import agreed, compiled_steps
from neucrowd_tf.training.validation import BestEpoch

if TYPE_CHECKING:
    from numpy.typing import NDArray

Evaluate = Callable[[], Mapping[str, float]]
StopWhen = Callable[[Mapping[str, list[float]]], bool]
CHECKPOINT = "train.npz"


class Stateful(Protocol):
    """Whatever else a batch depends on; its arrays are part of each checkpoint."""

    def get_state(self) -> dict[str, NDArray[Any]]: ...

    def set_state(self, state: dict[str, NDArray[Any]]) -> None: ...


@dataclasses.dataclass
class History:
    """What a training run leaves: `logs[name]` has a value an epoch; `best_epoch` counts from 0
    (None without a monitor).
    """

    logs: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    best_epoch: int | None = None
    best_value: float | None = None
    best_tie: float | None = None

    @property
    def epochs(self) -> int:
        """How many epochs were trained."""
        return max((len(values) for values in self.logs.values()), default=0)


class _Epochs(keras.callbacks.Callback):
    """Validates, keeps the best epoch, writes TensorBoard scalars and checkpoints at the end of
    each epoch.
    """

    def __init__(
        self,
        run: Run,
        evaluate: Evaluate | None,
        monitor: str | None,
        tie_break: str | None,
        best: BestEpoch,
        epoch_start: Callable[[int], Mapping[str, float] | None] | None,
        state: Sequence[Stateful],
        stop_when: StopWhen | None,
    ) -> None:
        super().__init__()
        self.run, self.evaluate, self.monitor, self.tie_break = run, evaluate, monitor, tie_break
        self.epoch_start, self.state, self.stop_when = epoch_start, state, stop_when
        self.best = best
        self.logs: dict[str, list[float]] = {}
        self.next_epoch, self.finished = 0, False
        self._extra: Mapping[str, float] = {}
        self._saved = time.monotonic()

    @property
    def history(self) -> History:
        """What was logged so far, and the best epoch."""
        return History(self.logs, self.best.epoch, self.best.value, self.best.tie)

    # -- checkpoints
    def load(self, model: keras.Model, variables: list[Any]) -> None:
        """Goes on from the checkpoint, or the one before it where that is damaged or another run's,
        or afresh; each gives the same bytes. Such a one is told of.
        """
        if self.run.checkpoints is None:
            return
        before = [part.get_state() for part in self.state]
        for path, arrays in self.run.saved(CHECKPOINT):
            try:
                return self._restore(arrays, model, variables)
            except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
                for part, state in zip(self.state, before, strict=True):
                    part.set_state(state)
                self.best.epoch, self.best.weights, self.logs = None, [], {}
                self.best.value = self.best.tie = None
                self.next_epoch, self.finished = 0, False
                warn_damaged(path, f"another model's ({' '.join(str(error).split())[:100]})")

    def _restore(
        self, arrays: dict[str, NDArray[Any]], model: keras.Model, variables: list[Any]
    ) -> None:
        """Takes a checkpoint's arrays; the model is changed last, when all else fitted."""
        record = from_text(arrays["record"])
        values, weights = unpack("variables", arrays), unpack("best", arrays)
        if not fits(variables, values) or (weights and not fits(model.variables, weights)):
            raise ValueError("other shapes")
        best = self.best
        self.next_epoch, self.finished = int(record["next_epoch"]), bool(record["finished"])
        self.logs = {str(name): list(logs) for name, logs in record["logs"].items()}
        for index, part in enumerate(self.state):
            head = f"state{index}/"
            part.set_state(
                {
                    key.removeprefix(head): value
                    for key, value in arrays.items()
                    if key.startswith(head)
                }
            )
        best.epoch, best.value, best.tie = (
            record[name] for name in ("best_epoch", "best_value", "best_tie")
        )
        best.weights = weights
        write_variables(variables, values)

    def save(self) -> None:
        """Writes the whole state as one file."""
        if self.run.checkpoints is None or not self.run.first_worker:
            return
        record = {
            **dataclasses.asdict(self.history),
            "next_epoch": self.next_epoch,
            "finished": self.finished,
        }
        arrays = (
            pack("variables", read_variables(model_variables(self.model)))
            | pack("best", self.best.weights)
            | {"record": to_text(record)}
        )
        for index, part in enumerate(self.state):
            arrays |= {f"state{index}/{key}": value for key, value in part.get_state().items()}
        self.run.save(CHECKPOINT, arrays)
        self._saved = time.monotonic()

    # -- Keras' hooks
    def on_epoch_begin(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        self.run.go_on()
        self._extra = (self.epoch_start(epoch) if self.epoch_start is not None else None) or {}

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        values = {
            name: float(np.asarray(value))
            for name, value in {**(logs or {}), **self._extra}.items()
        }
        if not np.isfinite(values.get("loss", 0.0)):
            raise FloatingPointError(
                f"the loss of epoch {epoch + 1} is not finite: lower the learning rate or"
                " standardise the features"
            )
        if self.evaluate is not None:
            values |= {f"val_{name}": float(value) for name, value in self.evaluate().items()}
        if self.run.workers > 1:
            values = agreed(self.run.strategy, values)
        for name, value in values.items():
            self.logs.setdefault(name, []).append(value)
        self.run.scalars(epoch, values)
        self.next_epoch = epoch + 1
        if self.monitor is not None:
            tie = values[f"val_{self.tie_break}"] if self.tie_break else 0.0
            better = self.best.offer(
                epoch,
                values[f"val_{self.monitor}"],
                lambda: read_variables(self.model.variables),
                tie,
            )
            if not better and epoch >= self.best.first and self.best.waited(epoch):
                self.model.stop_training = True
        if self.stop_when is not None and self.stop_when(self.logs):
            self.model.stop_training = True
        if (
            self.run.checkpoints is not None
            and time.monotonic() - self._saved >= self.run.checkpoint_seconds
        ):
            self.save()


def train(
    model: keras.Model,
    batches: Callable[[int], Any],
    *,
    epochs: int,
    steps_per_epoch: int,
    run: Run,
    evaluate: Evaluate | None = None,
    monitor: str | None = None,
    mode: str = "max",
    tie_break: str | None = None,
    patience: int | None = None,
    min_epochs: int = 1,
    epoch_start: Callable[[int], Mapping[str, float] | None] | None = None,
    state: Sequence[Stateful] = (),
    stop_when: StopWhen | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> History:
    """Trains a compiled model, or goes on where a killed run stopped; the result is the same bit
    for bit.

    Args:
        model: compiled; `compile(steps_per_execution=...)` takes several steps a call.
        batches: `batches(first_step)` returns a `tf.data.Dataset` whose elements are functions of
            (seed, step) alone, from that step on and for at least the steps that are left.
        epochs, steps_per_epoch: how long to train.
        run: checkpoints, TensorBoard, progress.
        evaluate: called after each epoch; its values are logged as `val_<name>`.
        monitor: the name (as `evaluate` gives it) that chooses the best epoch, whose weights are
            restored at the end.
        mode: "max" or "min".
        tie_break: another name, lower being better, that decides between epochs with equal
            monitored values (an AUC of 1 is soon reached on easy data); without it the first one
            counts.
        patience: stop after so many epochs without a better one.
        min_epochs: earlier epochs are never the best.
        epoch_start: called with the epoch before it begins; may set variables of the model; what it
            returns is logged.
        state: further objects whose arrays belong to a checkpoint.
        stop_when: called with the logs so far after each epoch; True ends training. It depends on
            nothing else, so that a resumed run agrees with an unbroken one.
        callbacks: more Keras callbacks.

    Returns:
        The history over all epochs, those before a resume included.

    Raises:
        FloatingPointError: the loss is not finite.
    """
    if getattr(model, "_compiled_steps", None) is None:  # a new one
        free_earlier()
    if not model.optimizer.built:
        with run.scope():
            model.optimizer.build(model.trainable_variables)
    variables = model_variables(model)
    best = BestEpoch(mode, patience, first=min_epochs - 1)
    loop = _Epochs(run, evaluate, monitor, tie_break, best, epoch_start, state, stop_when)
    loop.load(model, variables)
    if not loop.finished and loop.next_epoch < epochs:
        model.stop_training = False
        stopped = best.waited(loop.next_epoch - 1) or (
            stop_when is not None and loop.next_epoch > 0 and stop_when(loop.logs)
        )
        if not stopped:
            iterator = iter(batches(loop.next_epoch * steps_per_epoch))
            hooks = keras.callbacks.CallbackList(
                [loop, *callbacks],
                add_progbar=run.verbose > 0,
                model=model,
                verbose=run.verbose,
                epochs=epochs,
                steps=steps_per_epoch,
            )
            _epochs(model, iterator, hooks, range(loop.next_epoch, epochs), steps_per_epoch, run)
    if not loop.finished:
        loop.set_model(model)
        if monitor is not None and best.weights:
            write_variables(model.variables, best.weights)
        loop.finished = True
        best.weights = []
        loop.save()
    return loop.history


def _epochs(
    model: keras.Model,
    iterator: Iterator[Any],
    hooks: keras.callbacks.CallbackList,
    epochs: range,
    steps_per_epoch: int,
    run: Run,
) -> None:
    """Trains for some epochs, `model.steps_per_execution` steps a call. `model.fit` would do it for
    one machine, but not for several (keras#20585).
    """
    take = compiled_steps(model, run.strategy)
    hooks.on_train_begin()
    logs: dict[str, float] = {}
    for epoch in epochs:
        model.reset_metrics()
        hooks.on_epoch_begin(epoch)
        for step in range(0, steps_per_epoch, model.steps_per_execution):
            count = min(model.steps_per_execution, steps_per_epoch - step)
            hooks.on_train_batch_begin(step)
            logs = take(iterator, count)
            hooks.on_train_batch_end(step + count - 1, logs)
        hooks.on_epoch_end(epoch, logs)
        if model.stop_training:
            break
    hooks.on_train_end(logs)
