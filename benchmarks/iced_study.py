"""ICED's table 2, table 3 and figure 2, and the study of ten classes: one CSV row a run, and tables beside the paper's figures.

    python -m benchmarks.iced_study --part=table2 [--datasets=usps_syn,gsad_syn] [--seeds=10] [--data_dir=DIR] [--output=results]
    python -m benchmarks.iced_study --part=table3
    python -m benchmarks.iced_study --part=figure2
    python -m benchmarks.iced_study --part=ten_classes --seeds=5
    python -m benchmarks.iced_study --part=report

Every part appends to `<output>/iced_<part>.csv` and leaves out the runs that stand there; `report` writes `<output>/iced.md`.
Settings are the methods' presets, which were chosen on other seeds than the ones that are run.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

from benchmarks.iced import data_folder

TABLE2 = ("mv_lr", "mv_dnn", "ds_lr", "ds_dnn", "crowd_layer", "mbem", "cpc", "mv_smote", "ds_smote", "iced_literal", "iced")
TEN_CLASSES = ("mv_dnn", "ds_dnn", "crowd_layer", "dasc_crowd_layer", "mv_smote", "iced_literal", "iced")
# The same choice that ICED's preset makes for these datasets, offered to its rivals.
RAW_PIXELS = ("mv_dnn", "ds_dnn", "crowd_layer", "dasc_crowd_layer", "mbem", "mv_smote", "ds_smote")
# Table 3: warm-up alone, with the paper's number of epochs.
WARM_UPS = {"Trad-I": "all", "Trad-II": "top", "ICED-w": "groups"}
WARM_UP_EPOCHS = {"usps_syn": 6, "gsad_syn": 6, "gisette_syn": 15}

Row = dict[str, Any]


def load(name: str, folder: str | None, seed: int) -> Any:
    """Returns a dataset, its crowd and its splits drawn from the seed; "usps_lt rate=0.3" has the option of that value."""
    from neucrowd_tf import registry

    plain, _, option = name.partition(" ")
    key, _, value = option.partition("=")
    return registry.dataset(plain).load(folder, seed, **({key: float(value)} if key else {}))


def scored(model: Any, dataset: Any) -> Row:
    """Returns accuracy and macro F1 on the test split."""
    from sklearn.metrics import f1_score

    codes = model.predict_proba(dataset.test.features).argmax(axis=1)
    labels = np.arange(dataset.num_classes)
    return {
        "accuracy": float((codes == dataset.test.labels).mean()),
        "f1": float(f1_score(dataset.test.labels, codes, average="macro", labels=labels, zero_division=0)),
    }


def label_scores(model: Any, dataset: Any, seed: int) -> Row:
    """Returns the accuracy of inferred labels: majority vote, and ICED's rounds where the model is one."""
    from neucrowd_tf.aggregation import majority_labels
    from neucrowd_tf.iced import ICED, score_rounds

    votes = majority_labels(dataset.annotations.vote_counts(), "random", seed)
    found: Row = {"label_majority_vote": float((votes == dataset.truth).mean())}
    if isinstance(model, ICED):
        rounds = score_rounds(model, dataset.truth)
        found |= {f"label_{what}": float(rounds["label_accuracy"].iloc[at]) for what, at in (("original", 0), ("first", 1), ("final", -1))}
        found["candidate_purity"] = float(rounds["candidate_purity"].iloc[-1])
        found["permuted"] = int((model.permutations_history_ != np.arange(dataset.num_classes)).any(axis=1).sum())
    return found


def methods(arguments: argparse.Namespace, names: tuple[str, ...], datasets: list[str]) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """Yields the runs of a table of methods."""
    from neucrowd_tf import registry

    chosen = [name for name in names if not arguments.methods or name in arguments.methods.split(",")]
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for dataset in datasets:
            for name in chosen:
                settings: list[dict[str, Any]] = [{}]
                if dataset.startswith("usps") and name in RAW_PIXELS:
                    settings.append({"standardise": False})
                for hparams in settings:
                    key = {"dataset": dataset, "method": name + (" (pixels as they are)" if hparams else ""), "seed": seed}

                    def run(dataset: str = dataset, name: str = name, seed: int = seed, hparams: dict[str, Any] = hparams) -> Row:
                        task = load(dataset, arguments.data_dir, seed)
                        model = registry.method(name).make(dataset=dataset.split()[0], seed=seed, **hparams)
                        began = time.perf_counter()
                        model.fit(task.features, task.annotations)
                        return {**scored(model, task), "fit_seconds": time.perf_counter() - began, **label_scores(model, task, seed)}

                    yield key, run


