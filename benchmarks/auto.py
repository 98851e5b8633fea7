"""The duration of `auto`, and of each candidate's cross-validation.

    python -m benchmarks.auto [--tables=labelme,music,simulated] [--data_dir=DIR] [--json]

The tables are the training instances of LabelMe and Music (only with --data_dir), and a simulated
table of 5,000 instances, 200 features and 203 annotators with 20,000 labels; `medium` (only if it
is named) has 3,000 instances, 100 features and 40 annotators with 12,000 labels. `seconds` is a fit
by the clock without the import of TensorFlow. `cpu_seconds` is that of all cores, which a busy
machine changes little.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from benchmarks.timing import Clock, arguments, data_folder, show, simulated
from neucrowd_tf import registry
from neucrowd_tf.choice import Auto
from neucrowd_tf.harness import plugins

# Instances, features and annotators.
SIMULATED = {"simulated": (5000, 200, 203), "medium": (3000, 100, 40)}
TABLES = ("labelme", "music", *SIMULATED)
SEED = 1


def timed(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Returns what a fit of one table takes and what it recommends."""
    if name in SIMULATED:
        features, _, annotations = simulated(*SIMULATED[name])
    else:
        plugins.register(("data",))
        dataset = registry.dataset(name).load(options.data_dir, SEED)
        features, annotations = dataset.features, dataset.annotations
    auto = Auto(seed=SEED)
    with Clock() as clock:
        auto.fit(features, annotations)
    return {
        "rows": len(features),
        "features": int(np.prod(features.shape[1:])),
        "annotators": annotations.num_annotators,
        "seconds": round(clock.seconds, 2),
        "cpu_seconds": round(clock.cpu_seconds, 2),
        "candidates": {key: round(value, 2) for key, value in auto.seconds_.items()},
        "method": auto.recommendation_["method"],
        "members": auto.recommendation_["members"],
    }


def main() -> None:
    """Times the tables."""
    options = arguments(__doc__, tables=",".join(TABLES[:3]), data_dir=data_folder())
    import tensorflow as tf  # not counted

    tf.get_logger().setLevel("ERROR")
    results: dict[str, Any] = {}
    for name in options.tables.split(","):
        if name not in TABLES:
            sys.exit(f"--tables: expected {', '.join(TABLES)}, received {name!r}")
        if name in SIMULATED or options.data_dir is not None:
            results[name] = timed(name, options)
            print(name, results[name], file=sys.stderr, flush=True)
    show(options, results, "")


if __name__ == "__main__":
    main()
