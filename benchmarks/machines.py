"""Training on several machines: two processes of one thread each against one, on one machine.

    python -m benchmarks.machines [--images=512] [--base=resnet18] [--json]
        [--epochs=3] [--batch_size=64] [--optimizer=sgd] [--learning_rate=0.01]

A crowd layer on drawn images of 32 x 32 pixels. Weights are compared after the first epoch
(`largest_difference`, and `relative_differences` by kind of variable). Images a second are the best
of the later epochs, and `cpu_ratio` is the ratio by seconds of processor, for busy machines.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import arguments, show
from neucrowd_tf.training.run import Run

SETTINGS = ("optimizer", "learning_rate", "epochs", "batch_size")


@dataclasses.dataclass(frozen=True)
class Timed(Run):
    """Notes when each epoch ended, and the weights after the first."""

    estimator: Any = None
    times: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    weights: dict[str, Any] = dataclasses.field(default_factory=dict)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        self.times.append((time.perf_counter(), time.process_time()))
        if not step and hasattr(self.estimator, "model_"):
            for place, value in enumerate(self.estimator.model_.weights):
                self.weights[f"{value.name}.{place}"] = value.numpy()


def crowd(size: int) -> tuple[Any, Any]:
    """Returns drawn images `[N, 32, 32, 3]` and their annotations."""
    from neucrowd_tf.annotations.simulation import confusion_annotators, simulate

    rng = np.random.default_rng(0)
    truth = rng.integers(0, 10, size)
    shown = rng.normal(size=(10, 32, 32, 3))[truth] + rng.normal(size=(size, 32, 32, 3))
    annotators = confusion_annotators(3, 10, 0, accuracy=0.75)
    return shown.astype(np.float32), simulate(truth, annotators, 0)


def fit(
    options: argparse.Namespace, addresses: Sequence[str], index: int, output: Path
) -> dict[str, Any]:
    """Trains in this process, alone or with those at the other addresses; writes the weights."""
    import tensorflow as tf

    from neucrowd_tf.methods.crowd_layer import CrowdLayer

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    strategy = None
    if len(addresses) > 1:
        task = {"type": "worker", "index": index}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": task})
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    images, annotations = crowd(options.images)
    how = {name: getattr(options, name) for name in SETTINGS}
    dropout = {"dropout": 0.0} if options.base == "small_cnn" else {}
    model = CrowdLayer({"name": options.base, **dropout}, **how)
    run = Timed(progress=False, strategy=strategy, estimator=model)
    model.fit(images, annotations, run=run)
    np.savez(output, **run.weights)
    spent = np.diff(np.array(run.times), axis=0).min(axis=0)
    seconds, cpu_seconds = spent.tolist()
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "loss": model.history_["loss"]}


def _ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def _together(options: argparse.Namespace, folder: Path, workers: int) -> list[dict[str, Any]]:
    """Fits with so many processes, and returns what each of them found."""
    addresses = [f"127.0.0.1:{port}" for port in _ports(workers)]
    os.environ |= {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}  # of the processes
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as processes:
        running = [
            processes.submit(fit, options, addresses, index, folder / f"{workers}-{index}.npz")
            for index in range(workers)
        ]
        results = [each.result() for each in running]
    print(f"{workers}: {results}", file=sys.stderr, flush=True)
    return results


def main() -> None:
    """Compares one process with two."""
    # Adam's first steps are the gradient's sign, which rounding turns where it is about 0.
    train: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 0.01}
    train |= {"epochs": 3, "batch_size": 64}
    options = arguments(__doc__, images=512, base="resnet18", **train)
    with tempfile.TemporaryDirectory() as name:
        one, two = (_together(options, Path(name), workers) for workers in (1, 2))
        with np.load(Path(name) / "1-0.npz") as alone, np.load(Path(name) / "2-1.npz") as other:
            differences = {key: np.abs(alone[key] - other[key]).max() for key in alone.files}
            sizes = {key: max(np.abs(alone[key]).max(), 1e-12) for key in alone.files}
    slowest = {key: max(each[key] for each in two) for key in ("seconds", "cpu_seconds")}
    relative: dict[str, float] = {}
    for key, difference in differences.items():
        kind = key.partition(".")[0]
        relative[kind] = max(relative.get(kind, 0.0), float(difference / sizes[key]))
    result = {
        "images_per_second": round(options.images / one[0]["seconds"], 1),
        "images_per_second_of_two": round(options.images / slowest["seconds"], 1),
        "ratio": round(one[0]["seconds"] / slowest["seconds"], 2),
        "cpu_ratio": round(one[0]["cpu_seconds"] / slowest["cpu_seconds"], 2),
        "largest_difference": float(max(differences.values())),
        "relative_differences": relative,
        "loss": one[0]["loss"],
        "loss_of_two": two[0]["loss"],
    }
    show(options, result, "" if options.json else str(result))


if __name__ == "__main__":
    main()
