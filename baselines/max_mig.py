"""Max-MIG: a classifier and an aggregator of annotations that are trained to agree on what they
share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neucrowd_tf.aggregation.base import normalise_counts, vote_shares
from neucrowd_tf.crowd_layers.network import ClassifierEstimator, Network
from neucrowd_tf.crowd_layers.presets import PRESETS, SPACE
from neucrowd_tf.errors import UsageError
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray


@register_method(
    "max_mig",
    summary=(
        "Max-MIG: a classifier and an aggregation network that maximise the information gained on"
        " each other"
    ),
    requires_identities=True,
    presets=PRESETS["crowd_layer"],
    space={**SPACE, "prior": ("votes", "uniform")},
    paper=(
        "Cao, Xu, Kong and Wang: Max-MIG: an Information Theoretic Approach for Joint Learning from"
        " Crowds, ICLR 2019"
    ),
)
class MaxMIG(ClassifierEstimator):
    """A classifier h(x) and an aggregator g(y) = softmax(sum of W_r[:, y_r] + b), trained on the
    f-mutual information gain (KL).

    Args:
        prior: the class prior of the gain: "votes" (the classes' shares of the votes) or "uniform".
        smoothing: pseudo-count of the confusion matrices, by vote shares, whose logarithms are the
            aggregator's first weights.
        base, hidden_units, activation, dropout, batch_norm, l2, square_root, standardise, augment,
        pretrained, weights, optimizer,
            learning_rate, batch_size, epochs, monitor, patience, validation_fraction, seed: as of
            `CrowdLayer`; both networks have one optimizer.

    Attributes:
        probas_: `[N, C]` what the aggregator makes of the training instances' annotations, and
            labels_ `[N]` its class codes.
        confusion_matrices_: `[R, C true, C observed]`: softmax over an annotator's labels of the
            aggregator's weights.
        model_: Keras model from raw features to {"probabilities" `[None, C]`}.
        history_, n_iter_, best_epoch_, rows_: as of `CrowdLayer`.

    References:
        Cao et al. (2019), section 3.
    """

    requires_identities = True

    probas_: NDArray[np.float32]
    labels_: NDArray[np.int64]
    confusion_matrices_: NDArray[np.float32]

    def __init__(
        self,
        base: str | Any | Callable[..., Any] = "dense",
        *,
        prior: Literal["votes", "uniform"] = "votes",
        smoothing: float = 0.1,
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
        self.prior = prior
        self.smoothing = smoothing
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
        if self.prior not in ("votes", "uniform"):
            raise UsageError(f"prior: expected 'votes' or 'uniform', received {self.prior!r}")
        if not self.smoothing > 0:
            raise UsageError(f"smoothing: expected a number above 0, received {self.smoothing!r}")

    def _build(self, data: TrainingData) -> Network:
        import keras

        from baselines.max_mig_model import MaxMIGModel
        from neucrowd_tf.crowd_layers.bases import standardised

        base = self._make_base(data.features.shape[1:], len(self.classes_))
        classifier, layer = standardised(base, data.features.shape[1:], self.square_root)
        model = MaxMIGModel(
            classifier,
            data.features,
            data.annotations.num_annotators,
            len(self.classes_),
            augment=self._augmentation(),
        )
        whole = keras.Model(classifier.input, {"probabilities": classifier.output}, name="max_mig")
        return Network(model=model, whole=whole, base=base, standardise=layer)

    def _set_targets(self, network: Any, data: TrainingData) -> None:
        crowd, classes = data.annotations, len(self.classes_)
        shares = vote_shares(crowd.one_hot(), classes)
        counts = np.zeros((crowd.num_annotators, classes, classes))
        for code in range(classes):
            rows = shares[crowd.instances, code]
            cells = crowd.annotators.astype(np.int64) * classes + crowd.labels
            counts[:, code] = np.bincount(
                cells, weights=rows, minlength=crowd.num_annotators * classes
            ).reshape(-1, classes)
        errors = normalise_counts(counts, self.smoothing)
        prior = (
            np.full(classes, 1.0 / classes)
            if self.prior == "uniform"
            else (shares.mean(axis=0) + 1e-3) / (1.0 + classes * 1e-3)
        )
        network.model.set_crowd(crowd.to_dense(np.int32), np.log(errors), prior)

    def _train(self, network: Any, data: TrainingData, run: Run) -> Any:
        history = super()._train(network, data, run)
        aggregator = network.model.aggregator
        self.probas_ = np.asarray(aggregator(data.annotations.to_dense(np.int32)), dtype=np.float32)
        self.labels_ = self.probas_.argmax(axis=1)
        logs = np.asarray(aggregator.weight.numpy(), dtype=np.float64)
        errors = np.exp(logs - logs.max(axis=2, keepdims=True))
        self.confusion_matrices_ = (errors / errors.sum(axis=2, keepdims=True)).astype(np.float32)
        return history
