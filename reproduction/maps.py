from __future__ import annotations
from pathlib import Path
from neucrowd_tf.cli.runs.options import Options
from reproduction.suite import Suite


def write(suite: Suite, options: Options) -> list[Path]:
    return []
