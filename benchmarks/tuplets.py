"""How long an epoch of n-tuplets takes: NeuCrowd on hotel, sampling network on.

python -m benchmarks.tuplets --data_dir=DIR [--json] [--tuplets=60000] [--batch=512]
[--pool_factor=2] [--repeats=5]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.timing import Clock, peak_memory_mb, run


def build(options: argparse.Namespace) -> tuple[Any, Any, Any]:
    """Returns a compiled model, its pipeline's maker and the estimator, on hotel's training set."""
    import data  # noqa: F401  (registers the datasets)
    from neucrowd_tf import registry
    from neucrowd_tf.neucrowd import NeuCrowd
    from neucrowd_tf.training import Run
    from neucrowd_tf.training.validation import consensus_labels

    hotel = registry.dataset("hotel").load(options.data_dir)
    steps = -(-options.tuplets // options.batch)
    estimator = NeuCrowd(
        n=options.n,
        batch_size=options.batch,
        pool_factor=options.pool_factor,
        steps_per_epoch=steps,
        sampler_warmup=0,
    )
    # With validation data nothing is held out of the training instances.
    pair = hotel.validation_pair()
    checked = estimator._check(hotel.features, hotel.annotations, pair, Run())
    prepared = estimator._prepare(checked, consensus_labels(checked.annotations, estimator.seed))
    model, batches = estimator._network(prepared)
    return estimator._compiled(model, Run(), steps), batches, (estimator, prepared)


def timed_epochs(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the median time of an epoch in `fit` after warm-up, and how it splits."""
    import keras

    model, batches, (estimator, prepared) = build(options)
    steps, safety, starts, ends = estimator.steps_per_epoch, [], [], []

    def begin(epoch: int, logs: Any) -> None:
        starts.append(time.perf_counter())
        estimator._before_epoch(model, prepared, epoch)
        safety.append(time.perf_counter() - starts[-1])

    clock = keras.callbacks.LambdaCallback(
        on_epoch_begin=begin, on_epoch_end=lambda *_: ends.append(time.perf_counter())
    )
    plan = {"epochs": options.repeats + 2, "steps_per_epoch": steps, "callbacks": [clock]}
    model.fit(batches(0), **plan, verbose=0, shuffle=False)
    epochs = np.subtract(ends, starts)[2:]
    iterator = iter(batches(0))
    with Clock() as pipeline:
        for _ in range(steps):
            next(iterator)
    seconds, trained = float(np.median(epochs)), steps * options.batch
    return {
        "epoch_seconds": seconds,
        "epoch_seconds_min": float(np.min(epochs)),
        "safety_seconds": float(np.median(safety[2:])),
        "pipeline_seconds": pipeline.seconds,
        "tuplets_a_second": trained / seconds,
        "tuplets": options.tuplets,
        "trained_tuplets": trained,
        "batch": options.batch,
        "n": options.n,
        "pool_factor": options.pool_factor,
        "instances": len(prepared.labels),
        "peak_memory_mb": peak_memory_mb(),
    }


if __name__ == "__main__":
    run(__doc__, timed_epochs, tuplets=60_000, batch=512, n=5, pool_factor=2, repeats=5)
