"""What the benchmarks share: flags, a clock, a simulated crowd."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.annotations import Annotations

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


class Clock:
    """Seconds of the block under it: by the clock, and of the processor in all threads."""

    def __enter__(self) -> Clock:
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began[0]
        self.cpu_seconds = time.process_time() - self._began[1]


def simulated(
    size: int, width: int, annotators: int, labels_each: int = 4, classes: int = 4, seed: int = 0
) -> tuple[Any, Any, Any]:
    """Returns features of linearly separable classes, true classes, and labels of each instance.

    The annotators are right for 40 to 95% of the instances.
    """
    rng = np.random.default_rng(seed)
    rule = rng.normal(size=(width, classes))
    features = rng.normal(size=(size, width))
    truth = (features @ rule).argmax(axis=1)
    skill = rng.uniform(0.4, 0.95, annotators)
    instances = np.repeat(np.arange(size), labels_each)
    chosen = np.concatenate(
        [rng.choice(annotators, labels_each, replace=False) for _ in range(size)]
    )
    right = rng.random(len(chosen)) < skill[chosen]
    labels = np.where(right, truth[instances], rng.integers(0, classes, len(chosen)))
    crowd = Annotations(instances, chosen, labels, num_classes=classes)
    return features.astype(np.float32), truth, crowd


def arguments(description: str | None, **flags: Any) -> argparse.Namespace:
    """Returns the values of a command's flags by their defaults.

    False makes a switch; a type is that of a flag without default.
    """
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=formatter)
    for name, value in flags.items():
        if value is False:
            parser.add_argument(f"--{name}", action="store_true")
        elif isinstance(value, type):
            parser.add_argument(f"--{name}", type=value)
        else:
            parser.add_argument(f"--{name}", type=type(value), default=value)
    return parser.parse_args()


def show(options: argparse.Namespace, figures: Any, page: str) -> None:
    """Prints a page, or with --json the figures."""
    print(json.dumps(figures) if options.json else page)


def data_folder() -> Path:
    """Returns where the published data lies, which may not exist."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("NEUCROWD_DATA") or beside)
