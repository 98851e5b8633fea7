"""How long an epoch of CrowdLayer takes, and what memory a fit, on a large simulated crowd.

    python -m benchmarks.crowd_layers [--json] [--instances=200000] [--features=50]
        [--labels=1000000] [--annotators=2000] [--classes=5] [--epochs=3] [--threads=2]

With --json one JSON object goes to stdout and the table to stderr.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.timing import peak_memory_mb, run


def simulated(arguments: argparse.Namespace) -> tuple[Any, Any, Any]:
    """Returns features, true classes and annotations: each instance has as many labels, by
    annotators who are right four times in five.
    """
    from neucrowd_tf.annotations import Annotations

    rng = np.random.default_rng([arguments.seed, 1])
    size, classes = arguments.instances, arguments.classes
    truth = rng.integers(classes, size=size)
    features = rng.normal(size=(size, arguments.features)).astype(np.float32)
    features[np.arange(size), truth] += 3.0
    each = arguments.labels // size
    # Steps of one length from a place of its own, so that nobody labels an instance twice.
    step = max(1, arguments.annotators // each)
    first = rng.integers(arguments.annotators, size=(size, 1))
    who = (first + step * np.arange(each)) % arguments.annotators
    said = np.where(
        rng.random(who.shape) < 0.8, truth[:, None], rng.integers(classes, size=who.shape)
    )
    crowd = Annotations(
        np.repeat(np.arange(size), each),
        who.ravel(),
        said.ravel(),
        num_annotators=arguments.annotators,
        num_classes=classes,
    )
    return features, truth, crowd


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the median time of an epoch, that of the whole fit, and memory."""
    import keras

    from neucrowd_tf.crowd_layers import CrowdLayer

    features, truth, crowd = simulated(arguments)
    before, ends = peak_memory_mb(), []
    begin = keras.callbacks.CallbackList.on_epoch_begin
    end = keras.callbacks.CallbackList.on_epoch_end

    def began(self: Any, *given: Any, **named: Any) -> None:
        ends.append(-time.perf_counter())
        begin(self, *given, **named)

    def ended(self: Any, *given: Any, **named: Any) -> None:
        end(self, *given, **named)
        ends[-1] += time.perf_counter()

    keras.callbacks.CallbackList.on_epoch_begin = began
    keras.callbacks.CallbackList.on_epoch_end = ended
    model = CrowdLayer(epochs=arguments.epochs, batch_size=arguments.batch, seed=arguments.seed)
    started, worked = time.perf_counter(), time.process_time()
    model.fit(features, crowd)
    total, work = time.perf_counter() - started, time.process_time() - worked
    return {
        # The first one compiles.
        "epoch_seconds": float(np.median(ends[1:] or ends)),
        "first_epoch_seconds": ends[0],
        "fit_seconds": total,
        # Of all threads, compiling included: what a busy machine changes little.
        "cpu_seconds_an_epoch": work / arguments.epochs,
        "memory_before_mb": before,
        "peak_memory_mb": peak_memory_mb(),
        "accuracy": float((model.predict(features) == truth).mean()),
        **{
            name: value
            for name, value in vars(arguments).items()
            if name not in ("json", "data_dir")
        },
    }


if __name__ == "__main__":
    sizes = {"instances": 200_000, "features": 50, "labels": 1_000_000, "annotators": 2000}
    run(__doc__, measured, **sizes, classes=5, epochs=3, batch=128, seed=0)
