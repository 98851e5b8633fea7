"""The consensus labels that methods train on, stratify by or are scored against before anything
better is known.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from neucrowd_tf.aggregation import Aggregator, DawidSkene, MajorityVote
from neucrowd_tf.annotations import Annotations

if TYPE_CHECKING:
    from numpy.typing import NDArray


def consensus_labels(
    annotations: Annotations, seed: int, *, weigh_annotators: bool = False
) -> NDArray[np.int64]:
    """Returns `[N]` class codes: majority votes with ties drawn by the seed.

    Args:
        annotations: N instances.
        seed: draws between classes with equally many votes.
        weigh_annotators: Dawid and Skene's labels instead, where it is known who voted.
    """
    stage: Aggregator = (
        DawidSkene(seed=seed)
        if weigh_annotators and annotations.has_identities
        else MajorityVote(seed=seed)
    )
    with warnings.catch_warnings():
        # Labels settle long before the last digits of the objective.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(stage.fit(annotations).labels_, dtype=np.int64)
