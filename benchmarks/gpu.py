"""Fits on a GPU beside the CPU of the same machine: time, memory, placement, equal predictions.

    python -m benchmarks.gpu [--json] [--small] [--cases=neucrowd,images] [--device=gpu]
        [--settings=plain,mixed,xla] [--output_dir=runs/gpu] [--page=results/gpu.md]

Each paper's method and `auto` are fitted on LabelMe or hotel (simulated data of that shape where
--data_dir has no files), and on simulated data ten to a hundred times as large. Each fit has a
process of its own. The CPU is always measured, and --device besides, if the machine has it. The
settings are float32, --mixed_precision and XLA's clustering.
--small takes tiny fits of 200 instances. A killed command continues when it is started again: what
ended stands in --output_dir, and a fit continues from its checkpoint.

After each fit the variables' devices are checked, and the graphs of training steps are searched for
Python functions, float64, and operations that are placed on the CPU.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from benchmarks.timing import Clock, arguments, data_folder, show, simulated
from neucrowd_tf.cli.runs import plugins, process
from neucrowd_tf.cli.runs.options import Options
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import UsageError, one_line
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.files.json_text import write_json
from neucrowd_tf.io.tables.writing import markdown_table
from neucrowd_tf.saving import loading as persistence
from neucrowd_tf.training import Run
from reproduction.smoke import tiny_arguments

SAME_WEIGHTS = {"plain": 1e-3, "xla": 1e-3, "mixed": 0.05}  # of a probability
SAME_CLASSES = 0.95  # share of instances, after fits on both devices
# Operations of networks. Tuplets are drawn in float64 on purpose: sums over all instances.
NETWORK = ("MatMul", "BatchMatMulV2", "Einsum", "Conv2D", "Softmax", "Relu", "Tanh", "Exp", "Log")
COLUMNS = ("seconds", "speedup", "host_mb", "device_mb", "accuracy", "same_weights", "same_classes")
HEAD = ("data", "device", "setting", *COLUMNS)
Fit = tuple[str, str, str]  # case, device and setting
Figures = dict[Fit, Mapping[str, Any]]


class Case(NamedTuple):
    """A method and its data: instances, features, annotators, labels per instance, classes."""

    method: str
    shape: tuple[int, int, int, int, int]
    real: str = ""
    hparams: Mapping[str, Any] = {}


LABELME = (1000, 512, 59, 3, 8)
HOTEL = (447, 300, 7, 7, 2)
TUPLETS = (100_000, 300, 100, 5, 2)
IMAGES = (20_000, 3072, 200, 3, 10)
CASES = {
    "neucrowd": Case("neucrowd", HOTEL, "hotel"),
    "neucrowd_tuplets": Case("neucrowd", TUPLETS, hparams={"steps_per_epoch": 1000, "epochs": 5}),
    "rll": Case("rll", HOTEL, "hotel"),
    "rll_tuplets": Case("rll", TUPLETS, hparams={"steps_per_epoch": 1000, "epochs": 5}),
    "iced": Case("iced", LABELME, "labelme"),
    "iced_large": Case("iced", (10_000, 512, 590, 3, 8), hparams={"rounds": 3}),
    "crowding": Case("crowding", LABELME, "labelme"),
    "crowding_crowd": Case("crowding", (50_000, 64, 10_000, 5, 4), hparams={"epochs": 2}),
    "dasc": Case("dasc_crowd_layer", LABELME, "labelme"),
    "images": Case("dasc_crowd_layer", IMAGES, hparams={"base": "resnet18", "epochs": 3}),
    "auto": Case("auto", LABELME, "labelme"),
    "auto_large": Case("auto", (10_000, 512, 590, 3, 8)),
}


def data_of(case: Case, data_dir: Path, small: bool) -> tuple[Any, Any, Any]:
    """Returns features `[N, d]` or `[N, 32, 32, 3]`, true classes or None, and annotations."""
    if case.real and not small and (data_dir / case.real).is_dir():
        real = registry.dataset(case.real).load(data_dir)
        return real.features, real.truth, real.annotations
    size, width, annotators, labels, classes = case.shape
    if small:
        size = 200
        annotators = min(annotators, 20)
    features, truth, crowd = simulated(size, width, annotators, labels, classes)
    if width == 3072:
        features = features.reshape(size, 32, 32, 3)
    return features, truth, crowd


def step_operations() -> Iterator[Any]:
    """Yields the operations of those graphs of this process that assign variables."""
    for graph in gc.get_objects():
        if type(graph).__name__ == "FuncGraph":
            operations = graph.get_operations()
            if any(item.type.startswith(("Assign", "ResourceApply")) for item in operations):
                yield from operations


class Faults(keras.callbacks.Callback):
    """Collects what slows training on a device, from the model's variables and graphs."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device
        self.lines = set[str]()

    def on_train_end(self, logs: Any = None) -> None:
        for variable in self.model.variables:
            if self.device not in variable.value.device:
                self.lines.add(f"{variable.path} on {variable.value.device}")
        for operation in step_operations():
            if "PyFunc" in operation.type:
                self.lines.add(f"Python: {operation.name}")
            wide = any(output.dtype == tf.float64 for output in operation.outputs)
            if wide and operation.type in NETWORK:
                self.lines.add(f"float64: {operation.type}")
            if "CPU" in operation.device and self.device != "CPU":
                self.lines.add(f"on the CPU: {operation.type}")


