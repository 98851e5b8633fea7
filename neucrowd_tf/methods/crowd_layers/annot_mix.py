"""annot-mix: mixup of instances, annotators and labels."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Unpack

import keras
import tensorflow as tf
from keras import ops

from neucrowd_tf.declare.declarations import estimator, number
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Fields, Layer, Shape, Tensor
from neucrowd_tf.methods.crowd_layers.common.estimator import CrowdLayerBase
from neucrowd_tf.methods.crowd_layers.common.head import LayerOptions
from neucrowd_tf.methods.crowd_layers.common.instance_confusion import (
    EmbeddingSize,
    InstanceConfusion,
    StartingAccuracy,
    batch_norm,
)
from neucrowd_tf.methods.crowd_layers.common.mixing import mixed, mixing_draws
from neucrowd_tf.methods.crowd_layers.common.model import AnnotationModel
from neucrowd_tf.methods.crowd_layers.common.presets import INSTANCE_PRESETS, layer_fields
from neucrowd_tf.training.estimator import TrainingData


@keras.saving.register_keras_serializable("neucrowd_tf")
class AnnotMixHead(InstanceConfusion):
    """annot-mix: both embeddings side by side, half of them dropped, a layer with batch norm.

    Args:
        num_annotators, num_classes, embedding_size, eta, seed: see `InstanceConfusion`.

    References:
        Herde, Luehrs, Huseljic and Sick (2024), Annot-mix: learning with noisy class labels from
        multiple annotators via a mixup extension, section 3.
    """

    detached = True

    def __init__(
        self,
        num_annotators: int,
        num_classes: int,
        embedding_size: int = 128,
        eta: float = 0.9,
        seed: int = 0,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(num_annotators, num_classes, embedding_size, eta, seed, **kwargs)
        self.dropped = keras.layers.Dropout(0.5, seed=seed + 3, dtype=self.compute_dtype)
        self.hidden = self._dense(embedding_size, "hidden", 4)
        self.normalised = batch_norm(self.compute_dtype)

    def build(self, input_shape: Shape) -> None:
        super().build(input_shape)
        self.hidden.build((None, 2 * self.embedding_size))
        self.normalised.build((None, self.embedding_size))

    def _joined(self, instances: Tensor, annotators: Tensor) -> Tensor:
        pairs = self.dropped(ops.concatenate([instances, annotators], axis=1))
        return ops.relu(self.normalised(self.hidden(pairs)))


class AnnotMixModel(AnnotationModel):
    """annot-mix: mixup of instances, annotators and labels at once.

    Args:
        alpha: of the coefficients' Beta distribution.
    """

    whole_batch = True

    def __init__(self, *args: Any, alpha: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self.alpha = alpha

    def batch_loss(self, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Returns two sums: of the weighted losses, and of the weights.

        References:
            Herde et al. (2024), section 3.
        """
        _, within, annotators, labels, weights = self.gathered(rows)
        shares, partners = mixing_draws(self._step_seed, tf.size(labels), self.alpha)
        blended = mixed(tf.gather(features, within), shares, partners)
        # An embedding is linear in the annotator's one-hot vector, so embeddings can be mixed.
        embeddings = mixed(tf.gather(self.head.annotators(), annotators), shares, partners)
        cells = (tf.range(tf.size(labels)), embeddings)
        answers = self.head(self.network(blended, training=True), cells, training=True)
        label_weights = shares * weights
        partner_weights = (1.0 - shares) * tf.gather(weights, partners)
        losses = label_weights * self.losses_of(labels, answers)
        losses += partner_weights * self.losses_of(tf.gather(labels, partners), answers)
        return tf.reduce_sum(losses), tf.reduce_sum(label_weights + partner_weights)


@register_method(
    "annot_mix",
    summary="annot-mix: confusions of instance and annotator, trained on mixed instances,"
    " annotators and labels",
    **layer_fields(presets=INSTANCE_PRESETS),
)
@estimator
class AnnotMix(CrowdLayerBase):
    """Classifier behind a confusion matrix per instance and annotator, trained on mixtures.

    Instances, annotators and labels are mixed. The base ends in a dense layer; the layers before it
    represent the instance.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: an annotator's mean answer over the training
            instances, weighted with the classifier's probability of the true class.
        model_, history_, n_iter_, best_epoch_, rows_: see `CrowdLayerBase`.

    References:
        Herde et al. (2024), section 3.
    """

    sees_instances: ClassVar[bool] = True
    shares_features: ClassVar[bool] = True

    # What is mixed are features as they are given.
    standardised_once: ClassVar[bool] = False

    alpha: Annotated[
        float, number(above=0), "parameter of the Beta distribution; near 0 nothing is mixed."
    ] = 1.0
    eta: StartingAccuracy = 0.9
    embedding_size: EmbeddingSize = 128

    # Deviation: annot-mix, MaDL. Paper: One learning rate. Here: The annotators' network learns at
    # 1e-4 (`annotator_learning_rate`); on LabelMe and Music, whose features are fixed, at the
    # classifier's 1e-3 as in the paper. Why: Where features are not fixed, matrices that see the
    # instance learn its labels before the classifier does, and classes swap. Effect: not measured.
    annotator_learning_rate: float | None = 1e-4

    def _head(self, num_annotators: int, num_classes: int) -> Layer:
        return AnnotMixHead(
            num_annotators, num_classes, self.embedding_size, self.eta, name="annot_mix"
        )

    def _annotation_model(self, data: TrainingData) -> tuple[Tensor, Fields]:
        return AnnotMixModel, {"alpha": self.alpha}
