"""The loop of algorithm 1: what happens before the classifier's training in every round."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from neucrowd_tf.iced.inference import Inference, infer_labels, synthetic_one_hot
from neucrowd_tf.iced.smote import Interpolation, balancing_counts, synthesise
from neucrowd_tf.iced.synthetic_annotations import copy_annotations, nearest_real

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations
    from neucrowd_tf.iced.network import ICEDModel

# Above this many cells, real labels are looked up in a sparse matrix: slower, but of the size of
# the annotations.
_DENSE_CELLS = 1 << 26
_ORDER, _SMOTE, _COPY, _DECODER = range(1, 5)


@dataclasses.dataclass(frozen=True)
class Options:
    """The settings of a round; see `ICED`."""

    k: int
    annotation_neighbours: int
    eta: float
    interpolation: Interpolation
    candidates: Literal["classifier", "inferred"]
    targets: Literal["hard", "soft"]
    prior: Literal["uniform", "update"]
    smoothing: float
    em_iterations: int
    epochs_per_round: int
    decoder_epochs: int
    tol: float | None
    seed: int


class Rounds:
    """Generates, infers and says what to train on, round after round.

    Its state, part of every checkpoint, is the history alone; all else follows from the networks'
    weights and the seed.
    """

    def __init__(
        self,
        model: ICEDModel,
        annotations: Annotations,
        certainty: NDArray[np.float64],
        options: Options,
    ) -> None:
        self.model, self.certainty, self.options = model, certainty, options
        self.num_classes, self.num_annotators = annotations.num_classes, annotations.num_annotators
        self.real = annotations.one_hot()
        self.used = annotations.vote_counts().sum(axis=0) > 0
        cells = annotations.num_instances * annotations.num_annotators
        self.real_labels = (
            annotations.to_dense(np.int16) if cells <= _DENSE_CELLS else annotations.to_sparse()
        )
        self.inference = self._infer(self.real)
        # One entry a round; the labels begin with those before any synthesis (D&S-orig).
        self.labels: list[NDArray[np.int16]] = [self.inference.labels.astype(np.int16)]
        self.permutations: list[NDArray[np.int16]] = [self.inference.permutation.astype(np.int16)]
        self.candidates: list[NDArray[np.int16]] = []
        self.synthetic: list[NDArray[np.int64]] = []

    def settled(self, changed: Sequence[float]) -> bool:
        """Whether the last round changed no larger share of the inferred labels than `tol`; the
        first one, which brings in synthetic instances, does not count.

        Args:
            changed: the share that each round changed, so far.
        """
        return self.options.tol is not None and len(changed) > 1 and changed[-1] <= self.options.tol

    # ----------------------------------------------------------------- a round

    def start(self, index: int) -> dict[str, float]:
        """Makes synthetic instances and their annotations, infers the labels of all, and sets the
        epoch's rows.

        References:
            ICED, algorithm 1, lines 3 and 4.
        """
        embeddings, probabilities = self.model.outputs()
        candidates = self._candidates(probabilities)
        points, counts = self._synthesise(embeddings, candidates, index)
        self.inference = self._infer(self._augmented(embeddings, points, index))
        size = len(embeddings)
        self.labels.append(self.inference.labels[:size].astype(np.int16))
        self.permutations.append(self.inference.permutation.astype(np.int16))
        self.candidates.append(candidates.astype(np.int16))
        self.synthetic.append(counts)
        probas = self.inference.probas
        targets = (
            np.eye(self.num_classes)[probas.argmax(axis=1)]
            if self.options.targets == "hard"
            else probas
        )
        self.model.set_rows(targets, self.model.decode(points))
        self._set_epoch(np.arange(size + len(points)), np.arange(size), index)
        smallest = np.bincount(candidates, minlength=self.num_classes)[self.used].min()
        changed = float(np.mean(self.labels[-1] != self.labels[-2]))
        return {
            "changed": changed,
            "synthetic": float(counts.sum()),
            "smallest_class": float(smallest),
        }

    def _set_epoch(self, rows: NDArray[np.int64], real: NDArray[np.int64], index: int) -> None:
        size = self.model.batch_size
        orders = []
        for which, part, epochs in (
            (_ORDER, rows, self.options.epochs_per_round),
            (_DECODER, real, self.options.decoder_epochs),
        ):
            rng = self._rng(which, index)
            passes = [epoch_order(part, size, rng) for _ in range(epochs)]
            orders.append(np.concatenate(passes) if passes else None)
        self.model.set_epoch(classifier=orders[0], decoder=orders[1])

    def _rng(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self.options.seed, 0x1CED, *stream])

    def _candidates(self, probabilities: NDArray[np.float32]) -> NDArray[np.int64]:
        """Returns `[N]` the class that each real instance is a candidate of."""
        if self.options.candidates == "inferred":
            return self.labels[-1].astype(np.int64)
        # Deviation: inferred labels drift to equal class sizes under a uniform prior, and synthesis
        # stops; the classifier, trained on balanced data and blind to single annotations, keeps the
        # classes apart.
        return np.where(self.used, probabilities, -1.0).argmax(axis=1)

    def _synthesise(
        self, embeddings: NDArray[np.float32], candidates: NDArray[np.int64], index: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Returns synthetic embeddings `[S, h]`, class after class, and how many there are of each
        class `[C]`.
        """
        counts = balancing_counts(candidates, self.num_classes)
        made = [np.zeros((0, embeddings.shape[1]), embeddings.dtype)]
        for code in np.flatnonzero(counts):
            rows = np.flatnonzero(candidates == code)
            new = synthesise(
                embeddings,
                rows,
                int(counts[code]),
                self.certainty,
                self._rng(_SMOTE, index, int(code)),
                k=self.options.k,
                eta=self.options.eta,
                interpolation=self.options.interpolation,
            )
            made.append(new.embeddings)
        return np.concatenate(made), counts

    def _augmented(
        self, embeddings: NDArray[np.float32], points: NDArray[np.float32], index: int
    ) -> sparse.csr_matrix:
        """Returns the one-hot annotations of real and synthetic instances."""
        if not len(points):
            return self.real
        near = nearest_real(embeddings, points, self.options.annotation_neighbours)
        triples = copy_annotations(self.real_labels, near, self._rng(_COPY, index))
        return sparse.vstack(
            [
                self.real,
                synthetic_one_hot(len(points), self.num_annotators, self.num_classes, triples),
            ],
            format="csr",
        )

    def _infer(self, one_hot: sparse.csr_matrix) -> Inference:
        o = self.options
        return infer_labels(
            one_hot,
            self.num_classes,
            prior=o.prior,
            smoothing=o.smoothing,
            max_iter=o.em_iterations,
        )

    # ----------------------------------------------------------------- checkpoints

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Returns the history as arrays."""
        size = (len(self.candidates), len(self.labels[0]))
        return {
            "labels": np.stack(self.labels),
            "permutations": np.stack(self.permutations),
            "candidates": (
                np.stack(self.candidates) if self.candidates else np.zeros(size, np.int16)
            ),
            "synthetic": (
                np.stack(self.synthetic)
                if self.synthetic
                else np.zeros((0, self.num_classes), np.int64)
            ),
            "probas": self.inference.probas,
            "priors": self.inference.priors,
            "errors": self.inference.errors,
        }

    def set_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Goes on from what `get_state` returned."""
        self.labels = list(state["labels"])
        self.permutations = list(state["permutations"])
        self.candidates = list(state["candidates"])
        self.synthetic = list(state["synthetic"])
        self.inference = Inference(
            state["probas"],
            state["priors"],
            state["errors"],
            state["permutations"][-1].astype(np.int64),
        )


def epoch_order(
    rows: NDArray[np.integer[Any]],
    batch_size: int,
    rng: np.random.Generator,
    steps: int | None = None,
) -> NDArray[np.int64]:
    """Returns an epoch's rows: shuffled passes over `rows`, one after the other, until `steps`
    batches are full.

    Args:
        steps: by default as many as one pass needs.
    """
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    wanted = (-(-len(rows) // batch_size) if steps is None else steps) * batch_size
    passes = [rng.permutation(rows) for _ in range(-(-wanted // len(rows)))]
    return (
        np.concatenate(passes)[:wanted].astype(np.int64) if passes else np.zeros(0, dtype=np.int64)
    )
