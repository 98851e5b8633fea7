"""Runs CrowdInG's experiments that are more than a table of methods, and writes its tables and figures as CSV and PNG.

    python run_experiment.py --dataset=labelme,music --method=... --num_runs=5 --output_dir=runs/crowding      (tables 1 and 2, figure 3)
    python -m benchmarks.crowding_study run --part=curves,entropy,sparsity,sensitivity [--dataset=labelme,music] [--seeds=5]
    python -m benchmarks.crowding_study report --results=runs/crowding/results.csv

`run` appends rows to `crowding_<part>.csv` and goes on where it stopped: `curves` has training and test accuracy after each epoch
(figures 2b and 3), `entropy` the accuracy of the start over its surest instances (figure 2a), `sparsity` what is left with 20 to 80 %
of the annotations removed, each instance keeping one (figure 5), `sensitivity` other values of lambda and t (figure 6). Test labels
and the truth of training instances are read after an epoch or a fit and choose nothing. `report` makes `crowding_table<n>.csv` and
`crowding_figure<n>.{csv,png}`, with the paper's figures beside.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

from benchmarks.crowding import data_folder
from neucrowd_tf.training.run import Run

COLUMNS = {
    "curves": ("dataset", "method", "seed", "stage", "epoch", "train_accuracy", "test_accuracy"),
    "entropy": ("dataset", "seed", "share", "accuracy"),
    "sparsity": ("dataset", "method", "keep", "seed", "annotations", "test_accuracy", "seconds"),
    "sensitivity": ("dataset", "parameter", "value", "seed", "start_accuracy", "test_accuracy", "val_accuracy", "best_epoch", "seconds"),
}
CURVES = ("mv_dl", "anno_reg", "max_mig", "aggnet", "crowding", "crowding_one_step")
GAME_EPOCHS = 40  # as in section 4.1; nothing stops a collapse in the curves
SPARSITY = ("mv_dl", "dl_cl", "crowding")
KEEP = (1.0, 0.8, 0.6, 0.4, 0.2)
SENSITIVITY = {"information": (0.1, 0.25, 0.5, 0.75, 1.0), "threshold": (0.2, 0.35, 0.5, 0.65, 0.8)}


@dataclasses.dataclass(frozen=True)
class Watch(Run):
    """A run that calls back after each epoch of each stage; it sees what is trained and changes nothing."""

    callback: Callable[[str, int], None] | None = None

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        if self.callback is not None:
            self.callback(self.prefix.rstrip("/"), step)


def accuracy(model: Any, features: Any, codes: Any) -> float:
    return float((np.asarray(model._predict_proba(features)).argmax(axis=1) == codes).mean())


def fit(model: Any, dataset: Any, annotations: Any = None, run: Run | None = None) -> float:
    """Fits and returns the seconds it took."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(dataset.features, dataset.annotations if annotations is None else annotations, dataset.validation_pair(), run=run)
    return time.perf_counter() - began


def curves(name: str, seeds: Sequence[int], load: Callable[[int], Any], done: set[tuple[str, ...]]) -> Iterator[list[Any]]:
    """Yields the accuracy after each epoch of each method."""
    from neucrowd_tf import registry

    for method in CURVES:
        game = method.startswith("crowding")
        extra = {"epochs": GAME_EPOCHS, "collapse_drop": 1.0, "refit": False} if game else {}
        model = registry.method(method).make(dataset=name, **extra)
        for seed in seeds:
            if (name, method, str(seed)) in done:
                continue
            dataset, rows = load(seed), []

            def after(stage: str, epoch: int, dataset: Any = dataset, rows: list[Any] = rows, model: Any = model) -> None:
                shown = model
                if hasattr(model, "_starts"):
                    if stage == "classifier":
                        shown = next(reversed(model._starts.values())).estimator
                    elif stage != "game":
                        return
                train, test = accuracy(shown, dataset.features, dataset.truth), accuracy(shown, dataset.test.features, dataset.test.labels)
                rows.append([stage, epoch, train, test])

            fit(model.set_params(seed=seed), dataset, run=Watch(callback=after))
            for row in rows:
                yield [name, method, seed, *row]


def entropy(name: str, seeds: Sequence[int], load: Callable[[int], Any], done: set[tuple[str, ...]]) -> Iterator[list[Any]]:
    """Yields the accuracy of DL-CL over growing shares of the training instances, the surest ones first."""
    from scipy.stats import entropy as shannon

    from neucrowd_tf import registry

    model = registry.method("dl_cl").make(dataset=name)
    for seed in seeds:
        if (name, str(seed)) in done:
            continue
        dataset = load(seed)
        fit(model.set_params(seed=seed), dataset)
        probabilities = np.asarray(model.predict_proba(dataset.features))
        right = probabilities.argmax(axis=1) == dataset.truth
        order = np.argsort(shannon(probabilities.astype(np.float64), axis=1), kind="stable")
        for share in np.linspace(0.1, 1.0, 10):
            yield [name, seed, round(float(share), 1), float(right[order[: round(share * len(order))]].mean())]


