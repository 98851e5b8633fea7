"""CrowdAR: the reliability of each annotation.

It follows from the instance's difficulty and the annotator's expertise.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Unpack

import keras
import tensorflow as tf
from keras import ops

from neucrowd_tf.declare.declarations import estimator, number
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Fields, Layer, Shape, Tensor
from neucrowd_tf.methods.crowd_layers.common.estimator import CrowdLayerBase
from neucrowd_tf.methods.crowd_layers.common.head import (
    AnnotatorHead,
    Cells,
    HeadsUniform,
    LayerOptions,
    of_annotators,
    product,
    stacked_identity,
)
from neucrowd_tf.methods.crowd_layers.common.model import AnnotationModel
from neucrowd_tf.methods.crowd_layers.common.presets import layer_fields
from neucrowd_tf.training.estimator import TrainingData


@keras.saving.register_keras_serializable("neucrowd_tf")
class ReliabilityHead(AnnotatorHead):
    """A crowd layer that also says how reliable an annotation is.

    From `[p [B, C], h [B, d]]`, class probabilities and shared features, it gives logits `p W_k`.
    The reliability comes from the instance's difficulty and the annotator's expertise.

    Args:
        num_annotators: R.
        hidden_units: of the network that says how difficult an instance is.
        seed: draws its weights.

    References:
        Cao et al. (2023), Learning from crowds with annotation reliability, eqs. 1, 2 and 4.
    """

    matrix: Tensor
    expertise: Tensor

    def __init__(
        self,
        num_annotators: int,
        hidden_units: int = 128,
        seed: int = 0,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(num_annotators, **kwargs)
        self.hidden_units = hidden_units
        self.seed = seed

    def _dense(self, width: int, draw: int, **options: object) -> keras.layers.Dense:
        kernel = keras.initializers.GlorotUniform(self.seed + draw)
        return keras.layers.Dense(
            width, kernel_initializer=kernel, dtype=self.compute_dtype, **options
        )

    def build(self, input_shape: Shape) -> None:
        classes = int(input_shape[0][-1])
        width = int(input_shape[1][-1])
        self.annotator_weight("matrix", (classes, classes), stacked_identity(classes))
        self.annotator_weight("expertise", (1, classes), HeadsUniform(self.seed))
        self.hidden = self._dense(self.hidden_units, 1, activation="sigmoid")
        self.difficulty = self._dense(classes, 2, activation="sigmoid")
        # Expertise above the difficulty never makes an annotation less reliable.
        self.score = self._dense(1, 3, kernel_constraint=keras.constraints.NonNeg())
        self.hidden.build((None, width))
        self.difficulty.build((None, self.hidden_units))
        self.score.build((None, classes))

    def reliability(self, inputs: Tensor, rows: Tensor, annotators: Tensor) -> Tensor:
        """Returns `[K]`: how likely each of K annotations is right.

        References:
            Cao et al. (2023), eqs. 1 and 2.
        """
        p = ops.cast(inputs[0], self.compute_dtype)
        features = ops.stop_gradient(ops.cast(inputs[1], self.compute_dtype))
        difficulty = ops.take(self.difficulty(self.hidden(features)), rows, axis=0)
        expertise = ops.sigmoid(ops.take(self.expertise, annotators, axis=0)[:, 0])
        above = (expertise - difficulty) * ops.take(p, rows, axis=0)
        return ops.sigmoid(self.score(above))[:, 0]

    def logits(self, inputs: Tensor, cells: Cells | None) -> Tensor:
        return product(inputs[0], of_annotators(self.matrix, cells), cells)


class ReliabilityModel(AnnotationModel):
    """CrowdAR's model: annotations are softened by their estimated reliability.

    The reliability learns whether the classifier agrees with an annotation.

    Args:
        share: lambda of eq. 5, of the annotations' part.
    """

    def __init__(self, *args: Any, share: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self.share = share

    def batch_loss(self, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Returns two sums: of the weighted losses, and of the weights.

        References:
            Cao et al. (2023), eqs. 3 and 5.
        """
        _, within, annotators, labels, weights = self.gathered(rows)
        inputs = self.network(features, training=True)
        logits = self.head(inputs, (within, annotators))
        reliable = self.head.reliability(inputs, within, annotators)
        uniform = -tf.reduce_mean(tf.nn.log_softmax(logits), axis=1)
        annotated = reliable * self.losses_of(labels, logits) + (1.0 - reliable) * uniform
        agreed = tf.argmax(tf.gather(inputs[0], within), axis=1, output_type=tf.int32) == labels
        right = tf.where(agreed, reliable, 1.0 - reliable)
        reliability_losses = -tf.math.log(tf.maximum(right, 1e-7))
        losses = self.share * annotated + (1.0 - self.share) * reliability_losses
        return tf.reduce_sum(weights * losses), tf.reduce_sum(weights)


@register_method(
    "crowdar",
    summary="CrowdAR: annotations softened by their reliability, which learns from the classifier",
    **layer_fields(),
)
@estimator
class CrowdAR(CrowdLayerBase):
    """A classifier behind annotators' matrices, trained on labels softened by reliability.

    The base ends in a dense layer; the layers before it say how difficult an instance is.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: an annotator's mean answer over the training
            instances, weighted with the classifier's probability of the true class.
        model_, history_, n_iter_, best_epoch_, rows_: see `CrowdLayerBase`.

    References:
        Cao et al. (2023), eqs. 1 to 5.
    """

    sees_instances: ClassVar[bool] = True
    shares_features: ClassVar[bool] = True

    annotation_share: Annotated[
        float, number(least=0, most=1), "lambda, weight of the annotations' loss."
    ] = 0.9

    def _head(self, num_annotators: int, num_classes: int) -> Layer:
        return ReliabilityHead(num_annotators, name="reliability")

    def _annotation_model(self, data: TrainingData) -> tuple[Tensor, Fields]:
        return ReliabilityModel, {"share": self.annotation_share}
