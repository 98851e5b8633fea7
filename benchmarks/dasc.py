"""How long CrowdLayer+DASC takes: five rounds on LabelMe, one seed.

    python -m benchmarks.dasc [--data_dir=DIR] [--json] [--rounds=5] [--seed=0] [--threads=1]

One thread, as `run_experiment.py` gives a run: two wait for each other in networks as small as
these.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.timing import Clock, accuracy_on_test, peak_memory_mb, prepared, run, timed_calls


def five_rounds(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the time of a whole fit on LabelMe, and of its rounds."""
    from neucrowd_tf.methods.crowd_layer import CrowdLayer

    labelme, model = prepared("labelme", "dasc_crowd_layer", arguments, rounds=arguments.rounds)
    with timed_calls(CrowdLayer, "fit") as clocks, Clock() as whole:
        model.fit(labelme.features, labelme.annotations, labelme.validation_pair())
    seconds = [clock.seconds for clock in clocks]
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
        "accuracy": accuracy_on_test(model, labelme),
        "peak_memory_mb": peak_memory_mb(),
    }


if __name__ == "__main__":
    run(__doc__, five_rounds, rounds=5, seed=0, threads=1)
