"""The same methods here and in other packages, side by side: accuracy and seconds.

    python -m benchmarks.peers [--json] [--data_dir=D] [--part=all] [--seeds=3] [--threads=1]
        [--maml_python=/path/to/env/bin/python --maml=FOLDER] [--keep=ROWS.json]
        [--output=results/peers_speed.md]

Truth inference: Dawid-Skene, GLAD, MACE and EBCC (which crowd-kit has not) on published benchmarks,
beside crowd-kit's, each with its own defaults. Learning: CrowdLayer, UnionNet (B) and annot-mix on
LabelMe and Music beside maml's, with the same base, features, Adam, batches and epochs; maml runs
in another Python, which needs torch, lightning, torchmetrics, scikit-activeml, mlflow-skinny,
omegaconf, matplotlib, pandas, torchvision and a checkout of
github.com/ies-research/multi-annotator-machine-learning in FOLDER. A side that is not installed is
left out and named. Seconds are of a whole fit, compiling included.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.timing import Clock, flags
from data import truth_inference as published
from neucrowd_tf.aggregation import make_aggregator
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.files.json import read_json, write_json
from reproduction.truth_inference import crowd_kit

THEIRS = {"dawid_skene": "DawidSkene", "glad": "GLAD", "mace": "MACE", "ebcc": ""}
# crowd-kit's GLAD takes minutes on the larger ones.
BENCHMARKS = ("SP_amt", "rte", "web")
LEARNERS = ("crowd_layer", "unionnet_b", "annot_mix")
DATASETS = ("labelme", "music")
COLUMNS = ("task", "method", "package", "accuracy", "seconds", "cpu_seconds")
Row = dict[str, Any]


def inferred(data_dir: Path, names: Sequence[str]) -> list[Row]:
    """Returns truth inference, ours and crowd-kit's."""
    rows: list[Row] = []
    peer = importlib.util.find_spec("crowdkit") is not None
    for name in names:
        data = published.load(data_dir, name)
        for method, kind in THEIRS.items():
            runs = {"here": partial(ours, method, data)}
            if kind and peer:
                runs["crowd-kit"] = partial(crowd_kit, kind, {}, data)
            for package, run in runs.items():
                with Clock() as clock:
                    probas = run()
                accuracy = data.accuracy(probas)
                rows.append(_row(name, method, package, accuracy, clock.seconds, clock.cpu_seconds))
    return rows


def ours(method: str, data: published.Benchmark) -> Any:
    """Returns what a method of ours makes of a benchmark, `[N, C]`."""
    return make_aggregator(method).fit(data.annotations).probas_


def _row(*cells: Any) -> Row:
    return dict(zip(COLUMNS, cells, strict=True))


def settings_of(name: str) -> dict[str, Any]:
    """Returns the preset that all three methods share on a dataset, and the annotators' rates."""
    from neucrowd_tf import registry

    built = {method: registry.method(method).make(dataset=name) for method in LEARNERS}
    first = built["crowd_layer"]
    rates = {
        method: one.annotator_learning_rate or one.learning_rate for method, one in built.items()
    }
    return {
        "units": first.base["hidden_units"][0],
        "dropout": first.base["dropout"],
        "batch_norm": first.base["batch_norm"],
        "square_root": first.standardise == "square_root",
        "learning_rate": first.learning_rate,
        "annotator_learning_rate": rates,
        "batch_size": first.batch_size,
        "epochs": first.epochs,
    }


