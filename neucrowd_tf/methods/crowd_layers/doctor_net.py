"""Doctor Nets: a classifier for each annotator on shared features, averaged or by vote."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Unpack

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from neucrowd_tf.declare.declarations import estimator, fitted, number, whole
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Array, Layer, Network, Tensor
from neucrowd_tf.methods.crowd_layers.common.bases import feature_extractor
from neucrowd_tf.methods.crowd_layers.common.estimator import CrowdLayerBase
from neucrowd_tf.methods.crowd_layers.common.head import (
    AnnotatorHead,
    Cells,
    HeadsUniform,
    LayerOptions,
    check_int,
    of_annotators,
    product,
)
from neucrowd_tf.methods.crowd_layers.common.model import TargetModel
from neucrowd_tf.methods.crowd_layers.common.network import CompiledNetwork
from neucrowd_tf.methods.crowd_layers.common.presets import PRESETS, SPACE, layer_fields
from neucrowd_tf.training.estimator import TrainingData
from neucrowd_tf.training.networks import BASES, configuration
from neucrowd_tf.training.run import Run
from neucrowd_tf.training.state import reinitialise


@keras.saving.register_keras_serializable("neucrowd_tf")
class DoctorHeads(AnnotatorHead):
    """A linear classifier for each annotator on shared features: `[B, h]` to logits `[B, R, C]`.

    Args:
        num_annotators: R.
        num_classes: C.
        l2: kernel penalty, `l2 * sum(kernel ** 2) / R`: one classifier's, on average.
        seed: draws the kernels.

    References:
        DASC, eq. 5.
    """

    takes_probabilities = False

    kernel: Tensor
    bias: Tensor

    def __init__(
        self,
        num_annotators: int,
        num_classes: int,
        l2: float = 0.0,
        seed: int = 0,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(num_annotators, **kwargs)
        check_int("num_classes", num_classes)
        self.num_classes = num_classes
        self.l2 = l2
        self.seed = seed

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        width = int(input_shape[-1])  # type: ignore[arg-type]
        self.annotator_weight("kernel", (width, self.num_classes), HeadsUniform(self.seed))
        self.annotator_weight("bias", (self.num_classes,), "zeros")

    def logits(self, inputs: Tensor, cells: Cells | None) -> Tensor:
        """Returns the logits of all annotators or of cells.

        References:
            DASC, eq. 5.
        """
        kernels = of_annotators(self.kernel, cells)
        return product(inputs, kernels, cells) + of_annotators(self.bias, cells)

    def penalty(self, inputs: Tensor) -> Tensor:
        """Returns the kernels' mean penalty."""
        if not self.l2:
            return 0.0
        return self.l2 * ops.sum(ops.square(self.kernel)) / self.num_annotators


@keras.saving.register_keras_serializable("neucrowd_tf")
class AnnotatorAverage(keras.layers.Layer):
    """The mean `[B, C]` of annotators' answers `[B, R, C]`, with weights softmax(w)."""

    def __init__(self, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**{"dtype": "float32", **kwargs})
        self.weight_initializer = keras.initializers.Zeros()

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.weight = self.add_weight(
            input_shape[1:2], self.weight_initializer, dtype="float32", name="weight"
        )

    def shares(self) -> Tensor:
        """Returns the weights `[R]`, which sum to one."""
        return ops.softmax(self.weight)

    def call(self, answers: Tensor) -> Tensor:
        return ops.einsum("brc,r->bc", ops.cast(answers, "float32"), self.shares())

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return (input_shape[0], input_shape[2])


