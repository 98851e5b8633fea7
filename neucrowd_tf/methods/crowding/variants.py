"""The registered names of CrowdInG: the method, the ablations of its tables, and DL-CL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neucrowd_tf.declare.variants import register_variants, settings_in
from neucrowd_tf.methods.crowding.estimator import CrowdInG

_SETTINGS = settings_in(Path(__file__).with_name("presets.toml"))
COMMON: dict[str, Any] = {"presets": _SETTINGS["presets"], "space": _SETTINGS["space"]}

register_variants(_SETTINGS["variants"], CrowdInG, **COMMON)
