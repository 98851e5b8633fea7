"""What an estimator with a trained generator offers: what annotators would say, and annotations
drawn from that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.annotations import Annotations, factorize
from neucrowd_tf.errors import DataError
from neucrowd_tf.training.estimator import CrowdEstimator

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from neucrowd_tf.crowding.generation import TrainedGenerator


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