def sparsity(name: str, seeds: Sequence[int], load: Callable[[int], Any], done: set[tuple[str, ...]]) -> Iterator[list[Any]]:
    """Yields test accuracy with annotations removed, each instance keeping one."""
    from neucrowd_tf import registry
    from neucrowd_tf.simulation import remove_annotations

    for method in SPARSITY:
        model = registry.method(method).make(dataset=name)
        for keep in KEEP:
            for seed in seeds:
                if (name, method, f"{keep:g}", str(seed)) in done:
                    continue
                dataset = load(seed)
                left = remove_annotations(dataset.annotations, keep, seed)
                seconds = fit(model.set_params(seed=seed), dataset, left)
                yield [name, method, f"{keep:g}", seed, left.num_annotations, accuracy(model, dataset.test.features, dataset.test.labels), seconds]


def sensitivity(name: str, seeds: Sequence[int], load: Callable[[int], Any], done: set[tuple[str, ...]]) -> Iterator[list[Any]]:
    """Yields accuracies with other values of lambda and t."""
    from neucrowd_tf import registry

    start = registry.method("dl_cl").make(dataset=name)
    starts: dict[int, float] = {}
    for parameter, values in SENSITIVITY.items():
        for value in values:
            model = registry.method("crowding").make(dataset=name, **{parameter: value})
            for seed in seeds:
                if (name, parameter, f"{value:g}", str(seed)) in done:
                    continue
                dataset = load(seed)
                if seed not in starts:
                    fit(start.set_params(seed=seed), dataset)
                    starts[seed] = accuracy(start, dataset.test.features, dataset.test.labels)
                seconds = fit(model.set_params(seed=seed), dataset)
                test = accuracy(model, dataset.test.features, dataset.test.labels)
                val = None if model.best_epoch_ is None else model.history_["val_accuracy"][model.best_epoch_]
                yield [name, parameter, f"{value:g}", seed, starts[seed], test, val, model.best_epoch_, seconds]


PARTS = {"curves": curves, "entropy": entropy, "sparsity": sparsity, "sensitivity": sensitivity}


def key_of(part: str, row: Mapping[str, str]) -> tuple[str, ...]:
    """Returns what tells runs of a part apart."""
    names = {"curves": ("dataset", "method", "seed"), "entropy": ("dataset", "seed")}
    return tuple(row[name] for name in names.get(part, COLUMNS[part][:4]))


def cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def run(arguments: argparse.Namespace) -> None:
    """Makes the runs that are not there yet."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tf.config.threading.set_inter_op_parallelism_threads(arguments.threads)
    tf.config.experimental.enable_op_determinism()  # as run_experiment.py does, so that a seed's start is the same in both
    import baselines  # noqa: F401  (registers the methods)
    import data  # noqa: F401  (registers the datasets)
    import neucrowd_tf.crowd_layers
    import neucrowd_tf.crowding  # noqa: F401
    from neucrowd_tf import registry
    from neucrowd_tf.csv_cells import to_csv
    from neucrowd_tf.files import write_text

    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    for part in arguments.part.split(","):
        path = Path(arguments.output_dir) / f"crowding_{part}.csv"
        for name in arguments.dataset.split(","):
            rows: list[dict[str, str]] = []
            if path.exists():
                with path.open(encoding="utf-8", newline="") as stream:
                    rows = list(csv.DictReader(stream))
            done = {key_of(part, row) for row in rows}
            made = [[row[column] for column in COLUMNS[part]] for row in rows]
            dataset = registry.dataset(name).load(data_folder(arguments.data_dir), 0)
            for row in PARTS[part](name, seeds, lambda _, dataset=dataset: dataset, done):
                made.append([cell(value) for value in row])
                write_text(path, to_csv(COLUMNS[part], made))
                print(part, *made[-1], file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=("run", "report"))
    parser.add_argument("--part", default=",".join(PARTS))
    parser.add_argument("--dataset", default="labelme,music")
    parser.add_argument("--data_dir", default=None)
    parser.add_argument("--output_dir", default="results")
    parser.add_argument("--results", default="runs/crowding/results.csv")
    for name, value in (("seeds", 5), ("seed", 0), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments)
    else:
        from benchmarks.crowding_figures import report

        print(json.dumps(report(Path(arguments.output_dir), Path(arguments.results)), indent=1))


if __name__ == "__main__":
    main()
