"""Weighted Doctor Net: a classifier per annotator on shared features.

A learnt weighted average of the classifiers predicts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neucrowd_tf.arguments import argument, estimator, fitted, number, one_of, whole
from neucrowd_tf.crowd_layers.annotator_estimator import CrowdNetwork
from neucrowd_tf.crowd_layers.instance_layer import InstanceLayer
from neucrowd_tf.crowd_layers.presets import PAPER, PRESETS, registered
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
    paper=PAPER,
    imbalanced=True,
)
@estimator
class WeightedDoctorNet(InstanceLayer):
    """Annotators' classifiers on shared features, averaged with learnt weights.

    The weights are learnt in a second phase. The base ends in a dense layer; the layers before it
    give the shared features.

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

    weight_epochs: int = argument(
        50, whole(0), "epochs of the second phase; 0 leaves the plain mean."
    )
    weight_schedule: Literal["constant", "cyclic"] = argument(
        "constant",
        one_of("constant", "cyclic"),
        '"constant" (`optimizer` at `weight_learning_rate`), or "cyclic": SGD whose rate runs'
        " between 1e-3 and 1e-2 and its momentum between .9 and .8.",
    )
    weight_learning_rate: float = argument(
        0.01,
        number(above=0),
        'of the "constant" schedule; at 1e-3 the weights stay within a tenth of equal ones.',
    )
    weight_softmax: Literal["training", "after"] = argument(
        "training",
        one_of("training", "after"),
        "\"training\" has the softmax over annotators' weights in the second phase's loss;"
        ' "after" puts it on the raw weights when they are trained, as the paper says.',
    )

    annotator_weights_: NDArray[np.float32] = fitted()
    weight_history_: dict[str, list[float]] = fitted()

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.heads.doctors import DoctorHeads

        l2 = 0.0 if self._base_config is None else self._base_config.l2
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

    def _spec(self, data: TrainingData, run: Run) -> tuple[Hashable, ...]:
        options = (self.weight_schedule, self.weight_learning_rate, self.weight_softmax)
        length = len(data.features)  # of the cyclic schedule
        return (*super()._spec(data, run), *options, length)

    def _build(self, data: TrainingData) -> DoctorNetwork:
        import keras

        from neucrowd_tf.crowd_layers.doctor_weights import DoctorWeights

        network = super()._build(data)
        average = network.whole.get_layer("average")
        inputs = network.standardise.output if network.standardised else network.whole.input
        answers = keras.Model(inputs, network.whole.output["annotators"], name="answers")
        trainer = DoctorWeights(
            answers, average, network.model.features, len(self.classes_), self.weight_softmax
        )
        return DoctorNetwork(**vars(network), average=average, weights=trainer)

    def _compile(self, network: Any, run: Run) -> None:
        super()._compile(network, run)
        if self.weight_schedule == "constant":
            self._compile_model(network.weights, network.steps, self.weight_learning_rate, run)
            return
        from neucrowd_tf.crowd_layers.doctor_weights import CyclicSGD

        network.weights.compile(
            # Half a cycle of five epochs, within the two to ten that Smith recommends.
            optimizer=CyclicSGD(half_cycle=5 * network.steps),
            steps_per_execution=run.steps_per_call(network.steps),
            jit_compile=False,
        )

    def _set_targets(self, network: Any, data: TrainingData) -> None:
        from neucrowd_tf.training.state import reinitialise

        super()._set_targets(network, data)
        reinitialise(network.weights, self.seed)
        if self.weight_softmax == "after":
            annotators = data.annotations.num_annotators
            network.average.weight.assign(np.full(annotators, 1.0 / annotators, np.float32))
        network.weights.set_draw_seed(self.seed + 1)
        network.weights.set_targets(data.annotations.observed().vote_counts())

    def _train(self, network: Any, data: TrainingData, run: Run) -> Any:
        history = self._train_phase(network, network.model, self.epochs, data, run.stage("doctors"))
        self.weight_history_ = {}
        if self.weight_epochs:
            self.weight_history_ = self._train_phase(
                network, network.weights, self.weight_epochs, data, run.stage("weights")
            ).logs
        self.annotator_weights_ = np.asarray(network.average.shares(), dtype=np.float32)
        return history
