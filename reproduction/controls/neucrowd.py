"""NeuCrowd with the settings of its released code, where they depart from what the paper prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import keras
import numpy as np
import tensorflow as tf
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.class_weight import compute_sample_weight

from neucrowd_tf.declare.declarations import estimator, one_of
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Array, Fields, Floats32, Indices, Layer, Mask, Network, Tensor
from neucrowd_tf.errors import one_at_a_time
from neucrowd_tf.methods.neucrowd.assurance import label_assurance
from neucrowd_tf.methods.neucrowd.estimator import SPACE, NeuCrowd
from neucrowd_tf.methods.neucrowd.joint_learning import NeuCrowdModel
from neucrowd_tf.methods.neucrowd.robust_anchor import robust_anchors
from neucrowd_tf.methods.neucrowd.safety import neighbourhood_size, neighbours_assurance
from neucrowd_tf.methods.neucrowd.sampler import SamplingNetwork
from neucrowd_tf.nn.steps import summed
from neucrowd_tf.training.logistic_head import LinearHead, fit_logistic
from neucrowd_tf.training.networks import ENCODERS, configuration
from neucrowd_tf.training.representation import EmbeddingData, adadelta
from reproduction.controls.slots import DroppedEmbedding, SlotDropout

# The values of src/trainRLL.py; of its two rates and two widths the larger ones, which were not
# compared. Its penalty of 2, halved by TensorFlow, is added to the sum over a batch.
BATCH = 256
PENALTY = 2.0
TUPLETS = 60_000
_BIAS_STRIDE = 1019
RELEASED: Fields = {
    "hidden_units": (256, 32),
    "l2": PENALTY / 2 / BATCH,
    "batch_size": BATCH,
    "steps_per_epoch": TUPLETS // BATCH,
    "epochs": 50,
    "eta": 2.0,
    "optimizer": adadelta(0.05),
    "standardise": False,
    "Cs": (1.0,),
    "weight_inside": False,
    "unsafe_weight": 0.02,
}


class ReleasedModel(SlotDropout, NeuCrowdModel):
    """The released code's sampling network and its anchor.

    The sampling network learns the probability of the positive, which is low for hard tuplets; here
    its hardness is that with the other sign.
    """

    def hardness(self, sampler: SamplingNetwork, tuplets: Tensor, training: bool) -> Tensor:
        """Returns minus the predicted probability `[batch]` of the positives of tuplets."""
        return -tf.sigmoid(super().hardness(sampler, tuplets, training))

    def sampler_step(
        self, sampler: SamplingNetwork, tuplets: Tensor, hardness: Tensor
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Learns the probabilities of the positives from the losses `[batch]`."""
        return super().sampler_step(sampler, tuplets, -tf.exp(-hardness))

    def anchors(
        self, embeddings: Tensor, tuplets: Tensor, classes: Tensor, training: bool
    ) -> Tensor:
        """Returns the embeddings' sum over the number of tuplets, with the anchor "scaled"."""
        if self.anchor != "scaled":
            return super().anchors(embeddings, tuplets, classes, training)
        size = len(self.index.classes)
        assurance = tf.gather(self.confidence, tuplets[:, 0])
        total = robust_anchors(embeddings[:, 0], assurance, classes, size, reduction="sum")
        counts = summed(tf.reduce_sum(tf.one_hot(classes, size, dtype=total.dtype), axis=0))
        return tf.gather(total / tf.maximum(counts, 1e-12)[:, None], classes)


@register_method(
    "neucrowd_released",
    summary="NeuCrowd as its released code trains it, with the values of its script for other data",
    defaults=RELEASED,
    space=SPACE,
)
@estimator
class ReleasedNeuCrowd(DroppedEmbedding, NeuCrowd):
    """NeuCrowd as its authors' code trains it; see `NeuCrowd`.

    The assurance is the share of votes for the label; an example is its own neighbour among
    sqrt(N) + 1, equal sums are safe, and safety counts from the second epoch on; the robust anchor
    is the sum over the number of tuplets; the sampling network learns the probability of the
    positive; the epoch is chosen by the loss of validation tuplets.
    """

    anchor: Annotated[
        str,
        one_of("mean", "sum", "embedding_sum", "scaled", "none"),
        'the robust anchor as for `NeuCrowd`; "scaled" is the sum over the number of tuplets.',
    ] = "scaled"
    monitor: Annotated[
        str,
        one_of("loss", "auc", "accuracy", "log_loss"),
        'the validation figure that chooses the epoch: the "loss" of validation tuplets, "auc",'
        ' "accuracy" or "log_loss".',
    ] = "loss"

    def _judge(self, model: Network, data: EmbeddingData) -> Callable[[], Mapping[str, float]]:
        # Deviation: NeuCrowd section 4.3. Paper: The released code stops by the loss on validation
        # tuplets, weighted by the votes of validation instances. Here: `neucrowd_released` does the
        # same, and the labels of validation instances count fully. Why: Their votes are not known
        # to `fit()`. Effect: Which epoch is kept.
        full = np.ones(len(data.validation), np.float32)
        instances = data.validation, data.validation_labels, full
        validation_model = self._model(model.encoder, *instances, **self._options())
        return lambda: {"loss": validation_model.fixed_loss(4096, as_trained=True)}

    def _assurance(self, votes: Array) -> Floats32:
        return label_assurance(votes, "share")

    def _safe_examples(self, embeddings: Array, labels: Indices, assurance: Floats32) -> Mask:
        k = neighbourhood_size(len(labels), len(labels)) + 1
        search = NearestNeighbors(n_neighbors=k).fit(embeddings)
        neighbours = search.kneighbors(embeddings, return_distance=False)
        agreeing, other = neighbours_assurance(neighbours, labels, assurance)
        return agreeing >= other + self.safety_margin

    def _before_epoch(
        self, model: Network, data: EmbeddingData, epoch: int
    ) -> Mapping[str, float] | None:
        figures = super()._before_epoch(model, data, epoch)
        if epoch == 0:
            model.set_probabilities(None)
        return figures

    def _make_encoder(
        self, input_shape: tuple[int, ...], seed: int, name: str = "encoder"
    ) -> keras.Model:
        """Returns an encoder whose biases start from N(0, 1)."""
        encoder = super()._make_encoder(input_shape, seed, name)
        if callable(configuration("encoder", self.encoder, ENCODERS)):
            return encoder

        def copied(layer: Layer) -> Layer:
            config = layer.get_config()
            if isinstance(layer, keras.layers.Dense):
                index = int(layer.name.removeprefix("dense_"))
                draw = seed * _BIAS_STRIDE + index
                config["bias_initializer"] = keras.initializers.RandomNormal(0.0, 1.0, draw)
            return type(layer).from_config(config)

        return keras.models.clone_model(encoder, clone_function=copied)

    def _head(
        self,
        embedded: Floats32,
        labels: Indices,
        Cs: Sequence[float],
        validation: tuple[Array, Array] | None = None,
    ) -> LinearHead:
        """Fits a regression to the embedding as it is, whose classes weigh the same."""
        with one_at_a_time():
            weight = compute_sample_weight("balanced", labels)
        size = len(self.classes_)
        return fit_logistic(
            embedded, labels, size, Cs, validation, weight, self.seed, standardise=False
        )

    def _model_class(self) -> type[NeuCrowdModel]:
        return ReleasedModel
