"""The model that `neucrowd_control` trains."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from baselines.neucrowd_joint_model import WeightedTupletModel
from neucrowd_tf.neucrowd.joint_learning import NeuCrowdModel
from neucrowd_tf.neucrowd.sampler import SamplingNetwork


class ControlledModel(NeuCrowdModel):
    """NeuCrowd's model with another loss, selection or anchor."""

    def __init__(
        self, *arguments: Any, weight_loss: bool, selection: str, anchor_space: str, **options: Any
    ) -> None:
        """Sets up training.

        Args:
            arguments: of `NeuCrowdModel`.
            weight_loss: whether the positive's assurance weighs the loss.
            selection: "learned", "random" or "oracle".
            anchor_space: "embedding" or "input".
            options: of `NeuCrowdModel`.
        """
        super().__init__(*arguments, **options)
        self.weight_loss, self.selection, self.anchor_space = weight_loss, selection, anchor_space

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

    def anchors(self, embeddings: Any, tuplets: Any, classes: Any) -> Any:
        """Returns the anchors' embeddings `[batch, h]`."""
        if self.robust_anchor is None or self.anchor_space == "embedding":
            return super().anchors(embeddings, tuplets, classes)
        assurance = tf.gather(self.confidence, tuplets[:, 0])
        raw = tf.reshape(tf.gather(self.instances, tuplets[:, 0]), [tf.shape(tuplets)[0], -1])
        centre = self.robust_anchor(raw, assurance, classes)
        features = tf.reshape(centre, [-1, *self.instances.shape[1:]])
        return tf.cast(self.encoder(features, training=True), tf.float32)
