"""config.json: what a run is, what its result depends on, and what its data was like."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import numpy as np

from neucrowd_tf.annotations import statistics
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.harness import process
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.harness.run_folder import RunKey
from neucrowd_tf.io.files import digest, jsonable


@dataclasses.dataclass(frozen=True)
class Task:
    """A run that is to be made: its key, its hyper-parameters, and whether others run beside it
    (bars would mix).
    """

    key: RunKey
    hparams: dict[str, Any]
    progress: bool | None = None


def digest_of(path: Path) -> str:
    """Returns the digest of a user's file or folder, read again only when it has changed."""
    state = path.stat()
    return _digest(path, state.st_mtime_ns, state.st_size, state.st_ino)


@functools.lru_cache(maxsize=64)
def _digest(path: Path, *_: int) -> str:
    return digest(path)


def settings(task: Task, options: Options) -> dict[str, Any]:
    """Returns everything that a run's result depends on, apart from the code: of the user's files
    the digests too.
    """
    values: dict[str, Any] = {
        "hparams": task.hparams,
        "data_seed": task.key.seed if options.data_seed is None else options.data_seed,
        "keep_annotations": options.keep_annotations,
        "keep_one": options.keep_one,
        "tune": options.tune,
        "threads": options.threads,
        "device": options.device,
        "mixed_precision": options.mixed_precision,
        "distribute": options.distribute,
        "evaluation": options.evaluation,
    }
    if options.evaluation == "cv":
        values["folds"] = options.folds
    if options.tune and options.tune_by != "validation":
        values["tune_by"] = options.tune_by
    if options.dataset_option:
        values["dataset_option"] = dict(options.dataset_option)
    if task.key.dataset == "table":
        values |= {
            "classes": options.classes,
            "image_size": options.image_size,
            **options.layout,
        } | {name: str(path.resolve()) for name, path in options.table.items()}
        values["digests"] = {name: digest_of(path) for name, path in options.table.items()}
    if options.refit_all:
        values["refit_all"] = True
    if options.model_annotator:
        values["model_annotator"] = list(options.model_annotator)
    weights = task.hparams.get("weights")
    if isinstance(weights, str) and Path(weights).is_file():
        values.setdefault("digests", {})["weights"] = digest_of(Path(weights))
    if options.distribute == "mirrored":
        values["logical_cpus"] = options.logical_cpus
    if options.distribute == "multi_worker":
        values["workers"] = process.workers()
    return values


def config(task: Task, options: Options, dataset: CrowdDataset, estimator: Any) -> dict[str, Any]:
    """Returns what config.json holds: what is needed to make the run again, and what the data was
    like.
    """
    card = dataclasses.asdict(dataset.card)
    flags = {name: value for name, value in dataclasses.asdict(options).items() if name != "list"}
    return {
        "dataset": task.key.dataset,
        "method": task.key.method,
        "seed": task.key.seed,
        **({} if task.key.fold is None else {"repeat": task.key.repeat, "fold": task.key.fold}),
        "parameters": plain(estimator.get_params(deep=False)),
        "settings": settings(task, options),
        "flags": plain(flags),
        "threads": process.thread_counts(options),
        "versions": process.versions(),
        "git_revision": process.git_revision(),
        "card": {**card, "statistics": data_statistics(dataset)},
    }


def data_statistics(dataset: CrowdDataset) -> dict[str, Any]:
    """Returns the sizes of a dataset and the statistics of its annotations."""
    return {
        "feature_shape": list(dataset.features.shape[1:]),
        "train_size": len(dataset.features),
        "validation_size": 0 if dataset.validation is None else len(dataset.validation),
        "test_size": len(dataset.test),
        **statistics.describe(dataset.annotations, dataset.truth),
    }


def plain(value: Any) -> Any:
    """Returns a value in JSON's types; objects are spelt out."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic, Path)):
        return jsonable(value)
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)
