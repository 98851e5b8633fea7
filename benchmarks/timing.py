"""What the benchmarks of one fit share: their flags, where the data lies, memory, and how a result
is told.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def peak_memory_mb() -> float:
    """Returns the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def data_folder() -> str | None:
    """Returns where the published data lies, or None for the cache."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return os.environ.get("NEUCROWD_DATA") or (str(beside) if beside.is_dir() else None)


def run(
    description: str | None,
    measure: Callable[[argparse.Namespace], dict[str, Any]],
    *,
    large: bool = False,
    **numbers: int,
) -> None:
    """Measures what the command line asks for, and tells it: a line a figure, with --json one
    object on stdout and the lines on stderr.

    Args:
        description: the module's docstring, of which --help shows the first line.
        measure: takes the flags and returns figures by name.
        large: whether there is a flag --large.
        numbers: further flags with their defaults.
    """
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    parser.add_argument("--data_dir", default=data_folder())
    parser.add_argument("--json", action="store_true")
    if large:
        parser.add_argument("--large", action="store_true")
    for name, value in {**numbers, "threads": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    arguments = parser.parse_args()
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tf.config.threading.set_inter_op_parallelism_threads(arguments.threads)
    result = measure(arguments)
    out = sys.stderr if arguments.json else sys.stdout
    for name, value in result.items():
        shown = f"{value:>14,.4f}" if isinstance(value, float) else f"{value:>14,}"
        print(f"{name:<30}{shown}", file=out)
    if arguments.json:
        print(json.dumps(result))