def warm_ups(arguments: argparse.Namespace, datasets: list[str]) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """Yields the runs of table 3: the classifier after warm-up, before the first round."""
    from neucrowd_tf import registry
    from neucrowd_tf.iced.estimator import ICED

    class WarmUpOnly(ICED):
        """ICED that stops before its rounds."""

        def _train_rounds(self, model: Any, rounds: Any, data: Any, run: Any) -> None:
            self.history_ = {}

        def _keep(self, rounds: Any) -> None:
            self.candidates_history_ = np.zeros((1, len(self.rows_)), int)
            self.permutations_history_ = np.arange(len(self.classes_))[None]

    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for dataset in datasets:
            for name, strategy in WARM_UPS.items():
                for pretrained in (True, False):
                    key = {"dataset": dataset, "method": name + ("" if pretrained else ", no auto-encoder"), "seed": seed}

                    def run(dataset: str = dataset, seed: int = seed, strategy: str = strategy, pretrained: bool = pretrained) -> Row:
                        from neucrowd_tf.iced.warm_up import certainty_groups

                        task = load(dataset, arguments.data_dir, seed)
                        preset = registry.method("iced").presets.get(dataset, {})
                        epochs = {} if pretrained else {"autoencoder_epochs": 0}
                        model = WarmUpOnly(**preset, **epochs, warm_up=strategy, warm_up_epochs=WARM_UP_EPOCHS[dataset], seed=seed)  # type: ignore[arg-type]
                        model.fit(task.features, task.annotations)
                        groups = certainty_groups(model.certainty_)
                        size = len(groups) if strategy == "all" else int((groups <= 3).sum())
                        return {**scored(model, task), "samples": size}

                    yield key, run


def curves(arguments: argparse.Namespace, datasets: list[str]) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """Yields the runs of figure 2: label accuracy of majority vote and of ICED's rounds, and of what the printed readings give."""
    from neucrowd_tf import registry

    readings: dict[str, dict[str, Any]] = {"iced": {}, "iced, prior updated": {"prior": "update"}}
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for dataset in datasets:
            for name, hparams in (*readings.items(), ("iced_literal", {})):

                def run(dataset: str = dataset, seed: int = seed, name: str = name, hparams: dict[str, Any] = hparams) -> Row:
                    task = load(dataset, arguments.data_dir, seed)
                    model = registry.method(name.partition(",")[0]).make(dataset=dataset, seed=seed, **hparams)
                    model.fit(task.features, task.annotations)
                    return {**scored(model, task), **label_scores(model, task, seed)}

                yield {"dataset": dataset, "method": name, "seed": seed}, run


def append(path: Path, runs: Iterator[tuple[Row, Callable[[], Row]]]) -> None:
    """Does the runs that are not in the file yet, and writes a row after each."""
    from neucrowd_tf.errors import DataError, UnsupportedDataError

    rows: list[Row] = list(csv.DictReader(path.open())) if path.exists() else []
    done = {(row["dataset"], row["method"], row["seed"]) for row in rows}
    for key, run in runs:
        if (key["dataset"], key["method"], str(key["seed"])) in done:
            continue
        try:
            result = run()
        except (DataError, UnsupportedDataError) as error:
            print(f"{key}: {error}", file=sys.stderr)
            continue
        shown = {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in result.items()}
        rows.append({**key, **shown})
        columns = list(dict.fromkeys(name for row in rows for name in row))
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(rows[-1], file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", required=True, choices=("table2", "table3", "figure2", "ten_classes", "report"))
    parser.add_argument("--data_dir", default=None)
    parser.add_argument("--datasets", default="usps_syn,gsad_syn")
    parser.add_argument("--methods", default="")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first_seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    if arguments.part == "report":
        from benchmarks.iced_report import write_report

        write_report(arguments.output)
        return
    arguments.data_dir = data_folder(arguments.data_dir)
    import tensorflow as tf

    import baselines  # noqa: F401  (registers the methods)
    import data  # noqa: F401  (registers the datasets)
    import neucrowd_tf.crowd_layers
    import neucrowd_tf.dasc
    import neucrowd_tf.iced.build  # noqa: F401

    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tf.config.threading.set_inter_op_parallelism_threads(arguments.threads)
    datasets = arguments.datasets.split(",")
    runs = {
        "table2": lambda: methods(arguments, TABLE2, datasets),
        "table3": lambda: warm_ups(arguments, datasets),
        "figure2": lambda: curves(arguments, datasets),
        "ten_classes": lambda: methods(arguments, TEN_CLASSES, ["usps_lt", "usps_lt rate=0.3"]),
    }
    append(arguments.output / f"iced_{arguments.part}.csv", runs[arguments.part]())


if __name__ == "__main__":
    main()
