"""The truth-inference methods by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from neucrowd_tf.aggregation.base import Aggregator
from neucrowd_tf.aggregation.bwa import BWA
from neucrowd_tf.aggregation.consensus import Consensus
from neucrowd_tf.aggregation.dawid_skene import DawidSkene
from neucrowd_tf.aggregation.ebcc import EBCC
from neucrowd_tf.aggregation.glad import Glad
from neucrowd_tf.aggregation.ibcc import IBCC
from neucrowd_tf.aggregation.kos import Kos
from neucrowd_tf.aggregation.mace import Mace
from neucrowd_tf.aggregation.majority_vote import MajorityVote
from neucrowd_tf.aggregation.mmsr import Mmsr
from neucrowd_tf.aggregation.shrunk_dawid_skene import ShrunkDawidSkene
from neucrowd_tf.aggregation.weighted_vote import (
    GoldMajorityVote,
    IterativeWeightedMajorityVote,
    Wawa,
    ZeroBasedSkill,
)
from neucrowd_tf.errors import UsageError


def _maker(kind: Callable[..., Aggregator]) -> Callable[[int], Aggregator]:
    return lambda seed: kind(seed=seed)


# Each makes an unfitted aggregator with its defaults from a seed.
AGGREGATORS: dict[str, Callable[[int], Aggregator]] = {
    "majority_vote": _maker(MajorityVote),
    "dawid_skene": _maker(DawidSkene),
    "shrunk_dawid_skene": _maker(ShrunkDawidSkene),
    "one_coin": _maker(partial(DawidSkene, one_coin=True)),
    "fast_dawid_skene": _maker(partial(DawidSkene, hard=True)),
    "glad": _maker(Glad),
    "mace": _maker(Mace),
    "ibcc": _maker(IBCC),
    "ebcc": _maker(EBCC),
    "bwa": _maker(BWA),
    "wawa": _maker(Wawa),
    "zbs": _maker(ZeroBasedSkill),
    "gold_majority_vote": _maker(GoldMajorityVote),
    "iwmv": _maker(IterativeWeightedMajorityVote),
    "kos": _maker(Kos),
    "mmsr": _maker(Mmsr),
    "consensus": _maker(Consensus),
}


def make_aggregator(name: str, seed: int = 0) -> Aggregator:
    """Returns the truth-inference method of that name, unfitted.

    Raises:
        UsageError: no method has that name.
    """
    if name not in AGGREGATORS:
        names = ", ".join(AGGREGATORS)
        raise UsageError(f"method: expected one of {names}, received {name!r}")
    return AGGREGATORS[name](seed)
