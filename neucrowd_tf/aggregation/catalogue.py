"""The truth-inference methods by name."""

from __future__ import annotations

from collections.abc import Callable

from neucrowd_tf.aggregation.base import Aggregator
from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.aggregation.glad import Glad
from neucrowd_tf.aggregation.majority_vote import MajorityVote
from neucrowd_tf.errors import UsageError

# Each makes an unfitted aggregator with its defaults from a seed.
AGGREGATORS: dict[str, Callable[[int], Aggregator]] = {
    "majority_vote": lambda seed: MajorityVote(seed=seed),
    "dawid_skene": lambda seed: DawidSkene(seed=seed),
    "one_coin": lambda seed: DawidSkene(one_coin=True, seed=seed),
    "glad": lambda seed: Glad(seed=seed),
}


def make_aggregator(name: str, seed: int = 0) -> Aggregator:
    """Returns the truth-inference method of that name, unfitted.

    Raises:
        UsageError: no method has that name.
    """
    if name not in AGGREGATORS:
        known = ", ".join(AGGREGATORS)
        raise UsageError(f"method: expected one of {known}, received {name!r}")
    return AGGREGATORS[name](seed)
