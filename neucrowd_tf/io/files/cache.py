"""The folder for what is downloaded or computed once."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "NEUCROWD_CACHE"


def cache_dir() -> Path:
    """Returns the cache folder: `$NEUCROWD_CACHE`, or `~/.cache/neucrowd_tf`."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    return Path.home() / ".cache" / "neucrowd_tf"
