"""DASC with the factors of our studies: how cells are counted, and spread over instances."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.arguments import argument, estimator, none, one_of, whole
from neucrowd_tf.dasc.methods import SelfTrainedCrowdLayer, schedule_presets
from neucrowd_tf.dasc.selection import Candidates
from neucrowd_tf.registry import register_method

if TYPE_CHECKING:
    from numpy.typing import NDArray


@register_method(
    "dasc_crowd_layer_control",
    summary="CrowdLayer with DASC and the factors of our studies",
    requires_identities=True,
    presets=schedule_presets("crowd_layer"),
)
@estimator
class ControlledDASC(SelfTrainedCrowdLayer):
    """DASC over CrowdLayer whose candidates can be replaced by controls."""

    counted: str = argument(
        "generated",
        one_of("generated", "remaining"),
        'N\'_c of eq. 4: "generated" counts the pseudo-annotations of all cells that nobody'
        ' labelled; "remaining" those not selected yet, which favours a class the more, the more of'
        " it was taken.",
    )
    per_instance: int | None = argument(
        None,
        none | whole(1),
        "up to so many pseudo-annotations of an instance join in a round, its most confident ones.",
    )

    def _candidates(
        self,
        labels: NDArray[Any],
        entropies: NDArray[np.float32],
        observed: Annotations,
        taken: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> Candidates:
        candidates = super()._candidates(labels, entropies, observed, taken, rng)
        if self.counted == "remaining":
            candidates = dataclasses.replace(candidates, generated=candidates.available)
        if self.per_instance is None:
            return candidates
        return capped(candidates, self.per_instance, taken.shape[1], rng)


def capped(
    candidates: Candidates, per_instance: int, num_annotators: int, rng: np.random.Generator
) -> Candidates:
    """Returns the most confident candidates of each instance, equal ones by lot.

    Args:
        candidates: cells that may be selected.
        per_instance: how many are left of each instance.
        num_annotators: R.
        rng: draws the lots.
    """
    instances, lot = candidates.cells // num_annotators, rng.random(len(candidates.cells))
    order = np.lexsort((lot, candidates.entropies, instances))
    ordered = instances[order]
    first = np.searchsorted(ordered, ordered)
    left = np.sort(order[np.arange(len(order)) - first < per_instance])
    return dataclasses.replace(
        candidates,
        cells=candidates.cells[left],
        labels=candidates.labels[left],
        entropies=candidates.entropies[left],
    )
