"""What the benchmarks share: flags, clocks, memory, a simulated crowd, printed results."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.harness.process import peak_memory_mb

__all__ = ["peak_memory_mb"]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


class Clock:
    """How long the block under it takes: `seconds` by the clock, and `cpu_seconds` of the
    processor, all threads together, which a busy machine changes little.
    """

    seconds = cpu_seconds = 0.0

    def __enter__(self) -> Clock:
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began[0]
        self.cpu_seconds = time.process_time() - self._began[1]


def memory_mb() -> float:
    """Returns the memory that this process holds now, without garbage and without what the
    allocator keeps free: that goes up to the most there ever was between two collections.
    """
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # no glibc
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def data_folder() -> str | None:
    """Returns where the published data lies, or None for the cache."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return os.environ.get("NEUCROWD_DATA") or (str(beside) if beside.is_dir() else None)


def simulated(
    seed: int, instances: int, annotators: int, classes: int, width: int, each: int
) -> tuple[Any, Any, Any]:
    """Returns features, true classes and annotations: each instance has as many labels, by
    annotators who are right four times in five.
    """
    from neucrowd_tf.annotations import Annotations

    rng = np.random.default_rng([seed, 1])
    truth = rng.integers(classes, size=instances)
    features = rng.normal(size=(instances, width)).astype(np.float32)
    features[np.arange(instances), truth] += 3.0
    # Steps of one length from a place of its own, so that nobody labels an instance twice.
    step = max(1, annotators // each)
    first = rng.integers(annotators, size=instances)
    who = (first[:, None] + step * np.arange(each)) % annotators
    others = rng.random(who.shape) < 0.8, rng.integers(classes, size=who.shape)
    crowd = Annotations(
        np.repeat(np.arange(instances), each),
        who.ravel(),
        np.where(others[0], truth[:, None], others[1]).ravel(),
        num_annotators=annotators,
        num_classes=classes,
    )
    return features, truth, crowd


def flags(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser with --json and the module's docstring as --help."""
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=how)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    return parser


def tell(arguments: argparse.Namespace, figures: Any, page: str) -> None:
    """Prints a page of results to stderr, writes it where --output says, and prints its figures
    where --json asks for them.
    """
    from neucrowd_tf.io.files.atomic import write_text

    print(page, file=sys.stderr)
    if arguments.output is not None:
        write_text(arguments.output, page)
    if arguments.json:
        print(json.dumps(figures))


def run(
    description: str | None,
    measure: Callable[[argparse.Namespace], dict[str, Any]],
    **more: int | str,
) -> None:
    """Measures what the command line asks for, and tells it: a line a figure, with --json one
    object on stdout and the lines on stderr.

    Args:
        description: the module's docstring, of which --help shows the first line.
        measure: takes the flags and returns figures by name.
        more: further flags with their defaults.
    """
    parser = flags((description or "").split("\n")[0])
    parser.add_argument("--data_dir", default=data_folder())
    for name, value in {"threads": 2, **more}.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
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
