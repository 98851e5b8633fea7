"""Registers every Keras layer, loss, initialiser and optimizer of this package.

`keras.models.load_model` finds a class only if the module that defines it has been imported. Import
this one before loading a model that was saved in another process:

    import neucrowd_tf.keras_objects

`import neucrowd_tf` does it by itself if Keras is imported already; otherwise it does not, because
that would import TensorFlow.
"""

from __future__ import annotations

import importlib

MODULES = (
    "crowd_layers.doctor_weights",
    "crowd_layers.heads.conal",
    "crowd_layers.heads.confusion",
    "crowd_layers.heads.coupled",
    "crowd_layers.heads.crowd_connection",
    "crowd_layers.heads.doctors",
    "crowd_layers.heads.geocrowdnet",
    "crowd_layers.heads.instance_confusion",
    "crowd_layers.heads.reliability",
    "crowd_layers.heads.softplus_confusion",
    "crowd_layers.heads.unionnet",
    "crowd_layers.layers",
    "crowd_layers.parts",
    "neucrowd.robust_anchor",
    "neucrowd.sampler",
    "nn.losses",
    "nn.optimizers",
    "nn.tuplet_loss",
)

for _name in MODULES:
    importlib.import_module(f"neucrowd_tf.{_name}")
