"""What a trained generator is for: what annotators would say, and annotations drawn from that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neucrowd_tf.annotations import Annotations, factorize
from neucrowd_tf.errors import DataError
from neucrowd_tf.training.estimator import CrowdEstimator

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from neucrowd_tf.crowding.generator import Generator

_CELLS_AT_ONCE = 1 << 17


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
            result[part] = self.generator.answers(flat, latent, table, by_class=self.by_class)
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
        from neucrowd_tf.crowding.crowd import fold, observed_cells

        free, table = ~observed_cells(annotations), self.annotators[columns]
        rows, codes, labels = [], [], []
        for part, flat, latent in self._blocks(features, len(columns)):
            own = fold([seed % 2**31, 0x6E], part.start)
            drawn = self.generator.draw(flat, latent, table, own, by_class=self.by_class)
            row, column = np.nonzero(free[part][:, columns])
            rows.append(row + part.start)
            codes.append(columns[column])
            labels.append(np.asarray(drawn.labels)[row, column])
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
            yield part, self.flat(features[part]).astype(np.float32), latent


class GeneratesAnnotations(CrowdEstimator):
    """A fitted estimator whose `_trained_generator` says what annotators make of raw features.

    Attributes:
        annotator_names_: `[R]` those of the annotators of `fit`.
    """

    annotator_names_: NDArray[Any]

    def _trained_generator(self) -> TrainedGenerator:
        """Returns the generator of the latest fit."""
        raise NotImplementedError

    def predict_annotators(self, features: ArrayLike) -> NDArray[np.float32]:
        """Returns how likely each annotator gives each label to each instance, `[M, R, C]`, at the
        noise's mean.
        """
        x = self._check_fitted(features)
        return self._trained_generator().probabilities(x, len(self.classes_))

    def generate(
        self,
        features: ArrayLike,
        annotators: ArrayLike | None = None,
        *,
        annotations: Annotations | None = None,
        seed: int | None = None,
    ) -> Annotations:
        """Draws annotations from the generator; each is marked as generated
        (`Annotations.generated`).

        Args:
            features: `[M, ...]` raw features.
            annotators: names of the annotators to generate for; by default all.
            annotations: of these M instances, by the annotators and classes of `fit`: they are
                kept, and only empty cells are filled. By default there are none.
            seed: of the draws; by default the estimator's.

        Returns:
            `Annotations` of M instances, any method can train on them.

        Raises:
            DataError: an annotator that was not there in `fit`, or annotations that do not fit.
        """
        x = self._check_fitted(features)
        generator = self._trained_generator()
        names, classes = self.annotator_names_, self.classes_
        if annotations is None:
            empty = np.zeros(0, np.int32)
            annotations = Annotations(
                empty,
                empty,
                empty,
                num_instances=len(x),
                annotator_names=names,
                class_names=classes,
            )
        if annotations.num_instances != len(x):
            raise DataError(
                f"generate: expected annotations of {len(x)} instances, received"
                f" {annotations.num_instances}"
            )
        if (
            annotations.annotator_names.tolist() != names.tolist()
            or annotations.class_names.tolist() != classes.tolist()
        ):
            raise DataError(
                "generate: expected annotations by the annotators and with the classes that fit"
                " was given, received others"
            )
        columns = (
            np.arange(len(names))
            if annotators is None
            else np.unique(factorize(annotators, names, "annotator", sort=False)[0])
        )
        return generator.fill(x, annotations, columns, self.seed if seed is None else seed)
