"""The three trainings of ICED's networks: the auto-encoder, the warm-up and the rounds."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.iced.certainty import evened_rows
from neucrowd_tf.iced.generation import ROUNDS
from neucrowd_tf.iced.model import ICEDModel, epoch_order
from neucrowd_tf.training.loop import History, Stateful, train
from neucrowd_tf.training.tuplets import step_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.training.run import Run

# What each training draws is a function of (seed, this, epoch).
_AUTOENCODER, _WARM_UP = 0xAE, 0x3A


@dataclasses.dataclass(frozen=True)
class Stages:
    """Says which rows of the model's instances each epoch of a training takes.

    Attributes:
        model: trained.
        run: what surrounds the fit; each stage has its own part of it.
        batch_size: rows a step.
        seed: of the orders.
    """

    model: ICEDModel
    run: Run
    batch_size: int
    seed: int

    def _order(self, rows: NDArray[np.int64], *stream: int, passes: int = 1) -> NDArray[np.int64]:
        rng = np.random.default_rng([self.seed, *stream])
        return epoch_order(rows, self.batch_size, rng, passes)

    @property
    def _real(self) -> NDArray[np.int64]:
        return np.arange(self.model.num_instances)

    def _train(self, name: str, epochs: int, start: Callable[[int], Any], **more: Any) -> History:
        stage = functools.partial(train, self.model, step_numbers, steps_per_epoch=1)
        return stage(epochs=epochs, run=self.run.stage(name), epoch_start=start, **more)

    def autoencode(self, epochs: int) -> None:
        """Trains encoder and decoder to give the instances back."""

        def start(epoch: int) -> None:
            self.model.set_epoch(autoencoder=self._order(self._real, _AUTOENCODER, epoch))

        self._train("autoencoder", epochs, start)

    def warm_up(
        self,
        labels: NDArray[np.int64],
        num_classes: int,
        schedule: Sequence[NDArray[np.int64]],
        evened: bool,
    ) -> None:
        """Trains the classifier on the instances' majority labels.

        Args:
            labels: `[N]`.
            num_classes: C.
            schedule: the rows of each epoch.
            evened: whether rows of the rarer classes are repeated until all are as many.

        References:
            ICED, section 2.5; algorithm 1, line 1.
        """
        self.model.set_rows(np.eye(num_classes)[labels])

        def start(epoch: int) -> None:
            rows = schedule[epoch]
            if evened:
                rng = np.random.default_rng([self.seed, _WARM_UP, epoch, 1])
                rows = evened_rows(rows, labels, rng)
            self.model.set_epoch(classifier=self._order(rows, _WARM_UP, epoch))

        self._train("warm-up", len(schedule), start)

    def set_round(
        self,
        index: int,
        targets: NDArray[np.float64],
        points: NDArray[np.float32],
        *,
        passes: int,
        decoder_passes: int,
    ) -> None:
        """Says what a round trains on: the classifier on real and synthetic instances, the decoder
        on real ones, so that it follows the encoder.

        Args:
            index: of the round.
            targets: `[N + S, C]` class probabilities, times a row's weight.
            points: `[S, h]` synthetic embeddings.
            passes, decoder_passes: over the rows.

        References:
            ICED, algorithm 1, line 5.
        """
        self.model.set_rows(targets, self.model.decode(points))
        rows = np.arange(len(targets))
        self.model.set_epoch(
            classifier=self._order(rows, ROUNDS, 1, index, passes=passes),
            decoder=self._order(self._real, ROUNDS, 4, index, passes=decoder_passes),
        )

    def rounds(
        self,
        count: int,
        start: Callable[[int], Mapping[str, float]],
        *,
        state: Stateful,
        evaluate: Callable[[], Mapping[str, float]] | None,
        stop_when: Callable[[Mapping[str, list[float]]], bool],
    ) -> dict[str, list[float]]:
        """Trains for the rounds that `start` sets up; returns what they logged."""
        more = {"evaluate": evaluate, "state": (state,), "stop_when": stop_when}
        return self._train("rounds", count, start, **more).logs
