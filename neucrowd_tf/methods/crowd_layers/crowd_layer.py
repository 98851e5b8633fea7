"""CrowdLayer: a matrix for each annotator behind the classifier's softmax."""

from __future__ import annotations

import math
from typing import Annotated, Unpack

import keras
import numpy as np

from neucrowd_tf.declare.declarations import estimator, number
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Layer, Tensor
from neucrowd_tf.methods.crowd_layers.common.estimator import CrowdLayerBase
from neucrowd_tf.methods.crowd_layers.common.head import (
    AnnotatorHead,
    Cells,
    LayerOptions,
    of_annotators,
    product,
    stacked_identity,
)
from neucrowd_tf.methods.crowd_layers.common.network import CompiledNetwork
from neucrowd_tf.methods.crowd_layers.common.presets import layer_fields


@keras.saving.register_keras_serializable("neucrowd_tf")
class CrowdConnection(AnnotatorHead):
    """The crowd layer: class probabilities `[B, C]` to logits `p W_k`, `[B, R, C]`.

    Args:
        num_annotators: R.
        initial: W_k is `initial` times the identity at first. With `log(9 (C - 1))` annotators are
            right in 90% of cases then, with 1 and ten classes in 23%.

    References:
        Rodrigues and Pereira (2018), Deep learning from crowds ("MW"); DASC, eq. 8.
    """

    matrix: Tensor

    def __init__(
        self, num_annotators: int, initial: float = 1.0, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(num_annotators, **kwargs)
        self.initial = initial

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        classes = int(input_shape[-1])  # type: ignore[arg-type]
        self.annotator_weight("matrix", (classes, classes), stacked_identity(classes, self.initial))

    def logits(self, inputs: Tensor, cells: Cells | None) -> Tensor:
        """Returns the logits of all annotators or of cells.

        References:
            DASC, eq. 8.
        """
        return product(inputs, of_annotators(self.matrix, cells), cells)


_RIGHT = 0.9  # accuracy that annotators start with after a fit that lost a class


@register_method(
    "crowd_layer",
    summary="CrowdLayer: a classifier trained through a matrix for each annotator",
    **layer_fields("crowd_layer"),
)
@estimator
class CrowdLayer(CrowdLayerBase):
    """A classifier with a crowd layer, trained end to end on annotators' labels.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: the softmax of row c of W_k has annotator
            k's probabilities of labels if the classifier is certain of class c.
        model_, history_, n_iter_, best_epoch_, rows_: see `CrowdLayerBase`.

    References:
        Rodrigues and Pereira (2018), Deep learning from crowds; DASC, section 3.3.
    """

    initial: Annotated[
        float,
        number(least=0),
        "the matrices start as this times the identity; with 4 and eight classes, annotators"
        " start as almost always right.",
    ] = 1.0

    def _head(self, num_annotators: int, num_classes: int) -> Layer:
        return CrowdConnection(num_annotators, self.initial, name="crowd_layer")

    def _start_again(self, network: CompiledNetwork) -> None:
        # Deviation: DASC eq. 8. Paper: Softmax(f(x) W). Here: The same, W the identity at first
        # (six times it on CIFAR-10, `initial`), f(x) the softmax output. Why: Raw logits in place
        # of probabilities cost 3 to 6 points on LabelMe; the identity before a softmax over ten
        # classes says that everybody is right 0.23 of the time, and five classes of the long tail
        # are lost. Effect: not measured.
        matrix = network.model.head.matrix
        classes = matrix.shape[-1]
        scale = max(self.initial, math.log(_RIGHT / (1 - _RIGHT) * (classes - 1)))
        matrix.assign(np.broadcast_to(scale * np.eye(classes, dtype=np.float32), matrix.shape))
