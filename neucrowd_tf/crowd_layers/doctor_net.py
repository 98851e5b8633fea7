"""Weighted Doctor Net: a classifier for each annotator on shared features, and a learnt average of
them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neucrowd_tf.crowd_layers.estimator import AnnotatorEstimator, CrowdNetwork
from neucrowd_tf.crowd_layers.presets import PRESETS, SPACE, registered
from neucrowd_tf.errors import UsageError
from neucrowd_tf.training.arguments import check_number, check_whole
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    import keras
    from numpy.typing import NDArray


@dataclasses.dataclass
class DoctorNetwork(CrowdNetwork):
    """Weighted Doctor Net's network; see `CrowdNetwork`.

    Attributes:
        average: the layer with annotators' weights.
        weights: the model that trains it.
    """

    average: Any = None
    weights: Any = None


@registered(
    "wdn",
    "Weighted Doctor Net: a classifier for each annotator on shared features, averaged with learnt"
    " weights",
    PRESETS["wdn"],
    SPACE,
)
class WeightedDoctorNet(AnnotatorEstimator):
    """Annotators' classifiers on shared features; in a second phase, how much each of them counts
    in the average.

    Args:
        base, hidden_units, activation, dropout, batch_norm, l2, square_root, standardise, augment,
        pretrained, weights, imbalance,
            gamma, beta, optimizer, learning_rate, batch_size, epochs, monitor, patience,
            validation_fraction, seed: as of `CrowdLayer`. The base ends in a dense layer; what
            comes before it are the shared features.
        weight_epochs: epochs of the second phase; 0 leaves the plain mean.
        weight_schedule: "constant" (`optimizer` at `weight_learning_rate`), or "cyclic": SGD whose
            rate runs between 1e-3 and 1e-2 and its momentum between .9 and .8.
        weight_learning_rate: of the "constant" schedule.
        weight_softmax: "training" has the softmax over annotators' weights in the second phase's
            loss; "after" puts it on the raw weights when they are trained, as the paper says.

    Attributes:
        annotator_weights_: `[R]`, how much each annotator counts; they sum to one.
        confusion_matrices_: `[R, C true, C observed]`: an annotator's mean answer over the training
            instances, weighted with the average's probability of the true class. This model has no
            matrices of its own.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`; `history_` is that
            of the first phase, `weight_history_` of the second.

    References:
        Guan et al. (2018), Who said what: modeling individual labelers improves classification;
        DASC, eqs. 5 to 7.
    """

    def __init__(
        self,
        base: Any = "dense",
        *,
        weight_epochs: int = 50,
        weight_schedule: Literal["constant", "cyclic"] = "constant",
        weight_learning_rate: float = 1e-3,
        weight_softmax: Literal["training", "after"] = "training",
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
        self.weight_epochs = weight_epochs
        self.weight_schedule = weight_schedule
        self.weight_learning_rate = weight_learning_rate
        self.weight_softmax = weight_softmax
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
        if self.weight_schedule not in ("constant", "cyclic"):
            raise UsageError(
                "weight_schedule: expected 'constant' or 'cyclic', received"
                f" {self.weight_schedule!r}"
            )
        if self.weight_softmax not in ("training", "after"):
            raise UsageError(
                f"weight_softmax: expected 'training' or 'after', received {self.weight_softmax!r}"
            )
        check_whole("weight_epochs", self.weight_epochs, 0)
        check_number("weight_learning_rate", self.weight_learning_rate, above=0)

    def _graph(
        self, base: keras.Model, inputs: Any, standardised: Any, num_annotators: int
    ) -> tuple[Any, Any, Any]:
        import keras

        from neucrowd_tf.crowd_layers.bases import feature_extractor
        from neucrowd_tf.crowd_layers.doctor_weights import AnnotatorAverage
        from neucrowd_tf.crowd_layers.layers import DoctorHeads

        head = DoctorHeads(num_annotators, len(self.classes_), self.l2, self.seed, name="doctors")
        logits = head(feature_extractor(base)(standardised))
        self._average = AnnotatorAverage(name="average")
        return head, logits, self._average(keras.layers.Softmax(dtype="float32")(logits))

    def _build(self, data: TrainingData) -> DoctorNetwork:
        import keras

        from neucrowd_tf.crowd_layers.doctor_weights import DoctorWeights

        made = super()._build(data)
        average = self.__dict__.pop("_average")
        answers = keras.Model(made.whole.input, made.whole.output["annotators"], name="answers")
        trainer = DoctorWeights(
            answers, average, made.model._features, len(self.classes_), self.weight_softmax
        )
        return DoctorNetwork(**vars(made), average=average, weights=trainer)

    def _compile(self, network: Any, run: Run) -> None:
        from neucrowd_tf.crowd_layers.doctor_weights import CyclicSGD
        from neucrowd_tf.nn.encoders import make_optimizer

        super()._compile(network, run)
        if self.weight_schedule == "cyclic":
            # Half a cycle of five epochs, within the two to ten that Smith recommends.
            optimizer: Any = CyclicSGD(half_cycle=5 * network.steps)
        else:
            optimizer = make_optimizer(self.optimizer, self.weight_learning_rate)
        network.weights.compile(
            optimizer=optimizer,
            steps_per_execution=run.steps_per_call(network.steps),
            jit_compile=False,
        )

    def _set_targets(self, network: Any, data: TrainingData) -> None:
        from neucrowd_tf.training.state import reinitialise

        super()._set_targets(network, data)
        reinitialise(network.weights, self.seed)
        if self.weight_softmax == "after":
            network.average.weight.assign(
                np.full(
                    data.annotations.num_annotators,
                    1.0 / data.annotations.num_annotators,
                    np.float32,
                )
            )
        network.weights.set_draw_seed(self.seed + 1)
        network.weights.set_targets(data.annotations.vote_counts())

    def _train(self, network: Any, data: TrainingData, run: Run) -> Any:
        history = self._train_phase(
            network.model, network.batches, network.steps, self.epochs, data, run.stage("doctors")
        )
        self.weight_history_: dict[str, list[float]] = {}
        if self.weight_epochs:
            second = self._train_phase(
                network.weights,
                network.batches,
                network.steps,
                self.weight_epochs,
                data,
                run.stage("weights"),
            )
            self.weight_history_ = second.logs
        self.annotator_weights_ = np.asarray(network.average.shares(), dtype=np.float32)
        return history

    def _confusion_matrices(self, network: Any, data: TrainingData) -> NDArray[np.float32]:
        classes, annotators = len(self.classes_), data.annotations.num_annotators
        sums, mass = np.zeros((annotators, classes, classes)), np.zeros(classes)
        rows = max(1, min(self._rows_at_once(), (1 << 22) // (annotators * classes)))
        for start in range(0, len(data.features), rows):
            part = data.features[start : start + rows]
            probabilities = self._predict_proba(part).astype(np.float64)
            answers = self._outputs("annotators", part)
            sums += np.einsum("bt,brc->rtc", probabilities, answers, optimize=True)
            mass += probabilities.sum(axis=0)
        means = sums / np.maximum(mass, 1e-12)[None, :, None]
        return np.asarray(
            means / np.maximum(means.sum(axis=2, keepdims=True), 1e-12), dtype=np.float32
        )
