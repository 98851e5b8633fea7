"""AggNet: expectation-maximisation whose classifier is a deep network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.aggregation.base import normalise_counts, normalise_log, vote_shares
from neucrowd_tf.crowd_layers.network import ClassifierEstimator, Network
from neucrowd_tf.crowd_layers.presets import PRESETS, SPACE
from neucrowd_tf.errors import UsageError
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.annotations import Annotations

_TINY = 1e-12


def soft_confusions(
    annotations: Annotations, posterior: NDArray[np.float64], smoothing: float
) -> NDArray[np.float64]:
    """Returns the annotators' confusion matrices `[R, C true, C observed]` under a posterior over
    the classes (the M-step).

    For two classes the diagonal is the paper's sensitivity and specificity.

    Args:
        posterior: `[N, C]`.
        smoothing: pseudo-count of every cell.

    References:
        Albarqouni et al. (2016), eqs. 5 and 6.
    """
    classes = annotations.num_classes
    # [R * C observed, C true] expected counts, from the one-hot matrix [N, R * C observed].
    counts = np.asarray(annotations.one_hot().T @ posterior).reshape(
        annotations.num_annotators, classes, classes
    )
    return normalise_counts(counts.transpose(0, 2, 1), smoothing)


def crowd_posterior(
    annotations: Annotations, errors: NDArray[np.float64], predicted: NDArray[Any]
) -> NDArray[np.float64]:
    """Returns the posterior `[N, C]` of each instance's class (the E-step): the classifier's
    prediction times the annotations' likelihood.

    Args:
        errors: `[R, C true, C observed]`.
        predicted: `[N, C]` the classifier's probabilities.

    References:
        Albarqouni et al. (2016), eq. 4; Raykar et al. (2010), eq. 10.
    """
    classes = annotations.num_classes
    logs = np.log(np.maximum(errors, _TINY)).transpose(0, 2, 1).reshape(-1, classes)
    posterior = np.asarray(annotations.one_hot() @ logs) + np.log(
        np.maximum(predicted.astype(np.float64), _TINY)
    )
    normalise_log(posterior, np.zeros(classes))
    return posterior


@register_method(
    "aggnet",
    summary="AggNet: EM over the classes, the annotators' confusion matrices and a deep classifier",
    requires_identities=True,
    presets=PRESETS["crowd_layer"],
    space={**SPACE, "rounds": (3, 5, 10)},
    paper=(
        "Albarqouni et al.: AggNet: Deep Learning From Crowds for Mitosis Detection in Breast"
        " Cancer Histology Images, TMI 2016"
    ),
)
class AggNet(ClassifierEstimator):
    """Trains a classifier on soft labels, weighs its predictions against the annotations, and
    trains it on with what comes out.

    Args:
        rounds: how often the two take turns. The network trains `epochs` epochs on vote shares at
            first, and `round_epochs` in each further round, from where it stands.
        round_epochs: None divides `epochs` by the number of rounds.
        smoothing: pseudo-count of every cell of the confusion matrices.
        base, hidden_units, activation, dropout, batch_norm, l2, square_root, standardise, augment,
        pretrained, weights, optimizer,
            learning_rate, batch_size, epochs, monitor, patience, validation_fraction, seed: as of
            `CrowdLayer`.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`.
        probas_: `[N, C]` posteriors and labels_ `[N]` class codes of the training instances.
        model_: Keras model from raw features to {"probabilities" `[None, C]`}.
        history_: of the last round; n_iter_: its epochs; best_epoch_, rows_: as of `CrowdLayer`.

    References:
        Albarqouni et al. (2016), section II.
    """

    requires_identities = True

    confusion_matrices_: NDArray[np.float64]
    probas_: NDArray[np.float64]
    labels_: NDArray[np.int64]

    def __init__(
        self,
        base: str | Any | Callable[..., Any] = "dense",
        *,
        rounds: int = 5,
        round_epochs: int | None = None,
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
        self.rounds = rounds
        self.round_epochs = round_epochs
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
        if not isinstance(self.rounds, (int, np.integer)) or self.rounds < 1:
            raise UsageError(f"rounds: expected a whole number from 1, received {self.rounds!r}")
        if self.round_epochs is not None and self.round_epochs < 1:
            raise UsageError(
                "round_epochs: expected a whole number from 1 or None, received"
                f" {self.round_epochs!r}"
            )
        if not self.smoothing > 0:
            raise UsageError(f"smoothing: expected a number above 0, received {self.smoothing!r}")

    def _build(self, data: TrainingData) -> Network:
        import keras

        from neucrowd_tf.crowd_layers.bases import standardised
        from neucrowd_tf.crowd_layers.target_model import TargetModel

        base = self._make_base(data.features.shape[1:], len(self.classes_))
        classifier, layer = standardised(base, data.features.shape[1:], self.square_root)
        model = TargetModel(
            classifier, data.features, len(self.classes_), augment=self._augmentation()
        )
        whole = keras.Model(classifier.input, {"probabilities": classifier.output}, name="aggnet")
        return Network(model=model, whole=whole, base=base, standardise=layer)

    def _set_targets(self, network: Any, data: TrainingData) -> None:
        network.model.set_targets(vote_shares(data.annotations.one_hot(), len(self.classes_)))

    def _train(self, network: Any, data: TrainingData, run: Run) -> Any:
        later = self.round_epochs or max(1, self.epochs // self.rounds)
        posterior = vote_shares(data.annotations.one_hot(), len(self.classes_))
        for index in range(self.rounds):
            network.model.set_draw_seed(self.seed + 7907 * index)
            stage = run.stage(f"round-{index + 1}")
            history = self._train_phase(
                network.model,
                network.batches,
                network.steps,
                later if index else self.epochs,
                data,
                stage,
            )
            # M-step of the annotators under the posterior that trained the network, then the E-step
            # with both.
            self.confusion_matrices_ = soft_confusions(data.annotations, posterior, self.smoothing)
            posterior = crowd_posterior(
                data.annotations, self.confusion_matrices_, self._predict_proba(data.features)
            )
            network.model.set_targets(posterior)
        self.probas_, self.labels_ = posterior, posterior.argmax(axis=1)
        return history