def measure(name: str, device: str, setting: str, options: argparse.Namespace) -> Mapping[str, Any]:
    """Fits one case in this process, whose devices are set; figures of an earlier fit are kept.

    Args:
        name: of `CASES`.
        device: "CPU" or "GPU".
        setting: of `SAME_WEIGHTS`.
        options: the command's.

    Returns:
        seconds, memory in MB, accuracy, and agreement with the CPU's plain fit.
    """
    case = CASES[name]
    folder = options.output_dir / name / f"{device}-{setting}"
    if (folder / "figures.json").exists():
        return dict(read_json(folder / "figures.json"))
    resumed = (folder / "checkpoints").exists()
    method = registry.method(case.method)
    features, truth, crowd = data_of(case, options.data_dir, options.small)
    tiny = tiny_arguments(method)
    hparams = {**case.hparams, "seed": 0}
    estimator = method.make(**{**hparams, **(tiny if options.small else {})})
    with Clock() as clock:
        estimator.fit(features, crowd, run=Run(checkpoints=folder / "checkpoints", progress=False))
    probabilities = np.asarray(estimator.predict_proba(features))
    figures: dict[str, Any] = {"seconds": clock.seconds, "resumed": resumed}
    figures["host_mb"] = process.peak_memory_mb()
    if device == "GPU":
        figures["device_mb"] = tf.config.experimental.get_memory_info("GPU:0")["peak"] / 2**20
    if truth is not None:
        figures["accuracy"] = float((probabilities.argmax(axis=1) == truth).mean())
    estimator.save(folder / "model")
    base = folder.parent / "CPU-plain" / "model"
    if base != folder / "model" and base.is_dir():
        again = np.asarray(persistence.load(base).predict_proba(features))
        expected = np.load(base.parent / "probabilities.npy")
        figures["same_weights"] = float(np.abs(again - expected).max())
        same = probabilities.argmax(axis=1) == expected.argmax(axis=1)
        figures["same_classes"] = float(same.mean())
    np.save(folder / "probabilities.npy", probabilities)
    features, _, crowd = data_of(case, options.data_dir, small=True)
    faults = Faults(device)
    method.make(**{**hparams, **tiny}).fit(
        features, crowd, run=Run(progress=False, callbacks=[faults])
    )
    figures["faults"] = sorted(faults.lines)
    write_json(folder / "figures.json", figures)
    return figures


def child(fit: Fit, options: argparse.Namespace) -> Mapping[str, Any]:
    """Measures one fit in a new process; an error is its figure."""
    plugins.register(("baselines", "data"))
    name, device, setting = fit
    process.start(Options(device=device.lower(), mixed_precision=setting == "mixed", threads=2))
    try:
        return measure(name, device, setting, options)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {one_line(error)}"}


