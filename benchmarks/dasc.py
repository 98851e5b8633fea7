"""How long CrowdLayer+DASC takes: five rounds on LabelMe, one seed; with --large instead the memory
and time of two rounds over 50,000 instances, 747 annotators and 10 classes, simulated.

    python -m benchmarks.dasc [--data_dir=DIR] [--json] [--rounds=5] [--seed=0] [--large]

With --json one JSON object goes to stdout and the table to stderr. Without --data_dir the data is
looked for in $NEUCROWD_DATA and in ../shared/data, then in the cache.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.timing import peak_memory_mb, run


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    return large_rounds(seed=arguments.seed) if arguments.large else five_rounds(arguments)


def five_rounds(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the time of a whole fit on LabelMe, and of its rounds."""
    import data  # noqa: F401  (registers the datasets)
    import neucrowd_tf.dasc  # noqa: F401  (registers the methods)
    from neucrowd_tf import registry
    from neucrowd_tf.crowd_layers import CrowdLayer

    labelme = registry.dataset("labelme").load(arguments.data_dir)
    model = registry.method("dasc_crowd_layer").make(
        dataset="labelme", seed=arguments.seed, rounds=arguments.rounds
    )
    seconds: list[float] = []
    fit = CrowdLayer.fit

    def timed(self: Any, *args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        result = fit(self, *args, **kwargs)
        seconds.append(time.perf_counter() - began)
        return result

    CrowdLayer.fit = timed  # type: ignore[method-assign]
    began, worked = time.perf_counter(), time.process_time()
    model.fit(labelme.features, labelme.annotations, labelme.validation_pair())
    total, work = time.perf_counter() - began, time.process_time() - worked
    CrowdLayer.fit = fit  # type: ignore[method-assign]
    return {
        "fit_seconds": total,
        # Of all threads: what a busy machine changes little.
        "cpu_seconds": work,
        "first_round_seconds": seconds[0],
        "round_seconds": float(np.median(seconds[1:])) if len(seconds) > 1 else seconds[0],
        "other_seconds": total - sum(seconds),
        "rounds": arguments.rounds,
        "epochs": model.estimator_.n_iter_,
        "instances": labelme.features.shape[0],
        "annotators": labelme.annotations.num_annotators,
        "accuracy": float(
            model.score(labelme.test.features, labelme.class_names[labelme.test.labels])
        ),
        "peak_memory_mb": peak_memory_mb(),
    }


def large_rounds(
    instances: int = 50_000,
    annotators: int = 747,
    classes: int = 10,
    width: int = 20,
    rounds: int = 2,
    seed: int = 0,
) -> dict[str, Any]:
    """Returns the time and memory of rounds over a simulated crowd, few labels an instance: fit,
    predict every cell, select, refit.
    """
    from neucrowd_tf.annotations import Annotations
    from neucrowd_tf.crowd_layers import CrowdLayer
    from neucrowd_tf.dasc import DASC

    rng = np.random.default_rng([seed, 1])
    truth = rng.integers(classes, size=instances)
    features = rng.normal(size=(instances, width)).astype(np.float32)
    features[np.arange(instances), truth] += 3.0
    who = (np.arange(instances)[:, None] + np.array([0, 1, 2]) * (annotators // 3)) % annotators
    labels = np.where(
        rng.random(who.shape) < 0.8, truth[:, None], rng.integers(classes, size=who.shape)
    )
    crowd = Annotations(
        np.repeat(np.arange(instances), 3),
        who.ravel(),
        labels.ravel(),
        num_annotators=annotators,
        num_classes=classes,
    )
    before = peak_memory_mb()
    linear = CrowdLayer(hidden_units=(), epochs=2, batch_size=512, learning_rate=1e-2)
    model = DASC(linear, quota=20_000, rounds=rounds, pick="last", seed=seed)
    began, worked = time.perf_counter(), time.process_time()
    model.fit(features, crowd)
    return {
        "large_seconds": time.perf_counter() - began,
        "large_cpu_seconds": time.process_time() - worked,
        "large_rounds": rounds,
        "large_cells": instances * annotators,
        "large_accuracy": float((model.predict(features) == truth).mean()),
        "memory_before_mb": before,
        "peak_memory_mb": peak_memory_mb(),
    }


if __name__ == "__main__":
    run(__doc__, measured, large=True, rounds=5, seed=0)
