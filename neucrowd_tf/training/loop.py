"""The training loop, on one device and on the replicas of a strategy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import keras
import numpy as np

from neucrowd_tf.declare.types import NamedValues, Tensor
from neucrowd_tf.errors import UsageError
from neucrowd_tf.nn.keras_private import first_epoch, forget_first_epoch, forget_swap, trained_by
from neucrowd_tf.nn.steps import agreed, clips
from neucrowd_tf.training.checkpoints import Checkpoint, Stateful
from neucrowd_tf.training.early_stopping import History
from neucrowd_tf.training.learner import Epoch, Learner
from neucrowd_tf.training.owner import with_network
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.state import (
    averaged,
    averaging,
    learning_rates,
    note_starts,
    optimizers_of,
    read_variables,
    restored,
)

Evaluate = Callable[[], Mapping[str, float]]
StopWhen = Callable[[Mapping[str, list[float]]], bool]


def train(
    model: keras.Model | Learner,
    run_epoch: Epoch,
    *,
    epochs: int,
    run: Run,
    steps_per_epoch: int = 1,
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
    """Trains a model or several, or resumes a killed run; both end with the same bytes.

    It takes the place of `keras.Model.fit` for three reasons. `fit` fails on several machines if it
    takes several steps a call (keras#20585). Its backup callback leaves out what exact resume
    needs: the states of random generators, further optimizers, the pipeline's position and the best
    weights so far. And it makes a new pipeline in each call, which costs more than a small fit's
    epoch. Steps, metrics and callbacks are Keras' own.

    Args:
        model: a compiled Keras model, or a `Learner`.
        run_epoch: trains it for an epoch: `in_batches(model, ...)`, or `in_turns(function)`.
        epochs: how many to train.
        run: checkpoints, TensorBoard, progress, and further Keras callbacks.
        steps_per_epoch: batches an epoch, for a progress bar.
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
    with run.scope():
        note_starts(model)
    _check_optimizers(model, run)
    _check_callbacks(model, run, staged=monitor is not None or state is not None)
    run = with_network(run, model, optimizers_of(model))
    with restored(learning_rates(model)):
        checkpoint = Checkpoint(model, run, state)
        history = checkpoint.history
        if checkpoint.finished:
            return history

        def judge(values: Mapping[str, float]) -> bool:
            if monitor is None:
                return bool(averaging(model))
            return history.judge(values, monitor, tie_break, min_delta)

        def ended() -> bool:
            stopped = stop_when and history.epochs and stop_when(history.logs)
            return bool(stopped) or history.waited(patience)

        model.stop_training = ended()
        if history.epochs < epochs and not model.stop_training:
            hooks = _begin(model, run, epochs, steps_per_epoch)
            values = dict[str, float]()
            for epoch in range(first_epoch(model) or history.epochs, epochs):
                run.raise_if_stopped()
                noted = epoch_start and epoch_start(epoch)
                hooks.on_epoch_begin(epoch)
                logs = {**run_epoch(epoch, hooks), **(noted or {})}
                with averaged(model):
                    values = _figures(model, logs, evaluate, watch, run)
                    checkpoint.record(epoch, values)
                    if judge(values):
                        checkpoint.weights = read_variables(model.variables)
                model.stop_training = model.stop_training or ended()
                hooks.on_epoch_end(epoch, _with_loss(values))
                checkpoint.save_if_due()
                if model.stop_training:
                    break
            checkpoint.end()
            hooks.on_train_end({**values})
        checkpoint.end()
        _check_finite(model)
    checkpoint.finish()
    return history


def _with_loss(values: Mapping[str, float]) -> dict[str, float]:
    """Returns an epoch's figures, with the validation loss by the name that callbacks know."""
    if "val_log_loss" in values:
        return {"val_loss": values["val_log_loss"], **values}
    return {**values}


def _check_callbacks(model: keras.Model, run: Run, *, staged: bool) -> None:
    """Raises UsageError for callbacks that would go wrong without a word.

    Args:
        model: its optimizers are built.
        run: of this training loop.
        staged: whether there is more to keep than weights: a best epoch, or a `Stateful`.
    """
    kinds = keras.callbacks
    saves = getattr(type(model), "save", keras.Model.save) is not keras.Model.save
    no_save = not saves and not type(model).__module__.startswith("keras.")
    for callback in run.callbacks:
        problem = ""
        if isinstance(callback, kinds.BackupAndRestore):
            if staged or run.prefix or run.checkpoints:
                problem = (
                    "keeps one training loop without a best epoch, and this fit has more to keep."
                    " Leave it out and pass run=Run(checkpoints=FOLDER), where a killed fit goes"
                    " on."
                )
        elif isinstance(callback, kinds.ModelCheckpoint):
            if no_save and not callback.save_weights_only:
                problem = (
                    "cannot save this model, which holds its data. Pass save_weights_only=True with"
                    " a path in .weights.h5, or save the fitted estimator."
                )
        elif isinstance(callback, kinds.EarlyStopping):
            if callback.restore_best_weights and averaging(model):
                problem = (
                    "would restore weights that are not averaged (use_ema). Leave"
                    " restore_best_weights out and pass monitor= to the estimator."
                )
        elif isinstance(callback, kinds.SwapEMAWeights):
            if callback.swap_on_epoch and run.checkpoints:
                problem = "(swap_on_epoch=True) swaps weights that checkpoints hold. Leave it out."
            else:
                forget_swap(callback)  # an earlier fit's
        if problem:
            raise UsageError(f"callbacks: {type(callback).__name__} {problem}")


def _check_optimizers(model: keras.Model, run: Run) -> None:
    """Raises UsageError for optimizers that would go wrong without a word."""
    averages = averaging(model)
    trained = list(map(id, itertools.chain.from_iterable(map(trained_by, averages))))
    if len(trained) > len(set(trained)):
        raise UsageError("optimizer: use_ema: several optimizers train these weights. Leave it out")
    if run.strategy is None or run.strategy.num_replicas_in_sync == 1:
        return
    for optimizer in optimizers_of(model):
        has_inner = hasattr(optimizer, "inner_optimizer") or hasattr(optimizer, "optimizers")
        if has_inner or averages or (optimizer.gradient_accumulation_steps and clips(optimizer)):
            raise UsageError(
                f"optimizer: {type(optimizer).__name__}: loss scaling, several optimizers, use_ema"
                " and clipping of accumulated gradients work on one device only. Leave them out, or"
                " train without a strategy."
            )


def _begin(model: keras.Model, run: Run, epochs: int, steps: int) -> Tensor:
    """Returns the callbacks of a training loop that has begun."""
    forget_first_epoch(model)
    hooks = keras.callbacks.CallbackList(
        list(run.callbacks),
        add_progbar=run.verbose > 0,
        model=model,
        verbose=run.verbose,
        epochs=epochs,
        steps=steps,
    )
    hooks.on_train_begin()
    return hooks


def _check_finite(model: keras.Model, loss: float = 0.0) -> None:
    """Raises FloatingPointError for a loss or a weight that is not finite."""
    name = ""
    if not np.isfinite(loss):
        name = "the loss"
    else:
        trained = model.trainable_variables
        for variable, value in zip(trained, read_variables(trained), strict=True):
            if not np.isfinite(value).all():
                name = f"the weight {variable.path}"
                break
    if name:
        raise FloatingPointError(
            f"{name} is not finite. Lower the learning rate, or standardise the features."
        )


def judged(model: keras.Model, evaluate: Evaluate) -> NamedValues:
    """Returns the validation figures of a model.

    Raises:
        FloatingPointError: the model has diverged, so that it has none.
    """
    try:
        return evaluate()
    except (ArithmeticError, ValueError):
        _check_finite(model)  # the reason, if it is one; looking at each epoch takes longer
        raise


def _figures(
    model: keras.Model,
    logs: NamedValues,
    evaluate: Evaluate | None,
    watch: Evaluate | None,
    run: Run,
) -> dict[str, float]:
    """Returns an epoch's figures, which all processes agree on."""
    values = _floats(logs)
    if not np.isfinite(values.get("loss", 0.0)):
        _check_finite(model, values["loss"])
    if evaluate is not None:
        values |= _floats(judged(model, evaluate), "val_")
    if watch is not None:
        values |= _floats(watch())
    if run.workers > 1:
        return agreed(run.strategy, values)
    return values


def _floats(figures: NamedValues, prefix: str = "") -> dict[str, float]:
    """Returns figures as numbers, with a prefix before their names."""
    return {prefix + name: float(value) for name, value in figures.items()}
