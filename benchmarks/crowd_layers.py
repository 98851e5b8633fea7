"""How long an epoch of CrowdLayer takes, and what memory a fit, on a large simulated crowd.

python -m benchmarks.crowd_layers [--json] [--instances=200000] [--features=50]
    [--labels=1000000] [--annotators=2000] [--classes=5] [--epochs=3] [--threads=2]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.timing import Clock, peak_memory_mb, run, simulated, timed_calls


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the median time of an epoch, that of the whole fit, and memory."""
    import keras

    from neucrowd_tf.methods.crowd_layer import CrowdLayer

    sizes = arguments.instances, arguments.features, arguments.annotators
    each = arguments.labels // arguments.instances
    features, truth, crowd = simulated(*sizes, each, arguments.classes, arguments.seed)
    before, hooks = peak_memory_mb(), keras.callbacks.CallbackList
    model = CrowdLayer(epochs=arguments.epochs, batch_size=arguments.batch, seed=arguments.seed)
    with (
        timed_calls(hooks, "on_epoch_begin") as begins,
        timed_calls(hooks, "on_epoch_end") as ends,
        Clock() as clock,
    ):
        model.fit(features, crowd)
    epochs = [end.ended - begin.began for begin, end in zip(begins, ends, strict=True)]
    return {
        # The first one compiles.
        "epoch_seconds": float(np.median(epochs[1:] or epochs)),
        "first_epoch_seconds": epochs[0],
        "fit_seconds": clock.seconds,
        # Compiling included.
        "cpu_seconds_an_epoch": clock.cpu_seconds / arguments.epochs,
        "memory_before_mb": before,
        "peak_memory_mb": peak_memory_mb(),
        "accuracy": float((model.predict(features) == truth).mean()),
        **{name: x for name, x in vars(arguments).items() if name not in ("json", "data_dir")},
    }


if __name__ == "__main__":
    sizes = {"instances": 200_000, "features": 50, "labels": 1_000_000, "annotators": 2000}
    run(__doc__, measured, **sizes, classes=5, epochs=3, batch=128, seed=0)
