"""Base of the crowd methods whose classifier is one logistic regression on raw features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
from scipy.sparse import issparse

from neucrowd_tf.declare.declarations import estimator, fitted, strengths
from neucrowd_tf.declare.types import Array, Features, Floats, Network
from neucrowd_tf.training.estimator import CrowdEstimator, TrainingData
from neucrowd_tf.training.features import ArrayFeatures, in_blocks
from neucrowd_tf.training.logistic_blocks import MOST_COPIED, uncopied
from neucrowd_tf.training.logistic_head import STRENGTHS, LinearHead, fit_logistic


@estimator
class LinearClassifier(CrowdEstimator):
    """Base of the methods that predict with a logistic regression, `head_`, which `_fit` sets.

    They need no TensorFlow to fit and predict.
    """

    Cs: Annotated[
        Sequence[float],
        strengths,
        "inverse regularisation strengths, the strongest regularisation first. The one with the"
        " best log loss on the validation data is used; without such data, cross-validation"
        " chooses.",
    ] = STRENGTHS

    trains_network: ClassVar[bool] = False
    takes_sparse: ClassVar[bool] = False  # TF-IDF of a `TextClassifier`, as a sparse matrix

    head_: LinearHead = fitted()

    def _predict_proba(self, features: Features) -> Array:
        if issparse(features):
            return self.head_.predict_proba(features)
        # The head copies a block in float64, up to `MOST_COPIED` values at a time.
        rows = max(1, MOST_COPIED // math.prod(features.shape[1:]))
        return in_blocks(lambda block: self.head_.predict_proba(_flat(block)), features, rows)

    def _inference_model(self) -> Network:
        """Returns a Keras model: standardise, then a dense softmax."""
        from neucrowd_tf.nn.logistic_regression import linear_model

        head = self.head_
        return linear_model(
            tuple(self.feature_shape_),
            kernel=head.kernel_,
            bias=head.bias_,
            mean=head.mean_,
            scale=head.scale_,
        )

    def _fit_head(self, data: TrainingData, weights: Floats) -> LinearHead:
        """Returns a logistic regression on every pair of an instance and a class.

        Args:
            data: N instances.
            weights: `[N, C]` of the pairs; those that are 0 are left out.
        """
        rows, codes = np.nonzero(weights)
        features = uncopied(_flat(data.features))
        # No copy if each instance has one class.
        if not np.array_equal(rows, np.arange(features.shape[0])):
            features = features[rows]
        validation = data.validation
        if validation is not None:
            validation = (_flat(validation[0]), validation[1])
        return fit_logistic(
            features,
            codes,
            num_classes=len(self.classes_),
            Cs=self.Cs,
            validation=validation,
            sample_weight=weights[rows, codes],
            seed=self.seed,
            groups=rows,
        )


def _flat(features: Features) -> Features:
    """Returns dense features `[N, ...]` as `[N, d]`; sparse ones as they are."""
    if issparse(features):
        return features
    if isinstance(features, ArrayFeatures):
        return features.flat()
    # NumPy cannot infer -1 if there are no rows.
    return features.reshape(len(features), math.prod(features.shape[1:]))
