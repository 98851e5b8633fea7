"""What a fit trains after DL-CL, in which order, and which epoch of the game is kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.validation import consensus_labels, hold_out

if TYPE_CHECKING:
    import keras

    from neucrowd_tf.crowding.crowd import Counter
    from neucrowd_tf.crowding.networks import Networks


@dataclasses.dataclass(frozen=True)
class Game:
    """How a game went.

    Attributes:
        history: a list for each logged value, one entry an epoch.
        start: the start's validation figures, or None without validation data.
        n_iter: epochs played.
        best_epoch: the one that was kept, None where it is the start.
        collapsed: whether the guard stopped it.
        information: see `discriminative.information`, before and after; empty where not asked for.
    """

    history: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    start: dict[str, float] | None = None
    n_iter: int = 0
    best_epoch: int | None = None
    collapsed: bool = False
    information: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)


def play(
    networks: Networks,
    *,
    generator_epochs: int,
    discriminator_passes: int,
    epochs: int,
    evaluate: Callable[[], dict[str, float]] | None,
    monitor: str,
    collapse_drop: float,
    run: Run,
    measured: bool = False,
) -> Game:
    """Pre-trains generator and discriminative module, and plays the game; the networks end at the
    best epoch, or where the game started if none was better.

    Args:
        networks: restarted.
        generator_epochs, discriminator_passes, epochs: of the two pre-trainings and the game.
        evaluate: returns validation figures, or None without validation data.
        monitor: the figure that chooses the epoch.
        collapse_drop: see `collapsed`.
        run: of the fit.
        measured: whether information is told before and after the game.

    References:
        CrowdInG, section 3.3.3.
    """
    from neucrowd_tf.training.loop import train
    from neucrowd_tf.training.state import reset_optimizer

    for name, model, length in (
        ("generator", networks.generator_pretraining, generator_epochs),
        ("discriminator", networks.discriminative_pretraining, discriminator_passes),
    ):
        train(model, networks.counter, epochs=length, steps_per_epoch=1, run=run.stage(name))
    reset_optimizer(networks.game.optimizer)  # every network begins the game with a fresh one
    found = {}

    def measure(when: str) -> None:
        if measured:
            from neucrowd_tf.crowding.discriminative import information

            found[when] = information(networks.game.generative, networks.game.discriminative)

    measure("before")
    game = best_of(
        networks.game,
        networks.counter,
        epochs=epochs,
        evaluate=evaluate,
        monitor=monitor,
        collapse_drop=collapse_drop,
        run=run.stage("game"),
    )
    measure("after")
    return dataclasses.replace(game, information=found)


def best_of(
    model: keras.Model,
    counter: Counter,
    *,
    epochs: int,
    evaluate: Callable[[], dict[str, float]] | None,
    monitor: str,
    collapse_drop: float,
    run: Run,
) -> Game:
    """Trains a model whose step is an epoch, and leaves it at its best epoch, or where it started
    if none was better.

    Args:
        model: compiled; logs "predicted_class_entropy".
        counter: the pipeline of epoch numbers.
        epochs, evaluate, monitor, collapse_drop: see `play`.
        run: of these epochs.
    """
    from neucrowd_tf.training.loop import train
    from neucrowd_tf.training.state import read_variables, write_variables

    before = read_variables(model.variables)
    start = None if evaluate is None else evaluate()

    def stop_when(logs: Mapping[str, list[float]]) -> bool:
        return collapsed(logs, start, collapse_drop)

    history = train(
        model,
        counter,
        epochs=epochs,
        steps_per_epoch=1,
        run=run,
        evaluate=evaluate,
        monitor=None if evaluate is None else monitor,
        mode="min" if monitor == "log_loss" else "max",
        tie_break=None if evaluate is None else "log_loss",
        stop_when=stop_when,
    )
    lost = stop_when(history.logs)
    # Without validation data the start is all there is to go back to.
    kept = not lost if start is None else better(history.best_value, start[monitor], monitor)
    if not kept:
        write_variables(model.variables, before)
    best = history.best_epoch if kept else None
    return Game(history.logs, start, history.epochs, best, lost)


def better(value: float | None, start: float, monitor: str) -> bool:
    """Returns whether the best epoch's figure is better than the start's."""
    return value is not None and (value < start if monitor == "log_loss" else value > start)


def collapsed(
    logs: Mapping[str, list[float]], start: Mapping[str, float] | None, drop: float
) -> bool:
    """Returns whether the classifier has lost its accuracy, or predicts ever fewer classes.

    Args:
        logs: of the game so far.
        start: validation figures before it, or None.
        drop: how far accuracy may fall below the best one; the entropy of predicted classes may
            fall to half of what it was.
    """
    accuracies = logs.get("val_accuracy", [])
    if (
        accuracies
        and start is not None
        and accuracies[-1] < max(start["accuracy"], *accuracies) - drop
    ):
        return True
    spread = logs.get("predicted_class_entropy", [])
    return bool(spread) and not spread[-1] >= 0.5 * spread[0]


def held_out(data: TrainingData, fraction: float, seed: int) -> TrainingData:
    """Returns the data with a share of its instances as validation data, labelled by the majority
    of their authentic annotations.

    Instances that have generated annotations only are never held out, and generated ones do not
    vote.

    Args:
        data: without validation data.
        fraction: the share of the instances with authentic annotations.
        seed: draws the split and ties.
    """
    authentic = data.annotations.observed()
    judged = np.flatnonzero(authentic.annotated)
    consensus = consensus_labels(authentic[judged], seed)
    part, kept = hold_out(
        TrainingData(data.features[judged], authentic[judged], None, data.rows[judged]),
        consensus,
        fraction,
        seed,
    )
    rows = np.union1d(judged[kept], np.flatnonzero(~authentic.annotated))
    return TrainingData(
        data.features[rows], data.annotations[rows], part.validation, data.rows[rows]
    )
