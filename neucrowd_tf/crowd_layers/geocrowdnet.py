"""GeoCrowdNet: confusion matrices that a volume makes identifiable."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from neucrowd_tf.crowd_layers.annotator_estimator import AnnotatorEstimator
from neucrowd_tf.crowd_layers.presets import registered
from neucrowd_tf.declare import estimator, number


@registered(
    "geocrowdnet_w",
    "GeoCrowdNet: confusion matrices with the largest volume of all of them stacked",
)
@estimator
class GeoCrowdNetW(AnnotatorEstimator):
    """A classifier and confusion matrices, trained with `-log det` of a Gram matrix.

    The Gram matrix is that of the matrices (W) or of the batch's class probabilities (F).

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: the stochastic matrices themselves.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`.

    References:
        Ibrahim et al. (2023), eqs. 8 (F) and 9 (W).
    """

    volume: Annotated[
        Literal["F", "W"], 'whose: "F", the class probabilities\', or "W", the matrices\'.'
    ] = "W"
    volume_weight: Annotated[float, number(least=0), "lambda of eqs. 8 and 9."] = 1e-3

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.heads.geocrowdnet import GeoCrowdNetHead

        return GeoCrowdNetHead(num_annotators, self.volume, self.volume_weight, name="geocrowdnet")


@registered(
    "geocrowdnet_f",
    "GeoCrowdNet: confusion matrices with the largest volume of the class probabilities",
)
@estimator
class GeoCrowdNetF(GeoCrowdNetW):
    """GeoCrowdNet with the volume of the batch's class probabilities; see `GeoCrowdNetW`.

    References:
        Ibrahim et al. (2023), eq. 8.
    """

    volume: Literal["F", "W"] = "F"
