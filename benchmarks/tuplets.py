"""How long an epoch of n-tuplets takes: NeuCrowd on hotel, sampling network on.

    python -m benchmarks.tuplets --data_dir=DIR [--json] [--tuplets=60000] [--batch=512]
    [--pool_factor=2] [--repeats=5]

With --json one JSON object goes to stdout and the table to stderr.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.timing import peak_memory_mb, run


def build(arguments: argparse.Namespace) -> tuple[Any, Any, Any]:
    """Returns a compiled model, its pipeline's maker and the estimator, on hotel's training set."""
    import data  # noqa: F401  (registers the datasets)
    from neucrowd_tf import registry
    from neucrowd_tf.neucrowd import NeuCrowd
    from neucrowd_tf.training import Run
    from neucrowd_tf.training.validation import consensus_labels

    hotel = registry.dataset("hotel").load(arguments.data_dir)
    steps = -(-arguments.tuplets // arguments.batch)
    estimator = NeuCrowd(
        n=arguments.n,
        batch_size=arguments.batch,
        pool_factor=arguments.pool_factor,
        steps_per_epoch=steps,
        sampler_warmup=0,
    )
    # With validation data nothing is held out of the training instances.
    pair = hotel.validation_pair()
    checked = estimator._check(hotel.features, hotel.annotations, pair, Run())
    prepared = estimator._prepare(checked, consensus_labels(checked.annotations, estimator.seed))
    model, batches = estimator._network(prepared)
    return estimator._compiled(model, Run(), steps), batches, (estimator, prepared)


def timed_epochs(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the median time of an epoch in `fit` after warm-up, and how it splits."""
    import keras

    model, batches, (estimator, prepared) = build(arguments)
    steps = estimator.steps_per_epoch

    class Clock(keras.callbacks.Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.safety: list[float] = []
            self.epochs: list[float] = []

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.start = time.perf_counter()
            estimator._before_epoch(model, prepared, epoch)
            self.safety.append(time.perf_counter() - self.start)

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.epochs.append(time.perf_counter() - self.start)

    clock = Clock()
    model.fit(
        batches(0),
        epochs=arguments.repeats + 2,
        steps_per_epoch=steps,
        callbacks=[clock],
        verbose=0,
        shuffle=False,
    )
    iterator = iter(batches(0))
    start = time.perf_counter()
    for _ in range(steps):
        next(iterator)
    return {
        "epoch_seconds": float(np.median(clock.epochs[2:])),
        "epoch_seconds_min": float(np.min(clock.epochs[2:])),
        "safety_seconds": float(np.median(clock.safety[2:])),
        "pipeline_seconds": time.perf_counter() - start,
        "tuplets_a_second": steps * arguments.batch / float(np.median(clock.epochs[2:])),
        "tuplets": arguments.tuplets,
        "trained_tuplets": steps * arguments.batch,
        "batch": arguments.batch,
        "n": arguments.n,
        "pool_factor": arguments.pool_factor,
        "instances": len(prepared.labels),
        "peak_memory_mb": peak_memory_mb(),
    }


if __name__ == "__main__":
    run(__doc__, timed_epochs, tuplets=60_000, batch=512, n=5, pool_factor=2, repeats=5)
