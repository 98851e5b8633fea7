"""GeoCrowdNet: confusion matrices that a volume makes identifiable."""

from __future__ import annotations

from typing import Annotated, Literal, Unpack

import keras
import tensorflow as tf
from keras import ops

from neucrowd_tf.declare.declarations import estimator, number, one_of
from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.types import Layer, Tensor
from neucrowd_tf.methods.crowd_layers.anno_reg import ConfusionHead
from neucrowd_tf.methods.crowd_layers.common.estimator import CrowdLayerBase
from neucrowd_tf.methods.crowd_layers.common.head import LayerOptions, check_choice
from neucrowd_tf.methods.crowd_layers.common.presets import layer_fields

Volume = Literal["F", "W"]

# A larger -log det has no useful gradient: fewer rows than classes, or predictions that all agree.
_LARGEST = 100.0
_ROUNDING = 1.2e-7  # of float32


def negative_log_determinant(gram: Tensor) -> Tensor:
    """Returns `-log det` of a Gram matrix `[C, C]`, and 0 without a gradient if it is degenerate.

    It is degenerate if an eigenvalue is no more than rounding in float32, or if the value is above
    100. The determinant is the product of the eigenvalues, for which XLA has a kernel (unlike
    `slogdet`).
    """
    values = tf.linalg.eigvalsh(tf.stop_gradient(gram))
    least = _ROUNDING * tf.cast(tf.size(values), gram.dtype) * values[-1]
    usable = (values[0] > least) & (-tf.reduce_sum(tf.math.log(values)) <= _LARGEST)
    # The identity replaces a degenerate matrix before the logarithm, whose gradient is then finite.
    safe = tf.where(usable, gram, tf.eye(tf.shape(gram)[0], dtype=gram.dtype))
    return -tf.reduce_sum(tf.math.log(tf.linalg.eigvalsh(safe)))


@keras.saving.register_keras_serializable("neucrowd_tf")
class GeoCrowdNetHead(ConfusionHead):
    """Row-stochastic confusion matrices A_k; a small volume is penalised.

    Annotator k answers with `p A_k`. The penalty is `-weight * log det` of a Gram matrix.

    Args:
        num_annotators: R.
        volume: "F" takes the batch's class probabilities, `F^T F`; "W" the stacked matrices, which
            is the sum of `A_k A_k^T`.
        weight: lambda of eqs. 8 and 9.

    References:
        Ibrahim, Nguyen and Fu (2023), Deep learning from crowdsourced labels: coupled cross-entropy
        minimization, identifiability, and regularization, eqs. 8 (F) and 9 (W).
    """

    def __init__(
        self,
        num_annotators: int,
        volume: Volume = "W",
        weight: float = 1e-3,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        check_choice("volume", volume, Volume)
        super().__init__(num_annotators, "row", 0.0, initial=1.0, **kwargs)
        self.volume = volume
        self.weight = weight
        self.whole_batch = volume == "F"

    def penalty(self, inputs: Tensor) -> Tensor:
        """Returns the weighted volume of the class probabilities or of the stacked matrices.

        References:
            Ibrahim et al. (2023), eqs. 8 (F) and 9 (W).
        """
        if self.volume == "F":
            gram = ops.matmul(ops.transpose(inputs), inputs)
        else:
            matrices = self.matrices()
            gram = ops.einsum("rto,rso->ts", matrices, matrices)
        return self.weight * negative_log_determinant(gram)


@register_method(
    "geocrowdnet_w",
    summary="GeoCrowdNet: confusion matrices with the largest volume of all of them stacked",
    **layer_fields(),
)
@register_method(
    "geocrowdnet_f",
    summary="GeoCrowdNet: confusion matrices with the largest volume of the class probabilities",
    defaults={"volume": "F"},
    **layer_fields(),
)
@estimator
class GeoCrowdNet(CrowdLayerBase):
    """A classifier and confusion matrices, trained with `-log det` of a Gram matrix.

    The Gram matrix is that of the matrices (W) or of the batch's class probabilities (F).

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: the stochastic matrices themselves.
        model_, history_, n_iter_, best_epoch_, rows_: see `CrowdLayerBase`.

    References:
        Ibrahim et al. (2023), eqs. 8 (F) and 9 (W).
    """

    volume: Annotated[
        Volume, one_of("F", "W"), 'volume of what: "F" (class probabilities) or "W" (matrices).'
    ] = "W"
    volume_weight: Annotated[float, number(least=0), "weight of the volume (eqs. 8, 9)."] = 1e-3

    def _head(self, num_annotators: int, num_classes: int) -> Layer:
        return GeoCrowdNetHead(num_annotators, self.volume, self.volume_weight, name="geocrowdnet")
