"""DL-CL: the crowd-layer classifier with which CrowdInG and its rivals begin."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from neucrowd_tf.arguments import argument, estimator, flag, many, number, text, whole
from neucrowd_tf.crowd_layers import CrowdLayer
from neucrowd_tf.training.blocks import in_blocks
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    import keras
    import numpy as np
    from numpy.typing import NDArray


@estimator
class ClassifierArguments:
    """The arguments that say which classifier DL-CL trains."""

    base: Any = argument("dense", None, "the classifier, as for `CrowdLayer`.", positional=True)
    hidden_units: Sequence[int] = argument(
        (128,), many(whole(1), "whole numbers from 1", 0), "widths of the dense base."
    )
    activation: str = argument("relu", text, "of the dense base.")
    dropout: float = argument(0.5, number(least=0, below=1), "of the dense base and of small_cnn.")
    batch_norm: bool = argument(False, flag, "of the dense base.")
    l2: float = argument(5e-4, number(least=0), "weight penalty on the base's kernels.")
    square_root: bool = argument(
        False, flag, "take the signed square root of features before standardising."
    )
    standardise: bool = argument(
        True, flag, "scale features to mean 0 and standard deviation 1 on the training instances."
    )

    def dl_cl(self, *, epochs: int, batch_size: int, learning_rate: float, seed: int) -> CrowdLayer:
        """Returns the untrained DL-CL that these arguments describe."""
        return CrowdLayer(
            self.base,
            hidden_units=self.hidden_units,
            activation=self.activation,
            dropout=self.dropout,
            batch_norm=self.batch_norm,
            l2=self.l2,
            square_root=self.square_root,
            standardise=self.standardise,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            seed=seed,
        )


class PretrainedClassifier:
    """DL-CL, whose compiled network is kept for the fits of one shape of data.

    Attributes:
        estimator: the crowd-layer classifier.

    References:
        CrowdInG, section 3.3.3 (the classifier is pre-trained).
    """

    def __init__(self, estimator: CrowdLayer) -> None:
        self.estimator = estimator
        self._kept = contextlib.ExitStack()
        self._kept.enter_context(estimator.reused())  # for as long as this object lives

    def fit(self, data: TrainingData, seed: int, run: Run) -> None:
        """Trains the classifier from fresh weights."""
        self.estimator.set_params(seed=seed).fit(data.features, data.annotations, run=run)

    @functools.cached_property
    def inference(self) -> keras.Model:
        """Raw features to {"probabilities"}."""
        return self.estimator.inference_model()

    @property
    def base(self) -> keras.Model:
        """Standardised features to probabilities."""
        return self.estimator.model_.get_layer("base")

    @property
    def standardise(self) -> Any:
        """The layer that holds the features' mean and scale."""
        return self.estimator.model_.get_layer("standardise")

    def standardised(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns features as the classifier and the other networks take them."""
        return in_blocks(self.standardise, features)
