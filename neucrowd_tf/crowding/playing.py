"""From DL-CL to the end of the game: what a fit trains, in which order, and the networks that it
keeps for the next fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.crowding.estimator import CrowdInG
    from neucrowd_tf.crowding.network import Players, Start
    from neucrowd_tf.training.estimator import TrainingData
    from neucrowd_tf.training.run import Run

# Arguments that the compiled networks do not depend on.
_NOT_COMPILED = frozenset(
    {
        "seed",
        "epochs",
        "generator_pretrain_epochs",
        "discriminator_pretrain_passes",
        "generator_pretrain_learning_rate",
        "generator_learning_rate",
        "classifier_learning_rate",
        "discriminator_learning_rate",
        "annotator_features",
        "monitor",
        "collapse_drop",
        "refit",
        "validation_fraction",
    }
)


def play(estimator: CrowdInG, data: TrainingData, run: Run, epochs: int) -> None:
    """Pre-trains everything, plays the game, and sets the estimator's results.

    Raises:
        DataError: a single instance, which cannot teach both the generator and the classifier.
    """
    if estimator.epochs and len(data.features) < 2:
        raise DataError(
            f"CrowdInG: expected two instances or more to train on, received {len(data.features)}"
        )
    start = _start_for(estimator, data)
    start.fit(estimator, data, run.stage("classifier"))
    estimator.model_, estimator.pretraining_history_ = start.inference, start.estimator.history_
    estimator.confusion_matrices_ = start.estimator.confusion_matrices_
    constants = start.network.standardise
    estimator.mean_, estimator.scale_ = (
        np.array(constants.mean.numpy()),
        np.array(constants.scale.numpy()),
    )
    estimator.history_, estimator.start_, estimator.generator_weights_ = {}, None, []
    estimator.n_iter_, estimator.best_epoch_, estimator.collapsed_ = 0, None, False
    if estimator.epochs:
        from neucrowd_tf.crowding.generation import expected_confusions
        from neucrowd_tf.training.state import read_variables

        players = _players_for(estimator, start, data)
        players.start(estimator, start, data)
        estimator.model_ = players.inference
        _train(estimator, players, data, run, epochs)
        estimator.generator_weights_ = read_variables(players.generator.variables)
        estimator.confusion_matrices_ = expected_confusions(players)


def _train(
    estimator: CrowdInG, players: Players, data: TrainingData, run: Run, epochs: int
) -> None:
    """Pre-trains the players and plays the game; the start is kept where no epoch is better."""
    from neucrowd_tf.training.loop import train
    from neucrowd_tf.training.state import read_variables, reset_optimizer, write_variables

    train(
        players.generator_pretraining,
        players.counter,
        epochs=estimator.generator_pretrain_epochs,
        steps_per_epoch=1,
        run=run.stage("generator"),
    )
    passes = estimator.discriminator_pretrain_passes
    train(
        players.discriminative_pretraining,
        players.counter,
        epochs=passes,
        steps_per_epoch=1,
        run=run.stage("discriminator"),
    )
    reset_optimizer(players.game.optimizer)  # every player begins the game with a fresh one
    before = read_variables(players.game.variables)
    evaluate = None if data.validation is None else _evaluator(estimator, *data.validation)
    estimator.start_ = None if evaluate is None else evaluate()
    history = train(
        players.game,
        players.counter,
        epochs=epochs,
        steps_per_epoch=1,
        run=run.stage("game"),
        evaluate=evaluate,
        monitor=None if evaluate is None else estimator.monitor,
        mode="min" if estimator.monitor == "log_loss" else "max",
        tie_break=None if evaluate is None else "log_loss",
        stop_when=estimator._collapsed,
    )
    estimator.history_, estimator.n_iter_, estimator.best_epoch_ = (
        history.logs,
        history.epochs,
        history.best_epoch,
    )
    estimator.collapsed_ = estimator._collapsed(history.logs)
    lost = evaluate is None and estimator.collapsed_
    if lost or (
        estimator.start_ is not None
        and not estimator._better(history.best_value, estimator.start_[estimator.monitor])
    ):
        write_variables(players.game.variables, before)
        estimator.best_epoch_ = None


def _evaluator(
    estimator: CrowdInG, features: NDArray[np.float32], labels: NDArray[np.int64]
) -> Callable[[], dict[str, float]]:
    def evaluate() -> dict[str, float]:
        probabilities = estimator._predict_proba(features).astype(np.float64)
        own = np.maximum(probabilities[np.arange(len(labels)), labels], 1e-7)
        return {
            "accuracy": float((probabilities.argmax(axis=1) == labels).mean()),
            "log_loss": float(-np.log(own).mean()),
        }

    return evaluate


def _compiled_for(estimator: CrowdInG) -> tuple[Any, ...]:
    """Returns what compiled networks depend on, apart from the number of instances."""
    parameters = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in _NOT_COMPILED
    }
    return (
        estimator.feature_shape_,
        estimator.annotator_table_.shape,
        len(estimator.classes_),
        repr(sorted(parameters.items(), key=str)),
    )


def _start_for(estimator: CrowdInG, data: TrainingData) -> Start:
    """Returns DL-CL for data of this shape, made once for the fits of it; the two latest shapes are
    kept.
    """
    from neucrowd_tf.crowding.network import make_start

    key = (*_compiled_for(estimator), len(data.features))
    starts: dict[Any, Start] = estimator.__dict__.setdefault("_starts", {})
    start = starts.pop(key, None) or make_start(estimator)
    starts[key] = start
    for old in list(starts)[:-2]:
        del starts[old]
    return start


def _players_for(estimator: CrowdInG, start: Start, data: TrainingData) -> Players:
    """Returns the compiled players, made once for all fits that differ in their number of instances
    alone.
    """
    from neucrowd_tf.crowding.network import build_players

    cached: tuple[Any, Any] = estimator.__dict__.get("_players", (None, None))
    if cached[0] != _compiled_for(estimator):
        cached = (
            _compiled_for(estimator),
            build_players(
                estimator, start, data.annotations.num_classes, estimator.annotator_table_.shape[1]
            ),
        )
        estimator._players = cached
    players: Players = cached[1]
    return players
