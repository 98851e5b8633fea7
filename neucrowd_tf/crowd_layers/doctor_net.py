"""Weighted Doctor Net: a classifier for each annotator, and a learnt average.

The classifiers share features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from neucrowd_tf.crowd_layers.classifier import Network
from neucrowd_tf.crowd_layers.instance_layer import InstanceLayer
from neucrowd_tf.crowd_layers.presets import PRESETS, registered
from neucrowd_tf.declare import estimator, fitted, number, whole
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.networks import BASES, configuration
from neucrowd_tf.training.run import Run

if TYPE_CHECKING:
    import keras


@registered(
    "wdn",
    "Weighted Doctor Net: a classifier for each annotator on shared features, averaged with learnt"
    " weights",
    PRESETS["wdn"],
    imbalanced=True,
)
@estimator
class WeightedDoctorNet(InstanceLayer):
    """Annotators' classifiers on shared features, averaged with learnt weights.

    A second phase learns how much each of them counts. The base ends in a dense layer; what comes
    before it are the shared features.

    Attributes:
        annotator_weights_: `[R]`, how much each annotator counts; they sum to one.
        confusion_matrices_: `[R, C true, C observed]`: an annotator's mean answer over the training
            instances, weighted with the average's probability of the true class. This model has no
            matrices of its own.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`; `history_` is that
            of the first phase, `weight_history_` of the second.

    References:
        Guan et al. (2018), Who said what: modeling individual labelers improves classification;
        DASC, section 3.3.
    """

    weight_epochs: Annotated[
        int, whole(0), "epochs of the second phase; 0 leaves the plain mean."
    ] = 50
    weight_learning_rate: Annotated[
        float, number(above=0), "of the second phase; at 1e-3 the weights hardly leave equal ones."
    ] = 0.01

    annotator_weights_: NDArray[np.float32] = fitted()
    weight_history_: dict[str, list[float]] = fitted()

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.heads.doctors import DoctorHeads

        l2 = getattr(configuration("base", self.base, BASES), "l2", 0.0)
        return DoctorHeads(num_annotators, num_classes, l2, name="doctors")

    def _graph(self, base: keras.Model, standardised: Any, head: Any) -> tuple[Any, Any]:
        from neucrowd_tf.crowd_layers.bases import feature_extractor
        from neucrowd_tf.crowd_layers.doctor_weights import AnnotatorAverage

        logits = head(feature_extractor(base)(standardised))
        return logits, AnnotatorAverage(name="average")(self._answers(logits))

    def _answers(self, logits: Any) -> Any:
        """Returns what is averaged over annotators, `[B, R, C]`."""
        import keras

        return keras.layers.Softmax(dtype="float32")(logits)

    def _build(self, data: TrainingData) -> Network:
        import keras

        network = super()._build(data)
        average = network.whole.get_layer("average")
        inputs = network.standardise.output if network.standardised else network.whole.input
        answers = keras.Model(inputs, network.whole.output["annotators"], name="answers")
        network.second = self._weights_model(
            answers, average, network.model.features, len(self.classes_)
        )
        return network

    def _weights_model(self, *parts: Any) -> Any:
        """Returns what trains the average's weights, of the arguments of `DoctorWeights`."""
        from neucrowd_tf.crowd_layers.doctor_weights import DoctorWeights

        return DoctorWeights(*parts)

    def _compile(self, network: Any, run: Run) -> None:
        super()._compile(network, run)
        self._compile_model(network.second, network.steps, self.weight_learning_rate, run)

    def _set_targets(self, network: Any, data: TrainingData) -> None:
        from neucrowd_tf.training.state import reinitialise

        super()._set_targets(network, data)
        reinitialise(network.second, self.seed)
        network.second.set_draw_seed(self.seed + 1)
        network.second.set_targets(data.annotations.observed().vote_counts())

    def _train(self, network: Any, data: TrainingData, run: Run) -> Any:
        history = self._train_phase(network, network.model, self.epochs, data, run.stage("doctors"))
        self.weight_history_ = {}
        if self.weight_epochs:
            self.weight_history_ = self._train_phase(
                network, network.second, self.weight_epochs, data, run.stage("weights")
            ).logs
        self.annotator_weights_ = np.asarray(network.second.average.shares(), dtype=np.float32)
        return history
