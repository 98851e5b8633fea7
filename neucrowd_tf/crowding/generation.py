"""What a trained generator is used for: further annotations, and what it expects of each
annotator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tensorflow as tf

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.crowding.crowd import fold, observed_cells
from neucrowd_tf.crowding.generative import GenerativeModule, Generator, draw_labels, pair_noise

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
    rows = max(1, _CELLS_AT_ONCE // columns)
    for first in range(0, size, rows):
        z = latent[first : first + rows]
        logits = _at_mean(generative.generator, flat[first : first + rows], z, annotators)
        total += np.einsum(
            "nc,nrk->rck", np.asarray(z, np.float64), np.asarray(tf.nn.softmax(logits), np.float64)
        )
    return (total / total.sum(axis=2, keepdims=True)).astype(np.float32)


def _at_mean(generator: Generator, flat: Any, latent: Any, annotators: Any) -> Any:
    noise = tf.zeros([tf.shape(flat)[0], tf.shape(annotators)[0], generator.noise_size])
    return generator.all_pairs(flat, latent, annotators, noise)


class TrainedGenerator(NamedTuple):
    """A generator and what it is given.

    Attributes:
        generator: with its trained weights.
        annotators: `[R, e]` what stands for the annotators.
        flat: raw features to what the generator takes, `[M, ...] -> [M, d]`.
        classify: raw features to z-hat, `[M, ...] -> [M, C]`.
    """

    generator: Generator
    annotators: NDArray[np.float32]
    flat: Callable[[NDArray[np.float32]], NDArray[np.float32]]
    classify: Callable[[NDArray[np.float32]], NDArray[Any]]

    def probabilities(self, features: NDArray[np.float32], num_classes: int) -> NDArray[np.float32]:
        """Returns `[M, R, C]` at the noise's mean."""
        table = self.annotators
        result = np.empty((len(features), len(table), num_classes), np.float32)
        for part, flat, latent in self._blocks(features, len(table)):
            logits = _at_mean(self.generator, flat, latent, tf.constant(table))
            result[part] = np.asarray(tf.nn.softmax(logits))
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
        for first in range(0, len(features), rows):
            part = slice(first, min(first + rows, len(features)))
            latent = self.classify(features[part])
            yield part, tf.constant(self.flat(features[part]), tf.float32), tf.constant(latent)
