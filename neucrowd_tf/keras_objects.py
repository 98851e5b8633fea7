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
    "crowd_layers.doctor_weights": ("AnnotatorAverage",),
    "crowd_layers.heads.conal": ("ConalHead",),
    "crowd_layers.heads.confusion": ("ConfusionHead",),
    "crowd_layers.heads.coupled": ("CoupledHead",),
    "crowd_layers.heads.crowd_connection": ("CrowdConnection",),
    "crowd_layers.heads.doctors": ("HeadsUniform", "DoctorHeads"),
    "crowd_layers.heads.geocrowdnet": ("GeoCrowdNetHead",),
    "crowd_layers.heads.instance_confusion": ("AnnotMixHead", "MaDLHead"),
    "crowd_layers.heads.reliability": ("ReliabilityHead",),
    "crowd_layers.heads.softplus_confusion": ("SoftplusConfusionHead",),
    "crowd_layers.heads.unionnet": ("UnionHead",),
    "nn.layers": ("Standardise",),
    "crowd_layers.parts": ("AnnotationLoss",),
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
