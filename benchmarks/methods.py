"""Processor time of methods, beside what else computes the same in the same run.

    python -m benchmarks.methods [--names=glad,crowd_layers] [--repeats=3] [--size=1] [--json]

`dasc`, `crowding`, `iced`, `crowd_layers` and `tuplets` fit simulated data. `aggregation`
(Dawid-Skene), `glad` and `scale` (Dawid-Skene out of core) infer labels; `benchmarks.peers` has the
times of crowd-kit. The other ways are plain Keras with a row for each annotation, and features that
are copied into tuplets, as NeuCrowd's authors do. `ratio` is the other way's processor seconds over
ours, each the least of the repeats, which alternate. --size multiplies the numbers of instances. To
compare two commits, run this file with each of them first on PYTHONPATH, alternately.

`commands` (aggregate, report and relabel, beside pandas and crowd-kit), `features` (memory of a fit
over that of its features) and `refits` (a second fit over the first one) run processes of their own
and once; see `benchmarks.processes`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from benchmarks.processes import FIGURES
from benchmarks.timing import Clock, arguments, show, simulated
from neucrowd_tf.aggregation import DawidSkene, Glad
from neucrowd_tf.aggregation.engine.fit import Request, fit
from neucrowd_tf.aggregation.engine.local import Local
from neucrowd_tf.cli.runs import plugins
from neucrowd_tf.declare import registry

Way = Callable[[], Any]
# An anchor, a positive example and three negatives, drawn alike: what the authors' way does too.
TUPLETS = {"n": 5, "batch_size": 512, "steps_per_epoch": 40, "epochs": 2}
TUPLETS |= {"sampling_network": False, "safety_aware": False}
# Method, hyper-parameters, and instances, features, annotators, labels per instance, classes.
FITS: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {
    "dasc": ("dasc_crowd_layer", {"rounds": 3, "epochs": 10}, (1000, 512, 59, 3, 8)),
    "crowding": ("crowding", {"epochs": 5, "collapse_drop": 1.0}, (1000, 512, 59, 3, 8)),
    "iced": ("iced", {"rounds": 4}, (1000, 256, 40, 5, 2)),
    "crowd_layers": ("crowd_layer", {"epochs": 3}, (40_000, 50, 500, 5, 5)),
    "tuplets": ("neucrowd", {**TUPLETS, "hidden_units": (128, 64)}, (2000, 300, 7, 7, 2)),
}
VOTES = {
    "aggregation": (40_000, 1, 400, 5, 5),
    "glad": (2000, 1, 176, 3, 2),
    "scale": (50_000, 1, 1000, 10, 5),
}
ITERATIONS = 10


def rows_of_annotations(features: Any, crowd: Any, options: dict[str, Any]) -> None:
    """Plain Keras: a row of features for each annotation."""
    layers = [keras.layers.Dense(128, "relu"), keras.layers.Dropout(0.5)]
    model = keras.Sequential([*layers, keras.layers.Dense(crowd.num_classes, "softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    rows = features[crowd.instances]
    model.fit(rows, crowd.labels, batch_size=128, epochs=options["epochs"], verbose=0)


def copied_tuplets(features: Any, crowd: Any, options: dict[str, Any]) -> None:
    """The authors' way: an epoch's tuplets with copies of their features, then Keras."""
    del crowd
    inputs = keras.Input((options["n"], features.shape[1]))
    encoded = inputs
    for units in options["hidden_units"]:
        encoded = keras.layers.Dense(units, "tanh")(encoded)
    scores = keras.layers.Dot((2, 2), normalize=True)([encoded[:, :1], encoded[:, 1:]])
    model = keras.Model(inputs, keras.ops.softmax(scores[:, 0]))
    model.compile("adadelta", "sparse_categorical_crossentropy")
    rng = np.random.default_rng(0)
    size = options["batch_size"]
    for _ in range(options["epochs"]):
        rows = rng.integers(0, len(features), (options["steps_per_epoch"] * size, options["n"]))
        model.fit(features[rows], np.zeros(len(rows), np.int32), batch_size=size, verbose=0)


def out_of_core(crowd: Any) -> None:
    """Dawid-Skene with shards on disk; reading the table is part of it."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "labels.parquet"
        crowd.to_frame().to_parquet(source)
        engine = Local(1)
        fit(Request(source, "dawid_skene", Path(folder) / "out", ITERATIONS, 0.0), engine)
        engine.close()


def ways(name: str, size: float) -> list[Way]:
    """Returns what computes the benchmark of that name: ours, and the other one if there is one."""
    if name in VOTES:
        instances, *shape = VOTES[name]
        _, _, crowd = simulated(int(instances * size), *shape)
        ours = {
            "aggregation": DawidSkene(max_iter=ITERATIONS, tol=-np.inf).fit,
            "glad": Glad().fit,
            "scale": out_of_core,
        }
        return [partial(ours[name], crowd)]
    method, options, (instances, *shape) = FITS[name]
    features, _, crowd = simulated(int(instances * size), *shape)
    fit = partial(registry.method(method).make(seed=0, **options).fit, features, crowd)
    others = {"crowd_layers": rows_of_annotations, "tuplets": copied_tuplets}
    if name in others:
        return [fit, partial(others[name], features, crowd, options)]
    return [fit]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the least processor seconds by name, and ratios."""
    warnings.simplefilter("ignore")  # iterations are cut short on purpose
    plugins.register(("baselines",))
    figures: dict[str, Any] = {}
    for name in options.names.split(","):
        if name not in (*FITS, *VOTES, *FIGURES):
            sys.exit(f"--names={name}: expected {', '.join((*FITS, *VOTES, *FIGURES))}.")
        if name in FIGURES:
            figures |= FIGURES[name](options.size)
            continue
        both = ways(name, options.size)
        least = [np.inf] * len(both)
        for _ in range(options.repeats):
            for index, way in enumerate(both):
                with Clock() as clock:
                    way()
                least[index] = min(least[index], clock.cpu_seconds)
        figures[f"{name}_seconds"] = least[0]
        if len(least) > 1:
            figures |= {f"{name}_other_seconds": least[1], f"{name}_ratio": least[1] / least[0]}
    return figures


if __name__ == "__main__":
    options = arguments(__doc__, json=False, names=",".join((*FITS, *VOTES)), repeats=3, size=1.0)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    figures = measure(options)
    show(options, figures, "\n".join(f"{name:28} {x:.3f}" for name, x in figures.items()))
