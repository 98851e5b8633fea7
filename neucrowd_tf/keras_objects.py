"""Lets Keras load models that hold layers, losses or initialisers of this package.

`keras.models.load_model` finds a class by the name under which it is registered. This module
registers a stand-in for each of them, which imports the class when a saved model asks for it.
`import neucrowd_tf` does this by itself, before or after Keras is imported.
"""

from __future__ import annotations

import importlib
import types
from typing import Any

import keras

CLASSES = {
    "crowd.bases": ("Standardise",),
    "crowd.head": ("HeadsUniform",),
    "crowd.losses": ("AnnotationLoss",),
    "methods.anno_reg": ("ConfusionHead",),
    "methods.annot_mix": ("AnnotMixHead",),
    "methods.ccc": ("CoupledHead",),
    "methods.conal": ("ConalHead",),
    "methods.crowd_layer": ("CrowdConnection",),
    "methods.crowdar": ("ReliabilityHead",),
    "methods.doctor_net": ("AnnotatorAverage", "DoctorHeads"),
    "methods.geocrowdnet": ("GeoCrowdNetHead",),
    "methods.madl": ("MaDLHead",),
    "methods.trace_reg": ("SoftplusConfusionHead",),
    "methods.unionnet": ("UnionHead",),
    "nn.losses": ("ClassCenters",),
    "nn.optimizers": ("FusedAdam",),
}


def _stand_in(module: str, name: str) -> Any:
    def from_config(config: dict[str, Any]) -> Any:
        return getattr(importlib.import_module(f"neucrowd_tf.{module}"), name).from_config(config)

    return types.SimpleNamespace(from_config=from_config)


for _module, _names in CLASSES.items():
    for _name in _names:  # a class that is imported already stays
        keras.saving.get_custom_objects().setdefault(
            f"neucrowd_tf>{_name}", _stand_in(_module, _name)
        )
