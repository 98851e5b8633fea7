"""The training loop, on one device and on the replicas of a strategy."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.python.eager import context

from neucrowd_tf.errors import UsageError
from neucrowd_tf.nn.steps import agreed, clips
from neucrowd_tf.training.run import Run, warn_unusable
from neucrowd_tf.training.state import (
    averaged,
    averaging,
    fits,
    from_text,
    learning_rates,
    model_variables,
    note_starts,
    optimizers_of,
    pack,
    read_variables,
    restored,
    to_text,
    unpack,
    write_variables,
)

Evaluate = Callable[[], Mapping[str, float]]
StopWhen = Callable[[Mapping[str, list[float]]], bool]
Steps = Callable[[Iterator[Any], Any], Mapping[str, Any]]
CHECKPOINT = "train.npz"
_STATE = "state0/"  # precedes the names of a `Stateful`'s arrays


class Stateful(Protocol):
    """Whatever else a batch depends on; its arrays are part of each checkpoint."""

    def get_state(self) -> dict[str, NDArray[Any]]: ...

    def set_state(self, state: dict[str, NDArray[Any]]) -> None: ...


@dataclasses.dataclass
class History:
    """The logs of a training run and its best epoch.

    Attributes:
        logs: by name, a value for each epoch.
        best_epoch: from 0; None without a monitor.
        best_value, best_tie: the best epoch's monitored value (minus it, if the least is best), and
            what decided between equals.
    """

    logs: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    best_epoch: int | None = None
    best_value: float = -math.inf
    best_tie: float = 0.0

    @property
    def epochs(self) -> int:
        """How many epochs were trained."""
        return max((len(values) for values in self.logs.values()), default=0)

    def offer(self, value: float, tie: float = 0.0, min_delta: float = 0.0) -> bool:
        """Makes the latest epoch the best one if it is better; returns whether it is.

        Args:
            value: the greater, the better.
            tie: decides between equal values, the lower being better; the first epoch wins if this
                is equal too.
            min_delta: by how much more than this a better epoch has to be better.
        """
        # What is better by less than `min_delta` is never better, whatever decides between equals.
        if not (value - min_delta, -tie) > (self.best_value, -self.best_tie):
            return False
        self.best_epoch, self.best_value, self.best_tie = self.epochs - 1, value, tie
        return True

    def judge(
        self, values: Mapping[str, float], monitor: str, tie_break: str | None, min_delta: float
    ) -> bool:
        """Offers the latest epoch by the figures that `train` names; returns whether it is best."""
        held_out = f"val_{monitor}"
        value = values[held_out if held_out in values else monitor]
        tie = values[f"val_{tie_break}"] if tie_break else 0.0
        sign = -1.0 if monitor in ("loss", "log_loss") else 1.0
        return self.offer(sign * value, tie, min_delta)

    def waited(self, patience: int | None) -> bool:
        """Returns whether so many epochs have passed without a better one."""
        if patience is None or self.best_epoch is None:
            return False
        return self.epochs - 1 - self.best_epoch >= patience


def train(
    model: keras.Model,
    batches: Callable[[int], Any],
    *,
    epochs: int,
    steps_per_epoch: int,
    run: Run,
    evaluate: Evaluate | None = None,
    watch: Evaluate | None = None,
    monitor: str | None = None,
    tie_break: str | None = None,
    patience: int | None = None,
    min_delta: float = 0.0,
    epoch_start: Callable[[int], Mapping[str, float] | None] | None = None,
    state: Stateful | None = None,
    stop_when: StopWhen | None = None,
) -> History:
    """Trains a compiled model, or resumes a killed run; both end with the same bytes.

    It takes the place of `keras.Model.fit` for three reasons. `fit` fails on several machines if it
    takes several steps a call (keras#20585). Its backup callback leaves out what exact resume
    needs: the states of random generators, further optimizers, the pipeline's position and the best
    weights so far. And it makes a new pipeline in each call, which costs more than a small fit's
    epoch. Steps, metrics and callbacks are Keras' own.

    Args:
        model: compiled; `compile(steps_per_execution=...)` takes several steps a call.
        batches: `batches(first_step)` returns a `tf.data.Dataset` whose elements are functions of
            (seed, step) alone, from that step on and for at least the steps that are left.
        epochs: how many to train.
        steps_per_epoch: batches an epoch.
        run: checkpoints, TensorBoard, progress, and further Keras callbacks.
        evaluate: called after each epoch; its values are logged as `val_<name>`.
        watch: called after each epoch; its values are of training data and keep their names.
        monitor: the name (as `evaluate` gives it, or "loss" of training) that chooses the best
            epoch, whose weights are restored at the end. The least loss or log loss is best, and
            the most of other figures.
        tie_break: another name, lower being better, that decides between epochs with equal
            monitored values (an AUC of 1 is soon reached on easy data); without it the first one
            counts.
        patience: stop after so many epochs without a better one.
        min_delta: by how much a better epoch has to be better.
        epoch_start: called with the epoch before it begins; may set variables of the model; what it
            returns is logged.
        state: further objects whose arrays belong to a checkpoint.
        stop_when: called with the logs so far after each epoch; True ends training. It depends on
            nothing else, so that a resumed run agrees with an unbroken one.

    Where an optimizer keeps moving averages of weights (`use_ema`), epochs are judged with them and
    training ends with them. A learning rate that a callback changed is as before afterwards.

    Returns:
        The history over all epochs, those before a resume included.

    Raises:
        FloatingPointError: the loss or a weight is not finite.
        UsageError: a callback or an optimizer that cannot do here what it does in `fit`.
    """
    if getattr(model, "_compiled_steps", None) is None:  # a new one
        free_earlier()
    with run.scope():
        note_starts(model)
    _check(model, run, staged=monitor is not None or state is not None)
    with restored(learning_rates(model)):
        checkpoint = _Checkpoint(model, run, state)
        history = checkpoint.history
        if checkpoint.finished:
            return history

        def ended() -> bool:
            stopped = stop_when and history.epochs and stop_when(history.logs)
            return bool(stopped) or history.waited(patience)

        first, model.stop_training = history.epochs, ended()
        if first < epochs and not model.stop_training:
            hooks = _begin(model, run, epochs, steps_per_epoch)
            first, values = model._initial_epoch or first, dict[str, float]()
            iterator = iter(batches(first * steps_per_epoch))
            chosen = (monitor or "", tie_break, min_delta)
            for epoch in range(first, epochs):
                run.raise_if_stopped()
                model.reset_metrics()
                extra = (epoch_start(epoch) if epoch_start is not None else None) or {}
                hooks.on_epoch_begin(epoch)
                logs = _steps(model, iterator, steps_per_epoch, run, hooks)
                with averaged(model):
                    values = _figures(model, {**logs, **extra}, evaluate, watch, run)
                    checkpoint.record(epoch, values)
                    if history.judge(values, *chosen) if monitor is not None else averaging(model):
                        checkpoint.weights = read_variables(model.variables)
                model.stop_training = model.stop_training or ended()
                loss = {"val_loss": values["val_log_loss"]} if "val_log_loss" in values else {}
                hooks.on_epoch_end(epoch, {**loss, **values})
                checkpoint.save_if_due()
                if model.stop_training:
                    break
            checkpoint.end()
            hooks.on_train_end({**values})
        checkpoint.end()
        _check_finite(model)
    checkpoint.finish()
    return history


def _check(model: keras.Model, run: Run, *, staged: bool) -> None:
    """Raises UsageError for callbacks and optimizers that would go wrong without a word.

    Args:
        model: its optimizers are built.
        run: of this training loop.
        staged: whether there is more to keep than weights: a best epoch, or a `Stateful`.
    """
    averages, have = averaging(model), keras.callbacks
    no_save = type(model).save is keras.Model.save and not model.__module__.startswith("keras.")
    for each in run.callbacks:
        if isinstance(each, have.BackupAndRestore) and (staged or run.prefix or run.checkpoints):
            problem = (
                "keeps one training loop without a best epoch, and this fit has more to keep. Leave"
                " it out and pass run=Run(checkpoints=FOLDER), where a killed fit goes on."
            )
        elif isinstance(each, have.ModelCheckpoint) and no_save and not each.save_weights_only:
            problem = (
                "cannot save this model, which holds its data. Pass save_weights_only=True with a"
                " path in .weights.h5, or save the fitted estimator."
            )
        elif isinstance(each, have.EarlyStopping) and each.restore_best_weights and averages:
            problem = (
                "would restore weights that are not averaged (use_ema). Leave restore_best_weights"
                " out and pass monitor= to the estimator."
            )
        elif isinstance(each, have.SwapEMAWeights) and each.swap_on_epoch and run.checkpoints:
            problem = "(swap_on_epoch=True) swaps weights that checkpoints hold. Leave it out."
        else:
            if isinstance(each, have.SwapEMAWeights):
                each._ema_weights_in_model = False  # an earlier fit's
            continue
        raise UsageError(f"callbacks: {type(each).__name__} {problem}")
    trained = [id(variable) for each in averages for variable in each._trainable_variables]
    if len(trained) > len(set(trained)):
        raise UsageError("optimizer: use_ema: several optimizers train these weights. Leave it out")
    for each in optimizers_of(model) if run.strategy is not None else ():
        inner = hasattr(each, "inner_optimizer") or hasattr(each, "optimizers")
        clipped = each.gradient_accumulation_steps and clips(each)
        if run.strategy.num_replicas_in_sync > 1 and (inner or averages or clipped):
            raise UsageError(
                f"optimizer: {type(each).__name__}: loss scaling, several optimizers, use_ema and"
                " clipping of accumulated gradients work on one device only. Leave them out, or"
                " train without a strategy."
            )


def _begin(model: keras.Model, run: Run, epochs: int, steps: int) -> Any:
    """Returns the callbacks of a training loop that has begun."""
    model._initial_epoch = None  # `BackupAndRestore` sets it
    verbose = run.verbose
    hooks = keras.callbacks.CallbackList(
        list(run.callbacks), add_progbar=verbose > 0, model=model, verbose=verbose, epochs=epochs,
        steps=steps,
    )  # fmt: skip
    hooks.on_train_begin()
    return hooks


def _steps(
    model: keras.Model, iterator: Iterator[Any], steps: int, run: Run, hooks: Any
) -> Mapping[str, Any]:
    """Takes an epoch's steps, or those before a callback ends training; returns the last logs."""
    take, at_once = compiled_steps(model, run.strategy), model.steps_per_execution
    logs: Mapping[str, Any] = {}
    for step in range(0, steps, at_once):
        count = min(at_once, steps - step)
        hooks.on_train_batch_begin(step)
        logs = take(iterator, tf.constant(count))
        hooks.on_train_batch_end(step + count - 1, logs)
        if model.stop_training:
            break
    return logs


def _check_finite(model: keras.Model, loss: float = 0.0) -> None:
    """Raises FloatingPointError for a loss or a weight that is not finite."""
    names = ["the loss"] if not np.isfinite(loss) else []
    names += [
        f"the weight {variable.path}"
        for variable, value in zip(
            model.trainable_variables, read_variables(model.trainable_variables), strict=True
        )
        if not np.isfinite(value).all()
    ]
    if names:
        raise FloatingPointError(
            f"{names[0]} is not finite. Lower the learning rate, or standardise the features."
        )


def _figures(
    model: keras.Model,
    logs: Mapping[str, Any],
    evaluate: Evaluate | None,
    watch: Evaluate | None,
    run: Run,
) -> dict[str, float]:
    """Returns an epoch's figures, which all processes agree on."""
    values = {name: float(value) for name, value in logs.items()}
    if evaluate is not None or not np.isfinite(values.get("loss", 0.0)):
        _check_finite(model, values.get("loss", 0.0))
    if evaluate is not None:
        values |= {f"val_{name}": float(value) for name, value in evaluate().items()}
    if watch is not None:
        values |= {name: float(value) for name, value in watch().items()}
    return agreed(run.strategy, values) if run.workers > 1 else values


class _Checkpoint:
    """Where a training run stands, and the file that holds it.

    Attributes:
        history: what was logged so far.
        weights: of the best epoch so far, or the latest averages of weights.
        finished: whether nothing is left to train.
    """

    def __init__(self, model: keras.Model, run: Run, state: Stateful | None) -> None:
        """Resumes from the checkpoint; if it cannot be used, there is a warning."""
        self.model, self.run, self.state = model, run, state
        self.history, self.finished = History(), False
        self.weights: list[NDArray[Any]] = []
        self._saved = time.monotonic()
        if (arrays := run.saved(CHECKPOINT)) is not None:
            self._restore(arrays)

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        variables = model_variables(self.model)
        values, weights = unpack("variables", arrays), unpack("best", arrays)
        record = from_text(arrays["record"])
        fitting = fits(variables, values) and (not weights or fits(self.model.variables, weights))
        if not fitting or set(record) != {"finished", *dataclasses.asdict(self.history)}:
            received = "another model's or another version's"
            return warn_unusable(Path(self.run.checkpoints or "", CHECKPOINT), received)
        self.finished, self.history = record.pop("finished"), History(**record)
        self.weights = weights
        write_variables(variables, values)
        if self.state is not None:
            names = [name for name in arrays if name.startswith(_STATE)]
            self.state.set_state({name.removeprefix(_STATE): arrays[name] for name in names})

    def record(self, epoch: int, values: Mapping[str, float]) -> None:
        """Appends an epoch's values to the logs and to TensorBoard."""
        for name, value in values.items():
            self.history.logs.setdefault(name, []).append(value)
        rates = {}
        if hasattr(self.model.optimizer, "learning_rate"):  # a `MultiOptimizer` has several
            rates["learning_rate"] = float(tf.convert_to_tensor(self.model.optimizer.learning_rate))
        self.run.scalars(epoch, {**values, **rates})

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
        self.finished, self.weights = True, []
        self.save()

    def save(self) -> None:
        """Writes the whole state as one file."""
        if self.run.checkpoints is None or not self.run.first_worker:
            return
        record = {**dataclasses.asdict(self.history), "finished": self.finished}
        arrays = pack("variables", read_variables(model_variables(self.model)))
        arrays |= pack("best", self.weights) | {"record": to_text(record)}
        if self.state is not None:
            arrays |= {_STATE + name: value for name, value in self.state.get_state().items()}
        self.run.save(CHECKPOINT, arrays)
        self._saved = time.monotonic()


_EACH = 4
_networks = itertools.count(1)


def free_earlier() -> None:
    """Frees what networks left that nothing refers to any more, as a new one is made.

    TensorFlow keeps a kernel of 36 kB for each variable's name and each function's, for as long as
    the process lives; those in use are rebuilt. The networks themselves are circles of
    references of 2 to 10 MB, which wait for Python's collector. It counts objects, of which
    TensorFlow has so many that it comes once in ten or twenty networks: so after each fourth one.
    """
    number = next(_networks)
    if number > 1 and number % _EACH == 1:
        gc.collect()
    context.context().clear_kernel_cache()


def compiled_steps(model: keras.Model, strategy: Any = None) -> Steps:
    """Returns `take(iterator, count)`, which makes `count` training steps.

    It returns the last step's logs, and is compiled once for as long as the model's compilation
    lasts.
    """
    steps: Steps | None = getattr(model, "_compiled_steps", None)
    # `compile` forgets the function of Keras' own loop, whose place this one takes.
    if steps is None or steps is not model.train_function:
        steps = _one_device(model) if strategy is None else _replicas(model, strategy)
        model.train_function = model._compiled_steps = steps
    return steps


def _one_device(model: keras.Model) -> Steps:
    if model.run_eagerly:  # its parts are compiled

        def eagerly(iterator: Iterator[Any], count: Any) -> Mapping[str, Any]:
            for _ in range(int(count)):
                logs = model.train_step(next(iterator))
            return logs  # type: ignore[no-any-return]

        return eagerly

    # AutoGraph would convert all that a step calls, which takes longer than tracing it.
    step = tf.function(
        model.train_step, autograph=False, reduce_retracing=True, jit_compile=model.jit_compile
    )
    if model.steps_per_execution == 1:  # a loop would be traced for nothing
        return lambda iterator, _: step(next(iterator))

    @tf.function(autograph=False, reduce_retracing=True)
    def several(iterator: Any, count: Any) -> Any:
        # Called at one place, as TensorFlow optimises the step's graph once for each.
        traced = step.get_concrete_function(iterator.element_spec)
        start = tf.nest.map_structure(
            lambda value: tf.zeros(value.shape, value.dtype), traced.structured_outputs
        )
        return tf.while_loop(
            lambda number, _: number < count,
            lambda number, _: (number + 1, traced(next(iterator))),
            (tf.constant(0), start),
            parallel_iterations=1,
        )[1]

    return several  # type: ignore[no-any-return]


def _replicas(model: keras.Model, strategy: Any) -> Steps:
    # A loop inside the function would hold collective operations, which TensorFlow cannot run.
    @tf.function(autograph=False, reduce_retracing=True)
    def step(data: Any) -> Any:
        return strategy.run(model.train_step, args=(data,))

    def several(iterator: Iterator[Any], count: Any) -> Mapping[str, Any]:
        logs = {}
        for _ in range(int(count)):
            logs = step(next(iterator))
        return {
            name: strategy.reduce(tf.distribute.ReduceOp.MEAN, value, axis=None)
            for name, value in sorted(logs.items())
        }

    return several
