"""What whole processes cost: commands, the memory of features, and fits after the first one.

`benchmarks.methods` calls `FIGURES`; every figure comes from a process of its own.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Clock, simulated

LABELS = (1_000, 10_000, 100_000, 1_000_000)
EACH = 5  # labels of an item
COMMANDS = {
    "aggregate": ["aggregate", "--output=labels.csv"],
    "aggregate_dawid_skene": ["aggregate", "--method=dawid_skene", "--output=labels.csv"],
    "report": ["report", "--output=report.html"],
    "relabel": ["relabel", "--budget=1000", "--output=relabel.csv"],
}
# Majority vote in pandas, and crowd-kit's Dawid-Skene with its defaults.
PANDAS = """
import pandas
table = pandas.read_csv("{file}")
votes = table.groupby(["task", "label"], sort=False).size().rename("votes").reset_index()
best = votes.sort_values("votes", ascending=False, kind="stable").drop_duplicates("task")
totals = votes.groupby("task").votes.sum()
best["probability"] = best.votes / best.task.map(totals)
best.sort_values("task").to_csv("votes.csv", index=False)
"""
CROWD_KIT = """
import pandas
from crowdkit.aggregation import DawidSkene
DawidSkene(n_iter=100).fit_predict(pandas.read_csv("{file}")).to_csv("labels.csv")
"""
MEMORY = ("mv_lr", "crowd_layer", "auto")
SHAPE = (40_000, 500)  # instances and features, 80 MB
REFITS: dict[str, dict[str, Any]] = {
    "crowding": {"epochs": 5},
    "neucrowd": {"epochs": 5},
    "dasc_crowd_layer": {"rounds": 2, "epochs": 5},
}
# Starts a process from a small one: a process has at least the peak of the one that starts it.
LAUNCHER = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
sys.exit(os.waitstatus_to_exitcode(status))
"""
REPOSITORY = Path(__file__).resolve().parents[1]


def process(*arguments: str, folder: str | Path = ".") -> tuple[float, float]:
    """Runs Python with these arguments; returns its processor seconds and its peak memory in MB.

    Raises:
        RuntimeError: it fails.
    """
    paths = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(REPOSITORY)]).strip(os.pathsep)
    done = subprocess.run(
        [sys.executable, "-S", "-c", LAUNCHER, sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments[:4])}: exit code {done.returncode}")
    seconds, megabytes = map(float, done.stdout.split())
    return seconds, megabytes


def commands(size: float) -> dict[str, float]:
    """Returns seconds and memory of commands on labels in a CSV, and of other packages.

    Args:
        size: what the numbers of labels are multiplied with.
    """
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for labels in (int(count * size) for count in LABELS):
            items = labels // EACH
            crowd = simulated(items, 1, max(items // 40, 2 * EACH), EACH)[2]
            file = Path(folder) / "labels_in.csv"
            frame = crowd.to_frame().set_axis(["task", "worker", "label"], axis=1)
            frame["label"] = np.array(["cat", "dog", "fox", "owl"])[frame["label"]]
            frame.to_csv(file, index=False)
            ways: dict[str, list[str]] = {
                name: ["-m", "neucrowd_tf", *flags, f"--annotations={file}"]
                for name, flags in COMMANDS.items()
            }
            ways["pandas_votes"] = ["-c", PANDAS.format(file=file)]
            if importlib.util.find_spec("crowdkit") is not None:
                ways["crowd_kit_dawid_skene"] = ["-c", CROWD_KIT.format(file=file)]
            for name, arguments in ways.items():
                seconds, memory = process(*arguments, folder=folder)
                figures[f"{name}_{labels}_seconds"] = seconds
                figures[f"{name}_{labels}_mb"] = memory
    return figures


def features(size: float) -> dict[str, float]:
    """Returns the peak of memory over the caller's features, and what is left after the fit.

    Both are in units of these features. What TensorFlow frees stays in its pool, from which the
    next fit takes it, and counts as left (with TF_ENABLE_ONEDNN_OPTS=0 there is no pool).

    Args:
        size: what the number of instances is multiplied with.
    """
    return _children("memory", MEMORY, size)


def refits(size: float) -> dict[str, float]:
    """Returns the processor seconds of a second fit over those of the first in a process.

    Args:
        size: what the number of instances is multiplied with.
    """
    return _children("refit", REFITS, size)


def _children(kind: str, methods: Iterable[str], size: float) -> dict[str, float]:
    """Returns the figures of methods, each from a process of its own."""
    figures: dict[str, float] = {}
    for name in methods:
        command = [sys.executable, "-m", "benchmarks.processes", kind, name, str(size)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        figures |= json.loads(done.stdout.splitlines()[-1])
    return figures


def _resident() -> int:
    """Returns the bytes of memory in use."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def memory(name: str, size: float) -> dict[str, float]:
    """Returns the memory of a method's fit over that of its features, by `features`."""
    matrix, crowd, estimator = _problem(name, int(SHAPE[0] * size), SHAPE[1])
    few = np.arange(200)
    estimator(0).fit(matrix[few], crowd[few])  # loads what a fit needs
    gc.collect()
    before = _resident()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    fitted = estimator(0)
    fitted.fit(matrix, crowd)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
    gc.collect()
    left = _resident() - before
    return {
        f"{name}_peak_ratio": (peak - before) / matrix.nbytes,
        f"{name}_left_ratio": left / matrix.nbytes,
    }


def refit(name: str, size: float) -> dict[str, float]:
    """Returns the processor seconds of two fits that differ in their seed, by `refits`."""
    from neucrowd_tf.cli.runs import execute
    from neucrowd_tf.cli.runs import process as runs

    matrix, crowd, estimator = _problem(name, int(800 * size), 64, **REFITS[name])
    seconds = []
    for seed in (0, 1):
        fitted = estimator(seed)
        runs.forget_networks()
        with Clock() as clock, execute.shared_networks(name, fitted):  # as the harness does
            fitted.fit(matrix, crowd)
        seconds.append(clock.cpu_seconds)
    return {
        f"{name}_first_seconds": seconds[0],
        f"{name}_second_seconds": seconds[1],
        f"{name}_second_over_first": seconds[1] / seconds[0],
    }


def _problem(
    name: str, rows: int, width: int, **options: Any
) -> tuple[Any, Any, Callable[[int], Any]]:
    """Returns features, their crowd, and a maker of estimators by seed."""
    from neucrowd_tf.cli.runs import plugins
    from neucrowd_tf.declare import registry

    plugins.register(("baselines",))
    matrix, _, crowd = simulated(rows, width, 30, 3, 2)
    if name in ("crowd_layer", "auto"):
        options |= {"epochs": 2} if name == "crowd_layer" else {}
    return matrix, crowd, lambda seed: registry.method(name).make(seed=seed, **options)


FIGURES: dict[str, Callable[[float], dict[str, float]]] = {
    "commands": commands,
    "features": features,
    "refits": refits,
}

if __name__ == "__main__":
    _, kind, method, scale = sys.argv
    print(json.dumps({"memory": memory, "refit": refit}[kind](method, float(scale))))
