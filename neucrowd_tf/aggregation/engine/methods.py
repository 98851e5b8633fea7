"""The methods that can be fitted out of core, by name."""

from __future__ import annotations

from neucrowd_tf.aggregation.bwa import BWA
from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.aggregation.glad import Glad
from neucrowd_tf.aggregation.ibcc import IBCC
from neucrowd_tf.aggregation.iterative import IterativeAggregator
from neucrowd_tf.errors import UsageError

# Their `latent_model` is what is fitted; the majority vote has no parameters.
METHODS: dict[str, IterativeAggregator | None] = {
    "majority_vote": None,
    "dawid_skene": DawidSkene(),
    "one_coin": DawidSkene(one_coin=True),
    "fast_dawid_skene": DawidSkene(hard=True),
    "glad": Glad(easiness="integrated"),
    "ibcc": IBCC(),
    "bwa": BWA(),
}


def find_method(name: str) -> IterativeAggregator | None:
    """Returns the method of that name, None for the majority vote.

    Raises:
        UsageError: no method has that name, or it needs all annotations in memory.
    """
    if name not in METHODS:
        raise UsageError(
            f"method: expected one of {', '.join(METHODS)} out of core, received {name!r}"
        )
    return METHODS[name]
