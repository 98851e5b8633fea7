"""The model that `neucrowd_control` trains."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from baselines.neucrowd_joint_model import WeightedTupletModel
from neucrowd_tf.neucrowd.joint_learning import NeuCrowdModel
from neucrowd_tf.neucrowd.sampler import SamplingNetwork


class ControlledModel(NeuCrowdModel):
    """NeuCrowd's model with another loss or selection."""

    def __init__(self, *arguments: Any, weight_loss: bool, selection: str, **options: Any) -> None:
        """Sets up training.

        Args:
            arguments: of `NeuCrowdModel`.
            weight_loss: whether the positive's assurance weighs the loss.
            selection: "learned", "random" or "oracle".
            options: of `NeuCrowdModel`.
        """
        super().__init__(*arguments, **options)
        self.weight_loss, self.selection = weight_loss, selection

    def losses_to(self, anchors: Any, embeddings: Any, tuplets: Any) -> Any:
        """Returns the losses `[batch]` of tuplets whose anchors' embeddings are `[batch, h]`."""
        if self.weight_loss:
            return WeightedTupletModel.losses_to(self, anchors, embeddings, tuplets)
        return super().losses_to(anchors, embeddings, tuplets)

    def pool_scores(self, sampler: SamplingNetwork, tuplets: Any, classes: Any) -> Any:
        """Returns the scores `[pool]` of tuplets, the highest of which are kept."""
        if self.selection == "oracle":
            return self.tuplet_losses(tuplets, classes, training=False)
        if self.selection == "random":  # equal scores keep the first ones, which were drawn
            return tf.zeros(tf.shape(tuplets)[:1])
        return super().pool_scores(sampler, tuplets, classes)
