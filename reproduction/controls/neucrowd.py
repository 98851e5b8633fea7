"""NeuCrowd with the factors of our studies: forms of the loss, ways of selecting tuplets."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.arguments import argument, estimator, flag, one_of
from neucrowd_tf.neucrowd import NeuCrowd
from neucrowd_tf.neucrowd.assurance import label_assurance
from neucrowd_tf.registry import register_method
from neucrowd_tf.training.representation import EQUAL_PRESETS

if TYPE_CHECKING:
    from numpy.typing import NDArray


@register_method(
    "neucrowd_control", summary="NeuCrowd with the factors of our studies", presets=EQUAL_PRESETS
)
@estimator
class ControlledNeuCrowd(NeuCrowd):
    """NeuCrowd whose loss and selection can be replaced by controls; see `NeuCrowd`."""

    assurance: str = argument(
        "agreement",
        one_of("agreement", "share"),
        '"agreement" (definition 2) or the "share" of votes for the label, as released.',
    )
    weight_loss: bool = argument(
        False,
        flag,
        "whether the positive's assurance multiplies its tuplet's loss instead, and the posterior"
        " is without assurances.",
    )
    selection: str = argument(
        "learned",
        one_of("learned", "random", "oracle"),
        'what keeps a tuplet of the pool: the "learned" hardness, a "random" draw, or the loss'
        ' itself ("oracle").',
    )

    def _assurance(self, votes: NDArray[Any]) -> NDArray[np.float32]:
        return label_assurance(votes, self.assurance)

    def _model_class(self) -> Any:
        from reproduction.controls.neucrowd_model import ControlledModel

        return functools.partial(
            ControlledModel, weight_loss=self.weight_loss, selection=self.selection
        )
