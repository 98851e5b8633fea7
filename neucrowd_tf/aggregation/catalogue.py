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
from neucrowd_tf.aggregation.ordinal import MEMBERS, OrdinalConsensus
from neucrowd_tf.aggregation.shrunk_dawid_skene import ShrunkDawidSkene
from neucrowd_tf.aggregation.weighted_vote import (
    GoldMajorityVote,
    IterativeWeightedMajorityVote,
    Wawa,
    ZeroBasedSkill,
)
from neucrowd_tf.annotations.votes import Ties
from neucrowd_tf.errors import UsageError
from neucrowd_tf.names import did_you_mean

# Each makes an unfitted aggregator; the other arguments have its defaults.
AGGREGATORS: dict[str, Callable[..., Aggregator]] = {
    "majority_vote": MajorityVote,
    "dawid_skene": DawidSkene,
    "shrunk_dawid_skene": ShrunkDawidSkene,
    "one_coin": partial(DawidSkene, one_coin=True),
    "fast_dawid_skene": partial(DawidSkene, hard=True),
    "glad": Glad,
    "mace": Mace,
    "ibcc": IBCC,
    "ebcc": EBCC,
    "bwa": BWA,
    "wawa": Wawa,
    "zbs": ZeroBasedSkill,
    "gold_majority_vote": GoldMajorityVote,
    "iwmv": IterativeWeightedMajorityVote,
    "kos": Kos,
    "mmsr": Mmsr,
    "consensus": Consensus,
}


# Of ordered classes.
ORDERED: dict[str, Callable[..., Aggregator]] = {
    "ordinal": OrdinalConsensus,
    **{name.replace(" ", "_"): partial(OrdinalConsensus, only=name) for name in MEMBERS[:2]},
}


def make_aggregator(name: str, seed: int = 0, ties: Ties | None = None) -> Aggregator:
    """Returns the truth-inference method of that name, unfitted.

    Args:
        name: of `AGGREGATORS` or `ORDERED`.
        seed: see `Aggregator`.
        ties: see `Aggregator`; None is the method's default.

    Raises:
        UsageError: no method has that name.
    """
    methods = AGGREGATORS | ORDERED
    if name not in methods:
        names = ", ".join(AGGREGATORS)
        hint = did_you_mean(name, methods)
        raise UsageError(f"method: expected one of {names}, received {name!r}. {hint}".rstrip())
    return methods[name](seed=seed, **({} if ties is None else {"ties": ties}))
