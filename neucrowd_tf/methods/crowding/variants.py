"""The registered names of CrowdInG: the method, the ablations of its tables, and DL-CL."""

from __future__ import annotations

from pathlib import Path

from neucrowd_tf.declare.registration import register_method
from neucrowd_tf.declare.settings import settings_in
from neucrowd_tf.declare.types import Fields
from neucrowd_tf.methods.crowding.estimator import CrowdInG

_SETTINGS = settings_in(Path(__file__).with_name("presets.toml"))
COMMON: Fields = {"presets": _SETTINGS["presets"], "space": _SETTINGS["space"]}

for _name, _variant in _SETTINGS["variants"].items():
    register_method(_name, module=__name__, **COMMON, **_variant)(CrowdInG)
