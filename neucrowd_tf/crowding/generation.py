"""What a trained generator is used for: further annotations, and what it expects of each
annotator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tensorflow as tf

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.crowding.crowd import fold, observed_cells
from neucrowd_tf.crowding.generative import GenerativeModule
from neucrowd_tf.crowding.generator import (
    Generator,
    draw_classes,
    draw_labels,
    log_answers,
    pair_noise,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CELLS_AT_ONCE = 1 << 17


def expected_confusions(generative: GenerativeModule) -> NDArray[np.float32]:
    """Returns `[R, C true, C observed]`: the mean of what the generator answers for each annotator,
    at the noise's mean, over the training instances weighted by the classifier's probability of
    each class.
    """
    crowd, latent = generative.crowd, generative.classify_all()
    flat, annotators = crowd.flat, crowd.annotators
    size, columns = int(crowd.num_instances), int(annotators.shape[0])
    total = np.zeros((columns, latent.shape[1], latent.shape[1]))
    generator, by_class = generative.generator, generative.by_class
    rows = max(1, _CELLS_AT_ONCE // columns // (latent.shape[1] if by_class else 1))
    for first in range(0, size, rows):
        z, x = latent[first : first + rows], flat[first : first + rows]
        noise = tf.zeros([len(x), columns, generator.noise_size])
        if by_class:
            answers = tf.nn.softmax(generator.all_pairs_by_class(x, annotators, noise))
        else:
            answers = tf.nn.softmax(generator.all_pairs(x, z, annotators, noise))
        total += np.einsum(
            "nc,nrck->rck" if by_class else "nc,nrk->rck",
            np.asarray(z, np.float64),
            np.asarray(answers, np.float64),
        )
    return (total / total.sum(axis=2, keepdims=True)).astype(np.float32)


class TrainedGenerator(NamedTuple):
    """A generator and what it is given.

    Attributes:
        generator: with its trained weights.
        annotators: `[R, e]` what stands for the annotators.
        flat: raw features to what the generator takes, `[M, ...] -> [M, d]`.
        classify: raw features to z-hat, `[M, ...] -> [M, C]`.
        by_class: whether the generator is fed classes drawn from z-hat.
    """

    generator: Generator
    annotators: NDArray[np.float32]
    flat: Callable[[NDArray[np.float32]], NDArray[np.float32]]
    classify: Callable[[NDArray[np.float32]], NDArray[Any]]
    by_class: bool = False

    def probabilities(self, features: NDArray[np.float32], num_classes: int) -> NDArray[np.float32]:
        """Returns `[M, R, C]` at the noise's mean."""
        table = self.annotators
        result = np.empty((len(features), len(table), num_classes), np.float32)
        for part, flat, latent in self._blocks(features, len(table)):
            answers = log_answers(
                self.generator, flat, latent, tf.constant(table), by_class=self.by_class
            )
            result[part] = np.asarray(tf.exp(answers))
        return result

    def fill(
        self,
        features: NDArray[np.float32],
        annotations: Annotations,
        columns: NDArray[np.integer[Any]],
        seed: int,
    ) -> Annotations:
        """Returns annotations with generated ones in the empty cells of the chosen annotators.

        Args:
            features: `[M, ...]` raw.
            annotations: of these instances.
            columns: codes of the annotators.
            seed: of the draws.
        """
        free, table = ~observed_cells(annotations), self.annotators[columns]
        rows, codes, labels = [], [], []
        for part, flat, latent in self._blocks(features, len(columns)):
            own = fold(tf.constant([seed % 2**31, 0x6E]), part.start)
            noise = pair_noise(own, [len(flat), len(columns), self.generator.noise_size])
            if self.by_class:
                drawn_classes = draw_classes(latent, len(columns), fold(own, 2))
                latent = tf.one_hot(drawn_classes, latent.shape[1])
            logits = self.generator.all_pairs(flat, latent, tf.constant(table), noise)
            drawn = np.asarray(draw_labels(logits, fold(own, 1)))
            row, column = np.nonzero(free[part][:, columns])
            rows.append(row + part.start)
            codes.append(columns[column])
            labels.append(drawn[row, column])
        if not rows:
            return annotations
        return annotations.with_generated(
            *(np.concatenate(parts).astype(np.int32) for parts in (rows, codes, labels))
        )

    def _blocks(
        self, features: NDArray[np.float32], columns: int
    ) -> Iterator[tuple[slice, Any, Any]]:
        """Yields blocks of instances: where they stand, their standardised features `[B, d]` and
        z-hat `[B, C]`.
        """
        rows = max(1, _CELLS_AT_ONCE // max(columns, 1))
        if self.by_class:
            rows = max(1, rows // self.generator.scores.kernel.shape[1])
        for first in range(0, len(features), rows):
            part = slice(first, min(first + rows, len(features)))
            latent = self.classify(features[part])
            yield part, tf.constant(self.flat(features[part]), tf.float32), tf.constant(latent)
