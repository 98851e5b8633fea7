"""Runs DASC's experiments round by round, and writes its tables and figures as CSV and PNG.

    python -m benchmarks.dasc_study run --dataset=labelme,music [--method=...] [--seeds=5] [--keep=1.0] [--output_dir=results]
    python -m benchmarks.dasc_study report [--output_dir=results]

`run` appends a row for each round of each run to `dasc_rounds.csv` and goes on where it stopped; test labels and the truth of
training instances are looked at when a fit is over. `report` makes `dasc_table1.csv`, `dasc_table2.csv` and
`dasc_figure<n>.{csv,png}` from these rows. `--hparam name=value` changes a hyper-parameter; `--option name=value` is the dataset's.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

from benchmarks.dasc import default_data_dir

BASES = ("crowd_layer", "anno_reg", "wdn")
SELF_TRAINING = tuple(f"{selection}_{base}" for base in BASES for selection in ("confidence", "random", "dasc"))
IMBALANCE = tuple(f"{kind}_{base}" for base in BASES for kind in ("resampling", "reweighting", "focal"))
TABLE_2 = ("gold_dl", "mv_dl", "ds_dl", *IMBALANCE, *SELF_TRAINING)
COLUMNS = (
    "dataset", "keep", "method", "seed", "settings", "round", "annotations", "imbalance_ratio", "precision_majority", "recall_minority",
    "val_accuracy", "test_accuracy", "picked", "seconds",
)  # fmt: skip


def parse_values(items: list[str]) -> dict[str, Any]:
    """Returns `name=value` items as a dict; values are JSON where they are."""
    found: dict[str, Any] = {}
    for item in items:
        name, _, text = item.partition("=")
        try:
            found[name] = json.loads(text)
        except json.JSONDecodeError:
            found[name] = text
    return found


def load(name: str, data_dir: str | None, seed: int, keep: float, options: dict[str, Any]) -> Any:
    """Returns a dataset with a share of its annotations removed at random (section 4.3)."""
    from neucrowd_tf import registry
    from neucrowd_tf.simulation import remove_annotations

    found = registry.dataset(name).load(data_dir, seed, **options)
    return found if keep >= 1 else found.replace(annotations=remove_annotations(found.annotations, keep, seed, at_least_one=False))


def accuracy(probabilities: Any, labels: Any) -> float:
    return float((np.asarray(probabilities).argmax(axis=1) == labels).mean())


def run_one(dataset: Any, method: str, seed: int, hparams: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a row for each round; methods without rounds have one, round 0."""
    from neucrowd_tf import registry
    from neucrowd_tf.annotations import Annotations
    from neucrowd_tf.dasc import DASC, selection_quality
    from neucrowd_tf.statistics import imbalance_ratio

    entry = registry.method(method)
    crowd = dataset.annotations
    if entry.uses_truth:
        crowd = Annotations.from_dense(dataset.truth[:, None], class_names=crowd.class_names)
    self_training = "self" in method or method.split("_", 1)[0] in ("dasc", "confidence", "random", "equal")
    own = {"pick": "last", **hparams} if self_training and dataset.validation is None else hparams
    model = entry.make(dataset=dataset.name, seed=seed, **own)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(dataset.features, crowd, dataset.validation_pair())
    seconds = time.perf_counter() - began
    if not isinstance(model, DASC):
        val = accuracy(model.predict_proba(dataset.validation.features), dataset.validation.labels) if dataset.validation is not None else None
        test = accuracy(model.predict_proba(dataset.test.features), dataset.test.labels)
        ratio = imbalance_ratio(np.bincount(crowd.labels, minlength=crowd.num_classes))
        only = {"round": 0, "annotations": crowd.num_annotations, "imbalance_ratio": ratio, "val_accuracy": val, "test_accuracy": test}
        return [{**only, "picked": 1, "seconds": seconds}]
    counts = np.bincount(crowd.labels, minlength=crowd.num_classes)
    truth = np.full(crowd.num_instances, -1) if dataset.truth is None else dataset.truth
    quality = selection_quality(model.selections_, truth[model.rows_], counts)
    rows = []
    for number, probabilities in enumerate(model.staged_predict_proba(dataset.test.features)):
        row = {"round": number, "test_accuracy": accuracy(probabilities, dataset.test.labels), "picked": int(number == model.best_round_)}
        for name in ("annotations", "imbalance_ratio", "val_accuracy"):
            row[name] = model.history_[name][number] if name in model.history_ else None
        # A round's selection is what its training annotations were chosen by, so it stands beside the round that trains on it.
        if number:
            row |= {name: quality[number - 1][name] for name in ("precision_majority", "recall_minority")}
        rows.append({**row, "seconds": seconds})
    return rows


def read_rows(path: Path) -> list[dict[str, str]]:
    """Returns the rows that earlier commands left."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Writes a CSV file, whole or not at all."""
    from neucrowd_tf.csv_cells import to_csv
    from neucrowd_tf.files import write_text

    write_text(path, to_csv(header, rows))


def run(arguments: argparse.Namespace) -> None:
    """Makes the runs that are not there yet."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tf.config.threading.set_inter_op_parallelism_threads(arguments.threads)
    import baselines  # noqa: F401  (registers the methods)
    import data  # noqa: F401  (registers the datasets)
    import neucrowd_tf.dasc  # noqa: F401

    path = Path(arguments.output_dir) / "dasc_rounds.csv"
    hparams, options = parse_values(arguments.hparam), parse_values(arguments.option)
    settings = json.dumps({**options, **hparams}, sort_keys=True) if hparams or options else ""
    methods = arguments.method.split(",") if arguments.method else TABLE_2
    for name in arguments.dataset.split(","):
        for seed in range(arguments.seed, arguments.seed + arguments.seeds):
            dataset = None
            for method in methods:
                key = (name, f"{arguments.keep:g}", method, str(seed), settings)
                rows = read_rows(path)
                if any(tuple(row[column] for column in COLUMNS[:5]) == key for row in rows):
                    continue
                dataset = load(name, arguments.data_dir, seed, arguments.keep, options) if dataset is None else dataset
                made = run_one(dataset, method, seed, hparams)
                cells = [[*key, *(_cell(row.get(column)) for column in COLUMNS[5:])] for row in made]
                write_rows(path, COLUMNS, [[row[column] for column in COLUMNS] for row in read_rows(path)] + cells)
                last = made[-1]
                print(f"{name} {method} seed {seed}: {last['test_accuracy']:.4f} in {last['seconds']:.1f} s", file=sys.stderr, flush=True)


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=("run", "report"))
    parser.add_argument("--dataset", default="labelme,music")
    parser.add_argument("--method", default="")
    parser.add_argument("--data_dir", default=default_data_dir())
    parser.add_argument("--output_dir", default="results")
    parser.add_argument("--keep", type=float, default=1.0)
    parser.add_argument("--hparam", action="append", default=[])
    parser.add_argument("--option", action="append", default=[])
    for name, value in (("seeds", 5), ("seed", 0), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments)
    else:
        from benchmarks.dasc_figures import report

        report(Path(arguments.output_dir), arguments.data_dir)


if __name__ == "__main__":
    main()
