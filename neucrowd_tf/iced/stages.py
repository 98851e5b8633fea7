"""What a fit of ICED trains: the auto-encoder, the warm-up, the rounds. Each is a stage that a
killed run goes on from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from sklearn.metrics import accuracy_score

from neucrowd_tf.aggregation import majority_labels
from neucrowd_tf.iced.rounds import Rounds, epoch_order
from neucrowd_tf.iced.warm_up import certainty_groups, warm_up_schedule
from neucrowd_tf.training.loop import History, train

if TYPE_CHECKING:
    from neucrowd_tf.iced.estimator import ICED
    from neucrowd_tf.iced.network import ICEDModel
    from neucrowd_tf.training.estimator import TrainingData
    from neucrowd_tf.training.run import Run


def train_autoencoder(estimator: ICED, model: ICEDModel, run: Run) -> None:
    """Trains encoder and decoder on the real instances."""
    rows = np.arange(model.num_instances)

    def start(epoch: int) -> None:
        model.set_epoch(
            autoencoder=epoch_order(
                rows, estimator.batch_size, np.random.default_rng([estimator.seed, 0xAE, epoch])
            )
        )

    _train(model, estimator.autoencoder_epochs, run.stage("autoencoder"), start)


def train_warm_up(estimator: ICED, model: ICEDModel, data: TrainingData, run: Run) -> None:
    """Trains encoder and classifier on majority votes (algorithm 2)."""
    schedule = warm_up_schedule(
        estimator.warm_up, certainty_groups(estimator.certainty_), estimator.warm_up_epochs
    )
    model.set_rows(
        np.eye(len(estimator.classes_))[
            majority_labels(data.annotations.vote_counts(), "random", estimator.seed)
        ]
    )

    def start(epoch: int) -> None:
        model.set_epoch(
            classifier=epoch_order(
                schedule[epoch],
                estimator.batch_size,
                np.random.default_rng([estimator.seed, 0x3A, epoch]),
            )
        )

    _train(model, len(schedule), run.stage("warm-up"), start)


def train_rounds(
    estimator: ICED, model: ICEDModel, rounds: Rounds, data: TrainingData, run: Run
) -> dict[str, list[float]]:
    """Makes the rounds (algorithm 1) and returns their history; validation data is scored after
    each and chooses nothing.
    """
    evaluate: Callable[[], dict[str, float]] | None = None
    if data.validation is not None:
        features, codes = data.validation

        def evaluate() -> dict[str, float]:
            return {
                "accuracy": float(
                    accuracy_score(codes, estimator._predict_proba(features).argmax(axis=1))
                )
            }

    def settled(logs: Mapping[str, list[float]]) -> bool:
        return rounds.settled(logs["changed"])

    return _train(
        model,
        estimator.rounds,
        run.stage("rounds"),
        rounds.start,
        evaluate=evaluate,
        state=(rounds,),
        stop_when=settled,
    ).logs


def _train(
    model: ICEDModel, epochs: int, run: Run, start: Callable[[int], Any], **options: Any
) -> History:
    return train(
        model,
        lambda first: tf.data.Dataset.counter(start=first),
        epochs=epochs,
        steps_per_epoch=1,
        run=run,
        epoch_start=start,
        **options,
    )
