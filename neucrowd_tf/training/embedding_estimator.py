"""What methods share whose fit leaves one Keras model with probabilities and an embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.training.blocks import in_blocks
from neucrowd_tf.training.estimator import CrowdEstimator

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class EmbeddingEstimator(CrowdEstimator):
    """Predicts and embeds with `model_`, from raw features to {"probabilities", "embedding"}."""

    model_: Any

    def inference_model(self) -> Any:
        return self.model_

    def _outputs(self, features: NDArray[np.float32], name: str) -> NDArray[Any]:
        return in_blocks(lambda part: self.model_(part, training=False)[name], features)

    def _predict_proba(self, features: NDArray[np.float32]) -> NDArray[Any]:
        return self._outputs(features, "probabilities")

    def transform(self, features: ArrayLike) -> NDArray[np.float32]:
        """Returns the embedding `[M, h]` of raw features (of several networks, side by side)."""
        return self._outputs(self._check_fitted(features), "embedding")
