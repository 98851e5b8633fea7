"""DASC's three crowd layers with each loss against imbalance, as `focal_crowd_layer`."""

from __future__ import annotations

from neucrowd_tf.declare.registration import METHODS, register_method

# They register the layers.
from neucrowd_tf.methods.crowd_layers import anno_reg as anno_reg
from neucrowd_tf.methods.crowd_layers import crowd_layer as crowd_layer
from neucrowd_tf.methods.crowd_layers import doctor_net as doctor_net

LOSSES = {
    "resampling": "oversampled annotations of minority classes",
    "reweighting": "annotations weighted by max N / N_c",
    "focal": "focal loss",
    "cb_focal": "class-balanced focal loss",
}

for _name in ("crowd_layer", "anno_reg", "wdn"):
    _layer = METHODS[_name]
    for _loss, _meaning in LOSSES.items():
        register_method(
            f"{_loss}_{_name}",
            summary=f"{_layer.summary}; {_meaning}",
            defaults={"imbalance": _loss},
            presets=_layer.presets,
            stronger=_layer.stronger,
            space=_layer.space,
            module=__name__,
        )(_layer.factory)
