"""Learning from crowd labels: NeuCrowd, RLL, CrowdInG, DASC, ICED and their rivals.

Public names are imported when they are first used. So `import neucrowd_tf` is quick, and only
`neucrowd_tf.layers` and methods that train networks import TensorFlow.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from neucrowd_tf.errors import FOR_NETWORKS, MissingPackageError

if TYPE_CHECKING:
    from neucrowd_tf.aggregation.bwa import BWA as BWA
    from neucrowd_tf.aggregation.consensus import Consensus as Consensus
    from neucrowd_tf.aggregation.crowdlab import Crowdlab as Crowdlab
    from neucrowd_tf.aggregation.dawid_skene import DawidSkene as DawidSkene
    from neucrowd_tf.aggregation.ebcc import EBCC as EBCC
    from neucrowd_tf.aggregation.glad import Glad as Glad
    from neucrowd_tf.aggregation.ibcc import IBCC as IBCC
    from neucrowd_tf.aggregation.kos import Kos as Kos
    from neucrowd_tf.aggregation.mace import Mace as Mace
    from neucrowd_tf.aggregation.majority_vote import MajorityVote as MajorityVote
    from neucrowd_tf.aggregation.mmsr import Mmsr as Mmsr
    from neucrowd_tf.aggregation.shrunk_dawid_skene import ShrunkDawidSkene as ShrunkDawidSkene
    from neucrowd_tf.aggregation.weighted_vote import GoldMajorityVote as GoldMajorityVote
    from neucrowd_tf.aggregation.weighted_vote import (
        IterativeWeightedMajorityVote as IterativeWeightedMajorityVote,
    )
    from neucrowd_tf.aggregation.weighted_vote import Wawa as Wawa
    from neucrowd_tf.aggregation.weighted_vote import ZeroBasedSkill as ZeroBasedSkill
    from neucrowd_tf.annotations import Annotations as Annotations
    from neucrowd_tf.cli.runs.plugins import load_dataset as load_dataset
    from neucrowd_tf.datasets import CrowdDataset as CrowdDataset
    from neucrowd_tf.declare import registry as registry
    from neucrowd_tf.io.labels import read_annotations as read_annotations
    from neucrowd_tf.methods.crowd_layers.anno_reg import AnnoReg as AnnoReg
    from neucrowd_tf.methods.crowd_layers.crowd_layer import CrowdLayer as CrowdLayer
    from neucrowd_tf.methods.crowd_layers.doctor_net import WeightedDoctorNet as WeightedDoctorNet
    from neucrowd_tf.methods.crowding import CrowdInG as CrowdInG
    from neucrowd_tf.methods.dasc import DASC as DASC
    from neucrowd_tf.methods.iced import ICED as ICED
    from neucrowd_tf.methods.neucrowd import NeuCrowd as NeuCrowd
    from neucrowd_tf.methods.rll import RLL as RLL
    from neucrowd_tf.methods.texts import TextClassifier as TextClassifier
    from neucrowd_tf.saving import keras_objects as layers  # noqa: F401
    from neucrowd_tf.saving.loading import load as load
    from neucrowd_tf.training import Ensemble as Ensemble
    from neucrowd_tf.training import Run as Run


__version__ = "0.2.0"

# The public names of each module.
_MODULES = {
    "aggregation": "BWA Consensus Crowdlab DawidSkene EBCC Glad GoldMajorityVote IBCC"
    " IterativeWeightedMajorityVote Kos Mace MajorityVote Mmsr ShrunkDawidSkene Wawa"
    " ZeroBasedSkill",
    "annotations": "Annotations",
    "cli.runs.plugins": "load_dataset",
    "datasets": "CrowdDataset",
    "io.labels": "read_annotations",
    "methods.crowd_layers.anno_reg": "AnnoReg",
    "methods.crowd_layers.crowd_layer": "CrowdLayer",
    "methods.crowd_layers.doctor_net": "WeightedDoctorNet",
    "methods.crowding": "CrowdInG",
    "methods.dasc": "DASC",
    "methods.iced": "ICED",
    "methods.neucrowd": "NeuCrowd",
    "methods.rll": "RLL",
    "methods.texts": "TextClassifier",
    "saving.loading": "load",
    "training": "Ensemble Run",
}
# Modules that are public names themselves.
_PUBLIC_MODULES = {"layers": "saving.keras_objects", "registry": "declare.registry"}
_MODULE_OF: dict[str, str] = {}
for _module, _names in _MODULES.items():
    _MODULE_OF |= dict.fromkeys(_names.split(), _module)
__all__ = ["__version__", *_MODULE_OF, *_PUBLIC_MODULES]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC_MODULES:
        return _imported(_PUBLIC_MODULES[name], name)
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_imported(_MODULE_OF[name], name), name)
    globals()[name] = value
    return value


def _imported(module: str, name: str) -> ModuleType:
    """Returns the module of a public name; without TensorFlow, an error says what is missing."""
    try:
        return importlib.import_module(f"{__name__}.{module}")
    except ModuleNotFoundError as error:
        if error.name in FOR_NETWORKS:
            raise MissingPackageError(f"{__name__}.{name}", error.name) from None
        raise


def __dir__() -> list[str]:
    return sorted(__all__)
