"""How long CrowdInG takes on LabelMe, and what memory it holds after many fits in one process.

    python -m benchmarks.crowding [--data_dir=DIR] [--json] [--epochs=10] [--refits=50] [--seed=0]
        [--threads=1]

`pretrain_seconds` is everything before the first epoch of the game, tracing included: DL-CL, the
generator, the discriminative module. `epoch_seconds` is an epoch of the game, the mean over all of
them with the first one's tracing. `growth_mb` is by how much the process grows between the third
fit and the last one of one estimator, each with another seed. Processor seconds are those of all
threads together. One thread, as `run_experiment.py` gives a run: two wait for each other in
operations as small as these, and take a third more processor time.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.timing import (
    Clock,
    accuracy_on_test,
    memory_mb,
    peak_memory_mb,
    prepared,
    run,
    timed_calls,
)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the times of one fit, and the growth over many."""
    from neucrowd_tf.training import loop

    options = {"epochs": arguments.epochs, "collapse_drop": 1.0}
    labelme, model = prepared("labelme", "crowding", arguments, **options)
    with timed_calls(loop, "train") as stages, Clock() as whole:
        model.fit(labelme.features, labelme.annotations, labelme.validation_pair())
    game, first = stages[-1], model.n_iter_
    accuracy, peak = accuracy_on_test(model, labelme), peak_memory_mb()
    before = memory_mb()
    with Clock() as refits:
        for index in range(1, arguments.refits):
            model.set_params(seed=arguments.seed + index).fit(
                labelme.features, labelme.annotations, labelme.validation_pair()
            )
            if index == 2:
                before = memory_mb()
    return {
        "pretrain_seconds": whole.seconds - game.seconds,
        "epoch_seconds": game.seconds / first,
        "game_seconds": game.seconds,
        "fit_seconds": whole.seconds,
        "pretrain_processor_seconds": whole.cpu_seconds - game.cpu_seconds,
        "game_processor_seconds": game.cpu_seconds,
        "refit_seconds": refits.seconds / max(1, arguments.refits - 1),
        "epochs": first,
        "accuracy": accuracy,
        "refits": arguments.refits,
        "growth_mb": memory_mb() - before,
        "peak_memory_mb": peak,
        "peak_memory_after_refits_mb": peak_memory_mb(),
    }


if __name__ == "__main__":
    run(__doc__, measure, epochs=10, refits=50, seed=0, threads=1)