class DoctorWeights(TargetModel):
    """Trains an average's weights so that it predicts the mean of each instance's observed labels.

    Args:
        answers: features to annotators' probabilities `[B, R, C]`; it stays as it is.
        average: what is trained.
        features: the crowd model's variable of features, shared.
        num_classes: C.
    """

    def __init__(
        self, answers: keras.Model, average: AnnotatorAverage, features: Tensor, num_classes: int
    ) -> None:
        super().__init__(average, features, num_classes)
        self._answers = [answers]
        self.average = average

    def set_targets(self, targets: Array) -> None:
        """Sets what is predicted: the shares of `[N, C]` votes."""
        super().set_targets(targets / np.maximum(targets.sum(axis=1, keepdims=True), 1))

    def batch_loss(self, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the sum of cross-entropies and the batch's size.

        References:
            DASC, eq. 7.
        """
        # Deviation: DASC eq. 7. Paper: Softmax over the annotators' weights after training. Here:
        # Softmax inside the loss. Why: What is trained is then what predicts. Effect: claims
        # dasc_softmax_after and dasc_softmax_after_music.
        answers = tf.stop_gradient(self._answers[0](features, training=False))
        return super().batch_loss(rows, answers)[0], tf.cast(tf.size(rows), tf.float32)


@register_method(
    "wdn",
    summary="Weighted Doctor Net: annotators' classifiers on shared features, averaged with"
    " learnt weights",
    **layer_fields("wdn"),
)
@estimator
class WeightedDoctorNet(CrowdLayerBase):
    """Annotators' classifiers on shared features, averaged with learnt weights.

    A second phase learns how much each counts. They share what is before the base's last layer.

    Attributes:
        annotator_weights_: `[R]`, how much each annotator counts; they sum to one.
        confusion_matrices_: `[R, C true, C observed]`: an annotator's mean answer over the training
            instances, weighted with the average's probability of the true class.
        model_, history_, n_iter_, best_epoch_, rows_: see `CrowdLayerBase`; `history_` is that
            of the first phase, `weight_history_` of the second.

    References:
        Guan et al. (2018), Who said what: modeling individual labelers improves classification;
        DASC, section 3.3.
    """

    sees_instances: ClassVar[bool] = True

    weight_epochs: Annotated[int, whole(0), "second phase's epochs; 0 uses the mean."] = 50
    weight_learning_rate: Annotated[
        float, number(above=0), "learning rate of the second phase."
    ] = 0.01

    weight_history_: dict[str, list[float]] = fitted()

    def _head(self, num_annotators: int, num_classes: int) -> Layer:
        l2 = getattr(configuration("base", self.base, BASES), "l2", 0.0)
        return DoctorHeads(num_annotators, num_classes, l2, name="doctors")

    def _graph(self, base: keras.Model, standardised: Tensor, head: Layer) -> tuple[Tensor, Tensor]:
        logits = head(feature_extractor(base)(standardised))
        return logits, AnnotatorAverage(name="average")(self._answers(logits))

    def _answers(self, logits: Tensor) -> Tensor:
        """Returns what is averaged over annotators, `[B, R, C]`."""
        return keras.layers.Softmax(dtype="float32")(logits)

    def _build(self, data: TrainingData) -> CompiledNetwork:
        network = super()._build(data)
        average = network.whole.get_layer("average")
        inputs = network.standardise.output if network.standardised else network.whole.input
        answers = keras.Model(inputs, network.whole.output["annotators"], name="answers")
        network.second = self._weights_model(
            answers, average, network.model.features, len(self.classes_)
        )
        return network

    def _weights_model(self, *arguments: Any) -> Network:
        """Returns what trains the average's weights, of the arguments of `DoctorWeights`."""
        return DoctorWeights(*arguments)

    def _compile(self, network: CompiledNetwork, run: Run) -> None:
        super()._compile(network, run)
        self._compile_model(network.second, network.steps, self.weight_learning_rate, run)

    def _set_targets(self, network: CompiledNetwork, data: TrainingData) -> None:
        super()._set_targets(network, data)
        reinitialise(network.second, self.seed)
        network.second.draw_seed = self.seed + 1
        network.second.set_targets(data.annotations.observed().vote_counts())

    def _train(self, network: CompiledNetwork, data: TrainingData, run: Run) -> Network:
        history = self._train_phase(network, network.model, self.epochs, data, run.stage("doctors"))
        self.weight_history_ = {}
        if self.weight_epochs:
            weight_history = self._train_phase(
                network, network.second, self.weight_epochs, data, run.stage("weights")
            )
            self.weight_history_ = weight_history.logs
        self.annotator_weights_ = np.asarray(network.second.average.shares(), dtype=np.float32)
        return history


@register_method(
    "doctor_net",
    summary="Doctor Net: a classifier for each annotator, their answers aggregated by a weighted"
    " majority vote",
    presets=PRESETS["wdn"],
    space=SPACE,
)
@estimator
class DoctorNet(WeightedDoctorNet):
    """Weighted Doctor Net whose doctors vote for their most probable class, with their weights.

    References:
        CrowdInG, section 4.4.1; Guan et al. (2018), as of `WeightedDoctorNet`.
    """

    def _answers(self, logits: Tensor) -> Tensor:
        # Deviation: CrowdInG 4.4.1, Doctor Net. Paper: What doctors predict is "aggregated by
        # weighted majority vote"; Guan et al. (2018) average the doctors' distributions. Here: A
        # doctor's most probable label counts, one-hot, with the doctor's learnt weight
        # (`doctor_net`); `wdn` averages the distributions of the same doctors. Why: CrowdInG's
        # words. Effect: claim crowding_doctor_net.
        # Deviation: CrowdInG 4.4.1. Paper: Doctor Net: a network for each annotator. Here: A head
        # for each annotator on shared features, learnt weights for their votes. Why: A few dozen
        # images each. Effect: not measured.
        return ops.one_hot(ops.argmax(logits, axis=-1), len(self.classes_), dtype="float32")
