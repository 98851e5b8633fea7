"""UnionNet: the labels of all annotators as one."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from neucrowd_tf.crowd_layers.annotator_estimator import AnnotatorEstimator
from neucrowd_tf.crowd_layers.presets import registered
from neucrowd_tf.dasc.methods import self_trained
from neucrowd_tf.declare import estimator


@registered(
    "unionnet_b",
    "UnionNet: a distribution over all annotators' labels together, a class's share of it",
)
@estimator
class UnionNetB(AnnotatorEstimator):
    """A classifier and one transition matrix to the labels of all annotators together.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: an annotator's part of the union, each row a
            distribution.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`.

    References:
        Wei et al. (2022), eqs. 2, 6 and 7.
    """

    variant: Annotated[
        Literal["A", "B"],
        '"A" takes the softmax of what the matrix makes of the class probabilities, "B" that'
        " of the matrix for each true class.",
    ] = "B"

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.heads.unionnet import UnionHead

        return UnionHead(num_annotators, self.variant, name="union")


@registered(
    "unionnet_a",
    "UnionNet: a distribution over all annotators' labels together, one softmax of scores",
)
@estimator
class UnionNetA(UnionNetB):
    """UnionNet whose softmax comes last; see `UnionNetB`.

    References:
        Wei et al. (2022), section IV.
    """

    variant: Literal["A", "B"] = "A"


SelfTrainedUnionNetA = self_trained("unionnet_a", UnionNetA, "UnionNet")
SelfTrainedUnionNetB = self_trained("unionnet_b", UnionNetB, "UnionNet")
