"""Truth inference: from the labels of many annotators to one label an instance.

A name costs the import of its module alone.
"""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = {
    "annotations.votes": "majority_labels",
    "aggregation.base": "Aggregator",
    "aggregation.bwa": "BWA",
    "aggregation.catalogue": "AGGREGATORS make_aggregator",
    "aggregation.consensus": "Consensus",
    "aggregation.crowdlab": "Crowdlab",
    "aggregation.dawid_skene": "DawidSkene dawid_skene_em",
    "aggregation.ebcc": "EBCC",
    "aggregation.glad": "Glad",
    "aggregation.ibcc": "IBCC",
    "aggregation.kos": "Kos",
    "aggregation.mace": "Mace",
    "aggregation.majority_vote": "MajorityVote",
    "aggregation.mmsr": "Mmsr",
    "aggregation.ordinal": "OrdinalConsensus",
    "aggregation.shrunk_dawid_skene": "ShrunkDawidSkene",
    "aggregation.weighted_vote": "GoldMajorityVote IterativeWeightedMajorityVote Wawa"
    " ZeroBasedSkill",
}
_MODULE_OF: dict[str, str] = {}
for _module, _names in _MODULES.items():
    _MODULE_OF |= dict.fromkeys(_names.split(), _module)
__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"neucrowd_tf.{_MODULE_OF[name]}"), name)