def plan(options: argparse.Namespace) -> list[Fit]:
    """Returns case, device and setting of each fit: a case's first one is the CPU's plain one."""
    names = options.cases.split(",") if options.cases else list(CASES)
    settings = options.settings.split(",")
    device = options.device.upper()
    if unknown := {*names, *settings, device} - {*CASES, *SAME_WEIGHTS, "CPU", "GPU"}:
        raise UsageError(f"{min(unknown)}: no case, setting or device. --help names them.")
    where = dict.fromkeys([("CPU", "plain"), *product([device], settings)])
    return [(name, *place) for name, place in product(names, where)]


def devices() -> dict[str, str]:
    """Returns the names of this machine's processor and first GPU by kind."""
    names = {"CPU": str(process.machine()["processor"])}
    for gpu in tf.config.list_physical_devices("GPU")[:1]:
        names["GPU"] = tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name)
    return names


def make_all(fits: Iterable[Fit], options: argparse.Namespace) -> Figures:
    """Measures each fit in a process of its own; without its device it has no figures."""
    here = devices()
    figures: Figures = {}
    for fit in fits:
        figures[fit] = {}
        if fit[1] in here:
            clusters = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit" if fit[2] == "xla" else ""
            os.environ["TF_XLA_FLAGS"] = clusters  # the child's TensorFlow reads it
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
                figures[fit] = executor.submit(child, fit, options).result()
        print(*fit, dict(figures[fit]) or "not measured", file=sys.stderr, flush=True)
    return figures


def problems(figures: Figures) -> list[str]:
    """Returns a line for each fit that failed or whose predictions are not the CPU's."""
    lines = []
    for fit, measured in figures.items():
        problem = measured.get("failed", "")
        if measured.get("same_weights", 0.0) > SAME_WEIGHTS[fit[2]]:
            problem = "other predictions with the same weights"
        elif measured.get("same_classes", 1.0) < SAME_CLASSES:
            problem = "other classes after fits on both devices"
        if problem:
            lines.append(f"{', '.join(fit)}: {problem}")
    return lines


def row(fit: Fit, figures: Figures) -> list[str]:
    """Returns a fit's cells, of which the first figure says where it was not measured."""
    measured = {**figures[fit]}
    plain = figures.get((fit[0], "CPU", "plain"), {})
    if measured.get("seconds") and plain.get("seconds"):
        measured["speedup"] = plain["seconds"] / measured["seconds"]
    cells = [f"{measured[key]:.3g}" if key in measured else "" for key in COLUMNS]
    if not measured:
        cells[0] = "not measured"
    return [*fit, *cells]


def page(figures: Figures, machine: Mapping[str, str], how: str) -> str:
    """Returns the figures as Markdown."""
    faults = sorted(set().union(*(measured.get("faults", ()) for measured in figures.values())))
    lines = ["# Fits on a GPU beside the CPU", "", f"`{how}` writes this page.", ""]
    lines += [f"- {kind}: {machine.get(kind, 'not measured')}" for kind in ("CPU", "GPU")]
    plain = SAME_WEIGHTS["plain"]
    lines += [
        "",
        "Tolerances: with the same weights, probabilities differ by at most",
        f"{plain} (bfloat16: {SAME_WEIGHTS['mixed']}). After a fit on each device,",
        f"at least {SAME_CLASSES:.0%} of the instances have the same class.",
        "",
    ]
    lines += markdown_table(HEAD, (row(fit, figures) for fit in figures))
    for title, listed in (("Problems", problems(figures)), ("In training steps", faults)):
        lines += ["", f"{title}:", "", *(f"- {line}" for line in listed or ["none"])]
    return "\n".join([*lines, ""])


def main() -> int:
    """Measures and writes the page; returns 1 if a fit failed or predictions differ."""
    options = arguments(
        __doc__, json=False, small=False, cases="", device="gpu", settings=",".join(SAME_WEIGHTS),
        page=Path("results/gpu.md"), data_dir=data_folder(), output_dir=Path("runs/gpu"),
    )  # fmt: skip
    figures = make_all(plan(options), options)
    how = shlex.join(["python", "-m", "benchmarks.gpu", *sys.argv[1:]])
    text = page(figures, devices(), how)
    write_text(options.page, text)
    show(options, [{"fit": fit, **measured} for fit, measured in figures.items()], text)
    return bool(problems(figures))


if __name__ == "__main__":
    sys.exit(main())
