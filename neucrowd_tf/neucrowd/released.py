"""NeuCrowd with the settings of its released code, where they depart from what the paper prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from neucrowd_tf.arguments import argument, estimator, one_of
from neucrowd_tf.neucrowd.assurance import label_assurance
from neucrowd_tf.neucrowd.estimator import PAPER, SPACE, NeuCrowd
from neucrowd_tf.neucrowd.safety import neighbourhood_size, safe_examples
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.representation import RELEASED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from neucrowd_tf.neucrowd.joint_learning import NeuCrowdModel


@register_method(
    "neucrowd_released",
    summary="NeuCrowd with the settings of its released code",
    defaults={**RELEASED, "weight_inside": False, "unsafe_weight": 0.02},
    space=SPACE,
    paper=PAPER,
)
@estimator
class ReleasedNeuCrowd(NeuCrowd):
    """NeuCrowd as its authors' code trains it; see `NeuCrowd`.

    The assurance is the share of votes for the label; an example is its own neighbour among
    sqrt(N) + 1, equal sums are safe, and safety counts from the second epoch on; the robust anchor
    is the sum over the number of tuplets; the sampling network learns the probability of the
    positive.
    """

    slot_dropout: ClassVar[bool] = True
    raw_head: ClassVar[bool] = True
    safety_start: ClassVar[int] = 1

    anchor: str = argument(
        "scaled",
        one_of("scaled", "none"),
        'the robust anchor: "scaled" (the sum over the number of tuplets) or "none".',
    )

    def _assurance(self, votes: NDArray[Any]) -> NDArray[np.float32]:
        return label_assurance(votes, "share")

    def _safe_examples(
        self, embeddings: NDArray[Any], labels: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        k = neighbourhood_size(len(labels), len(labels)) + 1
        return safe_examples(
            embeddings, labels, self.assurance_, k=k, margin=self.safety_margin, with_itself=True
        )

    def _model_class(self) -> type[NeuCrowdModel]:
        from neucrowd_tf.neucrowd.joint_learning import ReleasedModel

        return ReleasedModel
