"""Truth inference: from the labels of many annotators to one label an instance."""

from neucrowd_tf.aggregation.base import Aggregator
from neucrowd_tf.aggregation.bwa import BWA
from neucrowd_tf.aggregation.catalogue import AGGREGATORS, make_aggregator
from neucrowd_tf.aggregation.consensus import Consensus
from neucrowd_tf.aggregation.crowdlab import Crowdlab
from neucrowd_tf.aggregation.dawid_skene import DawidSkene, dawid_skene_em
from neucrowd_tf.aggregation.ebcc import EBCC
from neucrowd_tf.aggregation.glad import Glad
from neucrowd_tf.aggregation.ibcc import IBCC
from neucrowd_tf.aggregation.kos import Kos
from neucrowd_tf.aggregation.mace import Mace
from neucrowd_tf.aggregation.majority_vote import MajorityVote, majority_labels
from neucrowd_tf.aggregation.mmsr import Mmsr
from neucrowd_tf.aggregation.ordinal import OrdinalConsensus
from neucrowd_tf.aggregation.shrunk_dawid_skene import ShrunkDawidSkene
from neucrowd_tf.aggregation.weighted_vote import (
    GoldMajorityVote,
    IterativeWeightedMajorityVote,
    Wawa,
    ZeroBasedSkill,
)

__all__ = [
    "AGGREGATORS",
    "Aggregator",
    "BWA",
    "Consensus",
    "Crowdlab",
    "DawidSkene",
    "EBCC",
    "Glad",
    "GoldMajorityVote",
    "IBCC",
    "IterativeWeightedMajorityVote",
    "Kos",
    "Mace",
    "MajorityVote",
    "Mmsr",
    "OrdinalConsensus",
    "ShrunkDawidSkene",
    "Wawa",
    "ZeroBasedSkill",
    "dawid_skene_em",
    "majority_labels",
    "make_aggregator",
]