def learnt(data_dir: Path, options: argparse.Namespace) -> list[Row]:
    """Returns learning from crowds, ours and maml's."""
    import baselines  # registers its methods
    from data import labelme, music
    from neucrowd_tf import registry
    from neucrowd_tf.crowd_layers.classifier import signed_square_root
    from neucrowd_tf.training.standardise import standardise

    del baselines
    rows: list[Row] = []
    for name in options.datasets:
        dataset = {"labelme": labelme, "music": music}[name].load(data_dir)
        settings = settings_of(name)
        if options.epochs:
            settings["epochs"] = options.epochs
        # What the first fit of a process imports is no method's; maml's is not counted either.
        registry.method("crowd_layer").make(dataset=name, epochs=1, restarts=0).fit(
            dataset.features, dataset.annotations
        )
        for method in LEARNERS:
            for seed in range(options.seeds):
                # No weight penalty: maml's would go over biases and the heads as well.
                model = registry.method(method).make(
                    dataset=name, seed=seed, epochs=settings["epochs"], l2=0.0, restarts=0
                )
                with Clock() as clock:
                    model.fit(dataset.features, dataset.annotations)
                result = model.predict_proba(dataset.test.features).argmax(axis=1)
                accuracy = float((result == dataset.test.labels).mean())
                rows.append(_row(name, method, "here", accuracy, clock.seconds, clock.cpu_seconds))
        if options.maml is None:
            continue
        shorten = signed_square_root if settings["square_root"] else None
        mean, scale = standardise(dataset.features, True, before=shorten)
        train, test = (
            ((shorten(x) if shorten else x) - mean) / scale
            for x in (dataset.features, dataset.test.features)
        )
        settings |= {
            "methods": LEARNERS,
            "seeds": list(range(options.seeds)),
            "threads": options.threads,
        }
        arrays = {
            "features": train.astype(np.float32),
            "labels": dataset.annotations.to_dense(np.int32),
            "classes": np.array(dataset.annotations.num_classes),
            "test_features": test.astype(np.float32),
            "test_truth": np.asarray(dataset.test.labels),
            "settings": np.array(json.dumps(settings)),
        }
        for one in theirs(options, arrays):
            cells = [one[column] for column in COLUMNS[3:]]
            rows.append(_row(name, one["method"], "maml", *cells))
    return rows


def theirs(options: argparse.Namespace, arrays: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns what maml's side prints."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arrays.npz"
        np.savez(path, **arrays)
        script = Path(__file__).with_name("peers_torch.py")
        done = subprocess.run(
            [options.maml_python, str(script), str(path)],
            env={**os.environ, "PYTHONPATH": str(options.maml)},
            check=True,
            capture_output=True,
            text=True,
        )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def summary(rows: list[Row]) -> pd.DataFrame:
    """Returns means over seeds, a row a task and method, the packages side by side."""
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    table = table.groupby(["task", "method", "package"], sort=False).agg(
        accuracy=("accuracy", "mean"),
        seconds=("seconds", "mean"),
        cpu_seconds=("cpu_seconds", "mean"),
        fits=("seconds", "size"),
    )
    return table.reset_index()


def page(table: pd.DataFrame, missing: Sequence[str], options: argparse.Namespace) -> str:
    """Returns the table as a page."""
    lines = [
        "## The same methods in other packages\n",
        "`python -m benchmarks.peers --data_dir=DATA --maml_python=PYTHON --maml=CHECKOUT"
        " --output=results/peers_speed.md`\n",
        f"One process at a time, {options.threads} thread(s); seconds of a whole fit, compiling"
        " included, and of CPU time, which other work on the machine changes little; means over"
        " fits. Truth inference with each package's defaults; learning with"
        " the same base, features, Adam, batches, epochs and no weight penalty.\n",
        *(f"Not installed: {name}.\n" for name in missing),
        "| task | method | package | accuracy | seconds | CPU seconds | fits |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in table.itertuples(index=False):
        lines.append(
            f"| {row.task} | {row.method} | {row.package} | {row.accuracy:.4f} |"
            f" {row.seconds:.3f} | {'-' if isnan(row.cpu_seconds) else f'{row.cpu_seconds:.3f}'} |"
            f" {row.fits} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = flags(__doc__.split("\n\n")[0])
    parser.add_argument("--data_dir", type=Path, default=Path("../shared/data"))
    parser.add_argument("--part", choices=("all", "inference", "learning"), default="all")
    parser.add_argument("--benchmarks", nargs="*", default=BENCHMARKS)
    parser.add_argument("--datasets", nargs="*", choices=DATASETS, default=DATASETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, help="in place of the presets'")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--maml_python", default=sys.executable)
    parser.add_argument("--maml", type=Path, help="maml's checkout")
    parser.add_argument("--keep", type=Path, help="a file of rows; another part adds to it")
    parser.add_argument("--output", type=Path, help="a Markdown file")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    missing = [] if importlib.util.find_spec("crowdkit") else ["crowd-kit"]
    missing += [] if options.maml else ["maml (--maml_python, --maml)"]
    rows: list[Row] = read_json(options.keep) if options.keep and options.keep.exists() else []
    if options.part != "learning":
        rows += inferred(options.data_dir, options.benchmarks)
    if options.part != "inference":
        rows += learnt(options.data_dir, options)
    if options.keep:
        write_json(options.keep, rows)
    table = summary(rows)
    print(table.to_string(index=False), file=sys.stderr)
    for name in missing:
        print(f"not installed: {name}", file=sys.stderr)
    if options.output is not None:
        write_text(options.output, page(table, missing, options))
    if options.json:
        print(json.dumps({"rows": table.to_dict("records"), "missing": missing}))


if __name__ == "__main__":
    main()
