"""CrowdLayer: a matrix for each annotator behind the classifier's softmax."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from neucrowd_tf.crowd_layers.annotator_estimator import AnnotatorEstimator
from neucrowd_tf.crowd_layers.presets import PRESETS, registered
from neucrowd_tf.declare import estimator, number

_RIGHT = 0.9  # of an annotator's answers, at the start after a lost class


@registered(
    "crowd_layer",
    "CrowdLayer: a classifier trained through a matrix for each annotator",
    PRESETS["crowd_layer"],
    imbalanced=True,
)
@estimator
class CrowdLayer(AnnotatorEstimator):
    """A classifier with a crowd layer, trained end to end on annotators' labels.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: the softmax of row c of W_k is what
            annotator k answers where the classifier is certain of class c.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`.

    References:
        Rodrigues and Pereira (2018), Deep learning from crowds; DASC, section 3.3.
    """

    initial: Annotated[
        float,
        number(least=0),
        'the matrices are `initial` times the identity at first; 4 starts near "everybody is right"'
        " with eight classes.",
    ] = 1.0

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.heads.crowd_connection import CrowdConnection

        return CrowdConnection(num_annotators, self.initial, name="crowd_layer")

    def _start_again(self, network: Any) -> None:
        # Deviation: the identity before a softmax over ten classes says that annotators are right
        # .23 of the time at first, and small classes are lost from every seed: of ten-class USPS
        # as pixels two (accuracy .83, with this .93).
        matrix = network.model.head.matrix
        classes = matrix.shape[-1]
        scale = max(self.initial, math.log(_RIGHT / (1 - _RIGHT) * (classes - 1)))
        matrix.assign(np.broadcast_to(scale * np.eye(classes, dtype=np.float32), matrix.shape))
