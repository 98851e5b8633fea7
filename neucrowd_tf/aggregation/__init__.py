"""Truth inference: from the labels of many annotators to one label an instance."""

from neucrowd_tf.aggregation.base import Aggregator
from neucrowd_tf.aggregation.catalogue import AGGREGATORS, make_aggregator
from neucrowd_tf.aggregation.dawid_skene import DawidSkene, EMResult, dawid_skene_em
from neucrowd_tf.aggregation.glad import Glad
from neucrowd_tf.aggregation.majority_vote import MajorityVote, majority_labels

__all__ = [
    "AGGREGATORS",
    "Aggregator",
    "DawidSkene",
    "EMResult",
    "Glad",
    "MajorityVote",
    "dawid_skene_em",
    "majority_labels",
    "make_aggregator",
]
