"""How long CrowdInG takes on LabelMe, and what memory it holds after many fits in one process.

    python -m benchmarks.crowding [--data_dir=DIR] [--json] [--epochs=10] [--refits=50] [--seed=0]

`pretrain_seconds` is everything before the first epoch of the game, tracing included: DL-CL, the
generator, the discriminative module. `epoch_seconds` is an epoch of the game, the mean over all of
them with the first one's tracing. `growth_mb` is by how much the process grows between the third
fit and the last one of one estimator, each with another seed. Processor seconds are those of all
threads together.

With --json one JSON object goes to stdout and the table to stderr. Without --data_dir the data is
looked for in $NEUCROWD_DATA and in ../shared/data, then in the cache.
"""

from __future__ import annotations

import argparse
import gc
import time
from pathlib import Path
from typing import Any

from benchmarks.timing import peak_memory_mb, run


def memory_mb() -> float:
    """Returns the memory that this process holds now."""
    gc.collect()
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return peak_memory_mb()


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the times of one fit, and the growth over many."""
    import data  # noqa: F401  (registers the datasets)
    import neucrowd_tf.crowding  # noqa: F401  (registers the methods)
    from neucrowd_tf import registry
    from neucrowd_tf.training import loop

    labelme = registry.dataset("labelme").load(arguments.data_dir)
    model = registry.method("crowding").make(
        dataset="labelme", seed=arguments.seed, epochs=arguments.epochs, collapse_drop=1.0
    )
    stages: dict[str, tuple[float, float]] = {}
    train = loop.train

    def timed(trained: Any, *args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter(), time.process_time()
        result = train(trained, *args, **kwargs)
        stages[type(trained).__name__] = (
            time.perf_counter() - began[0],
            time.process_time() - began[1],
        )
        return result

    loop.train = timed
    began, processor = time.perf_counter(), time.process_time()
    model.fit(labelme.features, labelme.annotations, labelme.validation_pair())
    total, processor = time.perf_counter() - began, time.process_time() - processor
    loop.train = train
    (game, game_processor), first = stages.pop("CrowdInGModel"), model.n_iter_
    accuracy = float(model.score(labelme.test.features, labelme.class_names[labelme.test.labels]))
    peak = peak_memory_mb()
    began = time.perf_counter()
    before = memory_mb()
    for index in range(1, arguments.refits):
        model.set_params(seed=arguments.seed + index).fit(
            labelme.features, labelme.annotations, labelme.validation_pair()
        )
        if index == 2:
            before = memory_mb()
    return {
        "pretrain_seconds": total - game,
        "epoch_seconds": game / first,
        "game_seconds": game,
        "fit_seconds": total,
        "pretrain_processor_seconds": processor - game_processor,
        "game_processor_seconds": game_processor,
        "refit_seconds": (time.perf_counter() - began) / max(1, arguments.refits - 1),
        "epochs": first,
        "accuracy": accuracy,
        "refits": arguments.refits,
        "growth_mb": memory_mb() - before,
        "peak_memory_mb": peak,
        "peak_memory_after_refits_mb": peak_memory_mb(),
    }


if __name__ == "__main__":
    run(__doc__, measure, epochs=10, refits=50, seed=0)
