"""What the benchmarks share: flags, a clock, a simulated crowd, printed results."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


class Clock:
    """How long the block under it takes: `seconds` by the clock, from `began` to `ended`, and
    `cpu_seconds` of the processor, all threads together, which a busy machine changes little.
    """

    def __enter__(self) -> Clock:
        self.began, self._cpu_began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = time.perf_counter()
        self.seconds = self.ended - self.began
        self.cpu_seconds = time.process_time() - self._cpu_began


def data_folder() -> Path | None:
    """Returns where the published data lies, or None for the cache."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("NEUCROWD_DATA") or beside)
    return folder if folder.is_dir() else None


def simulated(
    size: int, width: int, annotators: int, each: int = 4, classes: int = 4, seed: int = 0
) -> tuple[Any, Any, Any]:
    """Returns features of linearly separable classes, true classes, and labels of each instance.

    The annotators are right for 40 to 95% of the instances.
    """
    from neucrowd_tf.annotations import Annotations

    rng = np.random.default_rng(seed)
    rule, features = rng.normal(size=(width, classes)), rng.normal(size=(size, width))
    truth = (features @ rule).argmax(axis=1)
    skill = rng.uniform(0.4, 0.95, annotators)
    instances = np.repeat(np.arange(size), each)
    who = np.concatenate([rng.choice(annotators, each, replace=False) for _ in range(size)])
    right = rng.random(len(who)) < skill[who]
    labels = np.where(right, truth[instances], rng.integers(0, classes, len(who)))
    crowd = Annotations(instances, who, labels, num_classes=classes)
    return features.astype(np.float32), truth, crowd


def arguments(description: str | None, **flags: Any) -> argparse.Namespace:
    """Returns the values of a command's flags, `json` among them.

    Args:
        description: the module's docstring, shown by --help.
        flags: the default of each flag. False makes a switch, None a path without a default.
    """
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=how)
    for name, value in {"json": False, **flags}.items():
        if value is False:
            parser.add_argument(f"--{name}", action="store_true")
        else:
            kind = Path if value is None else type(value)
            parser.add_argument(f"--{name}", type=kind, default=value)
    return parser.parse_args()


def show(options: argparse.Namespace, figures: Any, page: str | None = None) -> None:
    """Prints a page, by default a line per figure.

    With --json the figures go to stdout as one object, and the page to stderr.
    """
    import pandas as pd

    if page is None:
        page = pd.Series(figures, dtype=object).to_string()
    if page:
        print(page, file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(figures))
