"""NeuCrowd with the settings of its released code, where they depart from what the paper prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar

import numpy as np
import tensorflow as tf

from neucrowd_tf.declare.declarations import estimator, one_of
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Array, Fields, Floats32, Indices, Mask, Network, Tensor
from neucrowd_tf.methods.neucrowd.assurance import label_assurance
from neucrowd_tf.methods.neucrowd.estimator import SPACE, NeuCrowd
from neucrowd_tf.methods.neucrowd.joint_learning import NeuCrowdModel
from neucrowd_tf.methods.neucrowd.safety import neighbourhood_size, safe_examples
from neucrowd_tf.methods.neucrowd.sampler import SamplingNetwork
from neucrowd_tf.training.representation import EmbeddingData, adadelta
from reproduction.controls.slots import SlotDropout

# The values of src/trainRLL.py; of its two rates and two widths the larger ones, which were not
# compared. Its penalty of 2, halved by TensorFlow, is added to the sum over a batch.
BATCH = 256
PENALTY = 2.0
TUPLETS = 60_000
RELEASED: Fields = {
    "hidden_units": (256, 32),
    "normal_biases": True,
    "embedding_dropout": True,
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
    """The released code's sampling network, which learns the probability of the positive."""

    harder = -1.0

    def hardness(self, sampler: SamplingNetwork, tuplets: Tensor, training: bool) -> Tensor:
        """Returns the predicted probability `[batch]` of the positives of tuplets `[batch, n]`."""
        return tf.sigmoid(super().hardness(sampler, tuplets, training))

    def target(self, losses: Tensor) -> Tensor:
        """Returns the probabilities `[batch]` of the positives."""
        return tf.exp(-losses)


@register_method(
    "neucrowd_released",
    summary="NeuCrowd as its released code trains it, with the values of its script for other data",
    defaults=RELEASED,
    space=SPACE,
)
@estimator
class ReleasedNeuCrowd(NeuCrowd):
    """NeuCrowd as its authors' code trains it; see `NeuCrowd`.

    The assurance is the share of votes for the label; an example is its own neighbour among
    sqrt(N) + 1, equal sums are safe, and safety counts from the second epoch on; the robust anchor
    is the sum over the number of tuplets; the sampling network learns the probability of the
    positive; the epoch is chosen by the loss of validation tuplets.
    """

    raw_head: ClassVar[bool] = True
    safety_start: ClassVar[int] = 1

    anchor: str = "scaled"
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
        return safe_examples(
            embeddings, labels, assurance, k=k, margin=self.safety_margin, with_itself=True
        )

    def _model_class(self) -> type[NeuCrowdModel]:
        return ReleasedModel
