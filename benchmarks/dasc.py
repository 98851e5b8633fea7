"""How long CrowdLayer+DASC takes: five rounds on LabelMe, one seed.

With --large instead the memory and time of two rounds over 50,000 instances, 747 annotators and 10
classes, simulated.

    python -m benchmarks.dasc [--data_dir=DIR] [--json] [--rounds=5] [--seed=0] [--large]
        [--threads=1]

One thread, as `run_experiment.py` gives a run: two wait for each other in networks as small as
these. With --json one JSON object goes to stdout and the table to stderr. Without --data_dir the
data is looked for in $NEUCROWD_DATA and in ../shared/data, then in the cache.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.timing import Clock, peak_memory_mb, run, simulated


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the figures of one of the two."""
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
        with Clock() as clock:
            fit(self, *args, **kwargs)
        seconds.append(clock.seconds)
        return self

    CrowdLayer.fit = timed  # type: ignore[method-assign]
    with Clock() as whole:
        model.fit(labelme.features, labelme.annotations, labelme.validation_pair())
    CrowdLayer.fit = fit  # type: ignore[method-assign]
    return {
        "fit_seconds": whole.seconds,
        "cpu_seconds": whole.cpu_seconds,
        "first_round_seconds": seconds[0],
        "round_seconds": float(np.median(seconds[1:])) if len(seconds) > 1 else seconds[0],
        "other_seconds": whole.seconds - sum(seconds),
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
    """Returns the time and memory of rounds over a simulated crowd with few labels per instance."""
    from neucrowd_tf.crowd_layers import CrowdLayer
    from neucrowd_tf.dasc import DASC

    sizes = instances, annotators, classes, width
    features, truth, crowd = simulated(seed, *sizes, 3, False)
    before = peak_memory_mb()
    linear = CrowdLayer(base={"hidden_units": ()}, epochs=2, batch_size=512, learning_rate=1e-2)
    model = DASC(linear, quota=20_000, rounds=rounds, pick="last", seed=seed)
    with Clock() as whole:
        model.fit(features, crowd)
    return {
        "large_seconds": whole.seconds,
        "large_cpu_seconds": whole.cpu_seconds,
        "large_rounds": rounds,
        "large_cells": instances * annotators,
        "large_accuracy": float((model.predict(features) == truth).mean()),
        "memory_before_mb": before,
        "peak_memory_mb": peak_memory_mb(),
    }


if __name__ == "__main__":
    run(__doc__, measured, large=True, rounds=5, seed=0, threads=1)
