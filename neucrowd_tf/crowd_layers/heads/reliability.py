"""CrowdAR's head: a crowd layer, and how reliable each annotation is."""

from __future__ import annotations

from typing import Any, Unpack

import keras
from keras import ops

from neucrowd_tf.crowd_layers.heads.base import (
    AnnotatorHead,
    Cells,
    LayerOptions,
    of_annotators,
    product,
    stacked_identity,
)
from neucrowd_tf.crowd_layers.heads.doctors import HeadsUniform


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

    matrix: Any
    expertise: Any

    def __init__(
        self,
        num_annotators: int,
        hidden_units: int = 128,
        seed: int = 0,
        **layer: Unpack[LayerOptions],
    ) -> None:
        super().__init__(num_annotators, **layer)
        self.hidden_units, self.seed = hidden_units, seed

    def _dense(self, width: int, draw: int, **more: Any) -> keras.layers.Dense:
        maker = keras.initializers.GlorotUniform(self.seed + draw)
        return keras.layers.Dense(width, kernel_initializer=maker, dtype="float32", **more)

    def build(self, input_shape: Any) -> None:
        classes, width = int(input_shape[0][-1]), int(input_shape[1][-1])
        self.annotator_weight("matrix", (classes, classes), stacked_identity(classes))
        self.annotator_weight("expertise", (1, classes), HeadsUniform(self.seed))
        self.hidden = self._dense(self.hidden_units, 1, activation="sigmoid")
        self.difficulty = self._dense(classes, 2, activation="sigmoid")
        # Expertise above the difficulty never makes an annotation less reliable.
        self.score = self._dense(1, 3, kernel_constraint=keras.constraints.NonNeg())
        self.hidden.build((None, width))
        self.difficulty.build((None, self.hidden_units))
        self.score.build((None, classes))

    def reliability(self, inputs: Any, rows: Any, annotators: Any) -> Any:
        """Returns `[K]`: how likely each of K annotations is right.

        References:
            Cao et al. (2023), eqs. 1 and 2.
        """
        p = ops.cast(inputs[0], "float32")
        features = ops.stop_gradient(ops.cast(inputs[1], "float32"))
        difficulty = ops.take(self.difficulty(self.hidden(features)), rows, axis=0)
        expertise = ops.sigmoid(ops.take(self.expertise, annotators, axis=0)[:, 0])
        above = (expertise - difficulty) * ops.take(p, rows, axis=0)
        return ops.sigmoid(self.score(above))[:, 0]

    def logits(self, inputs: Any, cells: Cells | None) -> Any:
        p = ops.cast(inputs[0], "float32")
        return product(p, of_annotators(self.matrix, cells), cells)
