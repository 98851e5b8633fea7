"""Whether memory grows with fits: each estimator is fitted again and again in one process.

    python -m benchmarks.memory [--methods=neucrowd,rll] [--fits=50] [--json]

Each method (by default one for each class of estimators) has a process of its own. What is measured
is what the process holds after the tenth fit and after the last one: `megabytes_a_fit` is the
difference, divided by the fits between them.
"""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks.timing import arguments, memory_mb, show, simulated
from neucrowd_tf.cli.quiet import import_tensorflow
from neucrowd_tf.harness import plugins

FIRST = 10
LIMIT = 1.0  # megabytes a fit


def methods() -> list[str]:
    """Returns a method for each class of estimators."""
    from neucrowd_tf import registry

    names: dict[Any, str] = {}
    for method in sorted(registry.methods(), key=lambda m: (len(m.defaults), len(m.name), m.name)):
        names.setdefault(method.factory, method.name)
    return sorted(names.values())


def graphs() -> int:
    """Returns how many graphs of TensorFlow's functions this process keeps."""
    gc.collect()
    return sum(type(item).__name__ == "FuncGraph" for item in gc.get_objects())


def fits_of(name: str) -> Iterator[int]:
    """Yields the number of each of a method's fits, without an end."""
    from neucrowd_tf import Annotations, registry
    from reproduction.smoke import tiny_arguments

    method = registry.method(name)
    features, truth, crowd = simulated(80, 6, 5, classes=2)
    if method.uses_truth:
        crowd = Annotations.from_dense(truth[:, None], num_classes=2)
    for number in itertools.count(1):
        estimator = method.make(**tiny_arguments(method), seed=number)
        estimator.fit(features, crowd)
        estimator.predict(features)
        del estimator
        yield number


def grown(name: str, fits: int) -> float:
    """Returns by how many megabytes a fit grows the process, after the tenth one."""
    before = 0.0
    for number in fits_of(name):
        if number == FIRST:
            before = memory_mb()
        if number == fits:
            break
    return (memory_mb() - before) / (fits - FIRST)


def main() -> int:
    """Measures the methods; returns 1 if one of them grows by more than `LIMIT`."""
    options = arguments(__doc__, methods="", fits=50)
    if options.fits <= FIRST:
        sys.exit(f"--fits: expected more than {FIRST}")
    plugins.register(("baselines", "data"))
    import_tensorflow()
    import tensorflow_probability  # noqa: F401

    growth = {}
    for name in options.methods.split(",") if options.methods else methods():
        # A process that is forked here, so that no method reuses memory that another one freed.
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as child:
            growth[name] = round(child.submit(grown, name, options.fits).result(), 3)
        print(f"{name:28} {growth[name]:8.2f} MB a fit", file=sys.stderr, flush=True)
    show(options, {"fits": options.fits, "megabytes_a_fit": growth}, "")
    return int(not all(size <= LIMIT for size in growth.values()))


if __name__ == "__main__":
    sys.exit(main())
