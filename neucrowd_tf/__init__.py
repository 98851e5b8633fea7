"""Learning from crowd labels: NeuCrowd, RLL, CrowdInG, DASC, ICED and their rivals.

Public names are imported when they are first used. So `import neucrowd_tf` is quick, and only
methods that train networks import TensorFlow.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from neucrowd_tf.stopping import while_loading

if TYPE_CHECKING:
    from neucrowd_tf.aggregation import (
        BWA,
        EBCC,
        IBCC,
        Consensus,
        Crowdlab,
        DawidSkene,
        Glad,
        GoldMajorityVote,
        IterativeWeightedMajorityVote,
        Kos,
        Mace,
        MajorityVote,
        Mmsr,
        ShrunkDawidSkene,
        Wawa,
        ZeroBasedSkill,
    )
    from neucrowd_tf.annotations import Annotations
    from neucrowd_tf.crowd_layers import AnnoReg, CrowdLayer, WeightedDoctorNet
    from neucrowd_tf.crowding import CrowdInG
    from neucrowd_tf.dasc import DASC
    from neucrowd_tf.datasets import CrowdDataset
    from neucrowd_tf.harness.plugins import load_dataset
    from neucrowd_tf.iced import ICED
    from neucrowd_tf.io.labels import read_annotations
    from neucrowd_tf.neucrowd import NeuCrowd
    from neucrowd_tf.persistence import load
    from neucrowd_tf.rll import RLL
    from neucrowd_tf.training import Ensemble, Run

__version__ = "0.2.0"

if sys.argv[:1] == ["-m"]:  # python -m neucrowd_tf.x, which can be stopped while it loads
    while_loading()

# Modules of the public names; those that are not listed are in `aggregation`.
_MODULES = {
    "Annotations": "annotations",
    "CrowdDataset": "datasets",
    "load": "persistence",
    "read_annotations": "io.labels",
    "load_dataset": "harness.plugins",
    "CrowdLayer": "crowd_layers",
    "AnnoReg": "crowd_layers",
    "WeightedDoctorNet": "crowd_layers",
    "NeuCrowd": "neucrowd",
    "RLL": "rll",
    "DASC": "dasc",
    "Ensemble": "training",
    "Run": "training",
    "CrowdInG": "crowding",
    "ICED": "iced",
}

__all__ = [
    "AnnoReg",
    "Annotations",
    "BWA",
    "Consensus",
    "CrowdDataset",
    "CrowdInG",
    "CrowdLayer",
    "Crowdlab",
    "DASC",
    "DawidSkene",
    "EBCC",
    "Ensemble",
    "Glad",
    "GoldMajorityVote",
    "IBCC",
    "ICED",
    "IterativeWeightedMajorityVote",
    "Kos",
    "Mace",
    "MajorityVote",
    "Mmsr",
    "ShrunkDawidSkene",
    "NeuCrowd",
    "RLL",
    "Run",
    "Wawa",
    "WeightedDoctorNet",
    "ZeroBasedSkill",
    "__version__",
    "load",
    "read_annotations",
    "load_dataset",
]


class _AfterKeras(importlib.abc.MetaPathFinder):
    """Registers this package's classes with Keras once Keras has been imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "keras":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                load(module)
                importlib.import_module("neucrowd_tf.keras_objects")

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if "keras" in sys.modules:
    importlib.import_module("neucrowd_tf.keras_objects")
else:
    sys.meta_path.insert(0, _AfterKeras())


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES.get(name, 'aggregation')}")
    globals()[name] = value = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
