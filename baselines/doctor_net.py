"""Doctor Net as in CrowdInG's table 1.

The predicted labels of all annotators are aggregated by a weighted majority vote.
"""

from __future__ import annotations

from typing import Any

from neucrowd_tf.crowd_layers.doctor_net import WeightedDoctorNet
from neucrowd_tf.crowd_layers.presets import PRESETS, SPACE
from neucrowd_tf.declare import estimator
from neucrowd_tf.registry import register_method


@register_method(
    "doctor_net",
    summary=(
        "Doctor Net: a classifier for each annotator, their answers aggregated by a weighted"
        " majority vote"
    ),
    requires_identities=True,
    presets=PRESETS["wdn"],
    space=SPACE,
)
@estimator
class DoctorNet(WeightedDoctorNet):
    """Weighted Doctor Net whose doctors vote.

    Each doctor's most probable label counts with the doctor's learnt weight.

    A class's probability is the share of the weight that votes for it.

    References:
        CrowdInG, section 4.4.1; Guan et al. (2018), Who said what: modeling individual labelers
        improves classification.
    """

    def _answers(self, logits: Any) -> Any:
        from keras import ops

        # Deviation: a doctor votes with the most probable label (one-hot), as CrowdInG's "weighted
        # majority vote" says; Guan et al. average the doctors' distributions, as `wdn` does.
        # Deviation: doctors share their features, as in Guan et al.; networks of their own would
        # see a few dozen images each.
        return ops.one_hot(ops.argmax(logits, axis=-1), len(self.classes_), dtype="float32")
