"""CrowdLayer: a matrix for each annotator behind the classifier's softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from neucrowd_tf.crowd_layers.estimator import AnnotatorEstimator
from neucrowd_tf.crowd_layers.presets import PRESETS, SPACE, registered

if TYPE_CHECKING:
    from neucrowd_tf.crowd_layers.layers import Connection


@registered(
    "crowd_layer",
    "CrowdLayer: a classifier trained through a matrix for each annotator",
    PRESETS["crowd_layer"],
    SPACE,
)
class CrowdLayer(AnnotatorEstimator):
    """A classifier with a crowd layer, trained end to end on annotators' labels (DASC, eqs. 8 and
    9).

    Args:
        base: "dense" (`hidden_units` and the four arguments after it), "small_cnn" or "resnet18"
            for images, a Keras classifier whose outputs are C probabilities or logits (it is
            copied), or a function of (input shape, C) that makes one.
        connection: "MW" (a matrix for each annotator), "VW" (weights), "VB" (biases) or "VW+B".
        hidden_units, activation, dropout, batch_norm: the dense base; `dropout` also holds for
            "small_cnn".
        l2: weight penalty on the base's kernels.
        square_root: take the signed square root of features before standardising.
        standardise: scale features to mean 0 and standard deviation 1 on the training instances.
        augment: shift and mirror images while training.
        pretrained: start each fit from the weights that `base` comes with instead of fresh ones.
        weights: a file of weights (`.weights.h5` or `.keras`) to start from; layers of another
            shape stay fresh.
        imbalance: "none" (cross-entropy), "resampling", "reweighting", "focal" or "cb_focal".
        gamma, beta: of the focal and the class-balanced loss.
        optimizer, learning_rate: by Keras' name.
        batch_size: instances a step, each with all of its labels.
        epochs: passes over the instances.
        monitor: None trains all epochs; "accuracy" or "log_loss" keeps the best epoch on validation
            data.
        patience: with a monitor, stop after so many epochs without a better one.
        validation_fraction: what a monitor holds out when `fit` gets no validation data.
        seed: draws weights, dropout, batches and augmentation.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: the softmax of row c of W_k is what
            annotator k answers where the classifier is certain of class c.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`.

    References:
        Rodrigues and Pereira (2018), Deep learning from crowds; DASC, section 3.3.
    """

    def __init__(
        self,
        base: Any = "dense",
        connection: Connection = "MW",
        *,
        hidden_units: Sequence[int] = (128,),
        activation: str = "relu",
        dropout: float = 0.5,
        batch_norm: bool = False,
        l2: float = 5e-4,
        square_root: bool = False,
        standardise: bool = True,
        augment: bool = False,
        pretrained: bool = False,
        weights: str | None = None,
        imbalance: str = "none",
        gamma: float = 2.0,
        beta: float = 0.9999,
        optimizer: str = "adam",
        learning_rate: float = 1e-3,
        batch_size: int = 128,
        epochs: int = 50,
        monitor: str | None = None,
        patience: int | None = None,
        validation_fraction: float = 0.2,
        seed: int = 0,
    ) -> None:
        self.base = base
        self.connection = connection
        self.hidden_units = hidden_units
        self.activation = activation
        self.dropout = dropout
        self.batch_norm = batch_norm
        self.l2 = l2
        self.square_root = square_root
        self.standardise = standardise
        self.augment = augment
        self.pretrained = pretrained
        self.weights = weights
        self.imbalance = imbalance
        self.gamma = gamma
        self.beta = beta
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.monitor = monitor
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.seed = seed

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.layers import CrowdConnection

        return CrowdConnection(num_annotators, self.connection, name="crowd_layer")
