"""The arguments that estimators with a network share, declared once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neucrowd_tf.arguments import (
    Constraint,
    argument,
    estimator,
    flag,
    none,
    number,
    share,
    text,
    whole,
    widths,
)
from neucrowd_tf.training.estimator import CrowdEstimator


@estimator
class NetworkEstimator(CrowdEstimator):
    """A crowd method with a network of fully connected layers; a subclass has defaults of its own.

    References:
        NeuCrowd, section 4.3, has the defaults.
    """

    hidden_units: Sequence[int] = argument(
        (64, 32), widths, "widths of the fully connected layers, the last one's the embedding's."
    )
    # What Keras makes of it is checked where the layers are made: a function serves as well.
    activation: Any = argument(
        "sigmoid",
        text | Constraint("a function", callable) | none,
        "of the fully connected layers, by Keras' name.",
    )
    dropout: float = argument(
        0.2, number(least=0, below=1), "share of units that a training step leaves out at random."
    )
    l2: float = argument(1e-2, number(least=0), "penalty on the squares of the layers' kernels.")
    optimizer: str = argument("adam", text, "by Keras' name.")
    learning_rate: float = argument(1e-3, number(above=0), "of the optimizer.")
    batch_size: int = argument(128, whole(1), "instances a step.")
    standardise: bool = argument(
        True, flag, "whether features get mean 0 and deviation 1, as measured in training."
    )


@estimator
class EpochEstimator(NetworkEstimator):
    """A network that is trained in epochs, the best of which can be chosen on validation data."""

    epochs: int = argument(20, whole(1), "how long to train.")
    patience: int | None = argument(
        None, none | whole(1), "stop after so many epochs without a better one; None does not."
    )
    validation_fraction: float = argument(
        0.2, share, "the share of instances held out when `fit` gets no validation data."
    )
