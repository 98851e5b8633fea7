"""Anno-Reg: a confusion matrix for each annotator behind the classifier's softmax, and a penalty on
its trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.crowd_layers.estimator import AnnotatorEstimator
from neucrowd_tf.crowd_layers.presets import PRESETS, SPACE, registered
from neucrowd_tf.training.arguments import check_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.crowd_layers.layers import Normalisation
    from neucrowd_tf.training.estimator import TrainingData


@registered(
    "anno_reg",
    "Anno-Reg: a classifier trained through a confusion matrix for each annotator",
    PRESETS["anno_reg"],
    SPACE,
)
class AnnoReg(AnnotatorEstimator):
    """A classifier and annotators' confusion matrices, trained end to end with a penalty on the
    matrices' trace.

    Args:
        base, hidden_units, activation, dropout, batch_norm, l2, square_root, standardise, augment,
        pretrained, weights, imbalance,
            gamma, beta, optimizer, learning_rate, batch_size, epochs, monitor, patience,
            validation_fraction, seed: as of `CrowdLayer`.
        normalisation: "row" makes each matrix a confusion matrix [true, observed]; "column" is eq.
            10 as printed.
        trace_weight: lambda of eq. 11, on the mean trace over annotators.
        initial: the matrices' logits are `initial` times the identity at first.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: with "row" the stochastic matrices
            themselves.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`.

    References:
        Tanno et al. (2019), Learning from noisy labels by regularized estimation of annotator
        confusion; DASC, section 3.3.
    """

    def __init__(
        self,
        base: Any = "dense",
        normalisation: Normalisation = "row",
        *,
        trace_weight: float = 0.01,
        initial: float = 2.0,
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
        self.normalisation = normalisation
        self.trace_weight = trace_weight
        self.initial = initial
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

    def _check_arguments(self) -> None:
        super()._check_arguments()
        check_number("trace_weight", self.trace_weight, least=0)
        check_number("initial", self.initial, least=0)

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.layers import ConfusionHead

        return ConfusionHead(
            num_annotators,
            self.normalisation,
            self.trace_weight,
            self.initial,
            name="annotator_confusion",
        )

    def _confusion_matrices(self, network: Any, data: TrainingData) -> NDArray[np.float32]:
        if self.normalisation == "row":
            return np.asarray(network.head.matrices(), dtype=np.float32)
        return super()._confusion_matrices(network, data)
