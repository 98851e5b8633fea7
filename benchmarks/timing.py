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
from collections.abc import Callable, Iterator, Sequence
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


@contextlib.contextmanager
def timed_calls(owner: Any, name: str) -> Iterator[list[Clock]]:
    """Yields the clocks of all calls of a function of a module or a class, which it measures."""
    function, clocks = getattr(owner, name), []

    def timed(*arguments: Any, **options: Any) -> Any:
        with Clock() as clock:
            clocks.append(clock)
            return function(*arguments, **options)

    setattr(owner, name, timed)
    try:
        yield clocks
    finally:
        setattr(owner, name, function)


def memory_mb() -> float:
    """Returns the memory that this process holds now, without garbage and without what the
    allocator keeps free: that goes up to the most there ever was between two collections.
    """
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # no glibc
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def data_folder() -> Path | None:
    """Returns where the published data lies, or None for the cache."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("NEUCROWD_DATA") or beside)
    return folder if folder.is_dir() else None


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


def arguments(
    description: str | None,
    argv: Sequence[str] | None = None,
    *,
    commands: Sequence[str] = (),
    **flags: Any,
) -> argparse.Namespace:
    """Returns the values of a command's flags, `json` among them.

    Args:
        description: the module's docstring, shown by --help.
        argv: of the command; those of the process by default.
        commands: what the first argument may be; it becomes `command`.
        flags: the default of each flag. False makes a switch, None a path without a default, and a
            type a required value.
    """
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=how)
    if commands:
        parser.add_argument("command", choices=commands)
    for name, value in {"json": False, **flags}.items():
        if value is False:
            parser.add_argument(f"--{name}", action="store_true")
        elif isinstance(value, type):
            parser.add_argument(f"--{name}", type=value, required=True)
        else:
            kind = Path if value is None else type(value)
            parser.add_argument(f"--{name}", type=kind, default=value)
    return parser.parse_args(argv)


def show(options: argparse.Namespace, figures: Any, page: str | None = None) -> None:
    """Prints a page, by default a line per figure, and writes it to --output if that is a flag.

    With --json the figures go to stdout as one object, and the page to stderr.
    """
    from neucrowd_tf.io.files.atomic import write_text

    if page is None:
        shown = (
            "-" if v is None else f"{v:,.4f}" if isinstance(v, float) else f"{v:,}"
            for v in figures.values()
        )
        page = "\n".join(f"{k:<46}{v:>14}" for k, v in zip(figures, shown, strict=True))
    if page:
        print(page, file=sys.stderr if options.json else sys.stdout)
    if getattr(options, "output", None) is not None:
        write_text(options.output, page)
    if options.json:
        print(json.dumps(figures))


def run(
    description: str | None, measure: Callable[[argparse.Namespace], dict[str, Any]], **flags: Any
) -> None:
    """Measures what the flags of the command say, and shows the figures.

    Args:
        description: the module's docstring.
        measure: takes the flags' values and returns figures by name.
        flags: as in `arguments`; all such commands have --data_dir and --threads too.
    """
    options = arguments(description, **{"data_dir": data_folder(), "threads": 2, **flags})
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(options.threads)
    show(options, measure(options))
