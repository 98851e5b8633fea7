"""One run of a command: its name, its folder, its settings, and whether it can be continued."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import shutil
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock

from neucrowd_tf.annotations import statistics
from neucrowd_tf.cli.runs import process
from neucrowd_tf.cli.runs.options import SCARCITY, Options
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.declare import registry
from neucrowd_tf.declare.picking import attributes_of
from neucrowd_tf.declare.types import Fields, NamedValues
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io import run_files
from neucrowd_tf.io.files.json_text import jsonable
from neucrowd_tf.io.run_files import CONFIG, FINISHED, Config, Metrics

METRICS = ("accuracy", "balanced_accuracy", "f1", "auc", "log_loss")
TRAIN_ACCURACY = "train_accuracy"  # of metrics.json: the share of right training predictions
# Flags that change a result, by their names in config.json's settings.
SETTINGS = (*SCARCITY, "tune", "threads", "device", "mixed_precision", "distribute", "evaluation")
SOURCES = ("model_annotator", "family")
# What runs of one method may differ in.
PER_RUN = ("data_seed", "digests", "workers", "threads", "device", "mixed_precision", "distribute")
# What runs of different methods may differ in besides: all but their data.
PER_METHOD = ("hparams", "bases", "tune", "tune_by", "space", "encoder", "gold", *SOURCES)
OTHER_FOLDER = "Choose another --output_dir, or remove this folder."
THREAD_COUNTS = ("tensorflow_intra_op", "tensorflow_inter_op", "blas", "openmp")


@dataclasses.dataclass(frozen=True, order=True)
class RunKey:
    """The name of a run.

    Attributes:
        dataset: its name.
        method: its name.
        seed: of the run.
        repeat: of cross-validation, from 0; None without.
        fold: of the repeat, from 0; None without.
    """

    dataset: str
    method: str
    seed: int
    repeat: int | None = None
    fold: int | None = None

    def folder(self, output_dir: Path, folds: int) -> Path:
        """Returns the run's folder."""
        base = output_dir / self.dataset / self.method / f"seed-{self.seed}"
        if self.fold is None or self.repeat is None:
            return base
        return base / f"fold-{self.repeat * folds + self.fold}"

    def record(self) -> Fields:
        """Returns the parts of the name that the run has."""
        parts = dataclasses.asdict(self)
        return {name: value for name, value in parts.items() if value is not None}

    def __str__(self) -> str:
        name = f"{self.dataset} {self.method} seed {self.seed}"
        if self.fold is not None:
            name += f" repeat {self.repeat} fold {self.fold}"
        return name


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Makes a folder and holds a lock on it among all processes that ask for the same lock."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / ".lock"
    with FileLock(lock):
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # Windows does not remove open files
                lock.unlink()  # a process that waits for it makes another


@dataclasses.dataclass(frozen=True)
class Work:
    """A run to make, with everything that a process needs for it.

    Attributes:
        key: the run's name.
        hparams: its hyper-parameters.
        options: the command's.
        progress: whether its fit shows progress bars; None shows them on a terminal.
        label: printed before the run's name.
        space: the values that --tune tries; empty for the method's declared space.
    """

    key: RunKey
    hparams: Fields
    options: Options
    progress: bool | None = None
    label: str = ""
    space: Fields = dataclasses.field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.key.folder(self.options.output_dir, self.options.folds)

    @property
    def finished(self) -> bool:
        """Whether the run has its metrics.json."""
        return (self.folder / FINISHED).is_file()

    def needs_tensorflow(self) -> bool:
        """Whether the run may compute with TensorFlow, whose settings come before its import.

        What packages other than `neucrowd_tf.datasets` simulate is not known here, so it may.
        """
        options = self.options
        networks = registry.entry("method", self.key.method).trains_network
        dataset = registry.entry("dataset", self.key.dataset)
        simulates = dataset.simulated and not dataset.module.startswith("neucrowd_tf.datasets.")
        flags = options.encoder is not None, options.export, options.mixed_precision
        devices = options.distribute != "none" or options.device != "auto"
        return networks or simulates or devices or any(flags)

    def begun(self) -> Work:
        """Returns the run as one that is resumed, in a folder without earlier unfinished files.

        A process that takes the run over from one that died continues it.
        """
        self.prepare()
        return dataclasses.replace(self, options=dataclasses.replace(self.options, resume=True))

    def metrics(self) -> Metrics:
        """Returns a finished run's metrics.json.

        Raises:
            DataError: it is not the metrics of a run.
        """
        path = self.folder / FINISHED
        metrics = Metrics.read(path)
        values = [*map(metrics.test.get, METRICS), *metrics.timings.values()]
        if not all(isinstance(value, int | float | None) for value in values):
            raise DataError(f"{path}: a metric is not a number. {Metrics.REMEDY}")
        return metrics

    def complete(self) -> bool:
        """Whether the run is finished and, with --export, has a SavedModel."""
        model = self.folder / run_files.SAVED_MODEL / "saved_model.pb"
        return self.finished and (model.is_file() or not self.options.export)

    # ----------------------------------------------------------------- continuing a run

    def check(self) -> bool:
        """Returns whether the folder contains a run to continue.

        Raises:
            UsageError: a finished run without --resume, or a run with other settings.
        """
        if self.finished and not self.options.resume:
            raise UsageError(
                f"--output_dir: {self.folder} contains a finished run. Choose another folder, or"
                " keep it with --resume."
            )
        continues = self.options.resume and (self.finished or (self.folder / CONFIG).is_file())
        if continues:
            self.check_settings()
        return continues

    def check_settings(self) -> None:
        """Raises UsageError if the run in the folder has other settings; names the first."""
        now = jsonable(self.settings())
        before = dict(Config.read(self.folder / CONFIG).settings)
        digests = before.get("digests") or {}
        for name, digest in now.get("digests", {}).items():
            if digests.get(name, digest) != digest:
                raise UsageError(
                    f"--{name}: the file has changed since the run in {self.folder} began."
                    f" {OTHER_FOLDER}"
                )
            for settings in (before, before.get("hparams"), now, now.get("hparams")):
                if isinstance(settings, dict) and name in digests:
                    settings.pop(name, None)  # the same file may be in another folder now
        for name in _differing(before, now, {"digests"}):
            raise UsageError(
                f"{self.folder}: the run began with {name}: {before.get(name)}, now it is"
                f" {now.get(name)}. {OTHER_FOLDER}"
            )

    def check_beside(self, others: Iterable[tuple[Path, Config]]) -> None:
        """Raises UsageError if summary.csv could not compare this run with another finished one.

        Runs of one method may differ in their seed alone, and runs on one dataset in their method
        and its settings. Those of cross-validation are compared among themselves.
        """
        now = jsonable(self.settings())
        files = now.get("digests", {})
        for folder, config in others:
            before = config.settings
            theirs = before.get("digests") or {}
            differ = _differing(files, theirs, {"encoder", "gold"})
            ignored = {*files, *theirs, *PER_RUN}
            if folder.relative_to(self.options.output_dir).parts[1] != self.key.method:
                ignored |= {*PER_METHOD}
            if before.get("evaluation", "split") == now["evaluation"] and folder != self.folder:
                differ += _differing(before, now, ignored)
            if differ:
                raise UsageError(
                    f"--output_dir: {folder} has a run with other {differ[0]}, and summary.csv"
                    " would put both together. Choose another folder, or remove that one."
                )

    def prepare(self) -> None:
        """Clears the folder, or keeps what --resume continues from.

        Raises:
            UsageError: see `check`.
        """
        if self.check():
            self.sweep()
            (self.folder / run_files.STATUS).unlink(missing_ok=True)
        else:
            self.clear()

    def clear(self) -> None:
        """Removes the files of a run and nothing else."""
        for name in run_files.FILES:
            (self.folder / name).unlink(missing_ok=True)
        for name in run_files.FOLDERS:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.sweep()

    def forget(self) -> None:
        """Clears the folder of a run that ended before it had trained anything."""
        if not self.finished and not (self.folder / run_files.CHECKPOINTS).exists():
            self.clear()

    def sweep(self) -> None:
        """Removes temporary files and folders of a killed process."""
        for item in self.folder.glob(".*.part*"):
            shutil.rmtree(item) if item.is_dir() else item.unlink(missing_ok=True)

    # ----------------------------------------------------------------- config.json

    def settings(self) -> Fields:
        """Returns everything but the code that the result depends on."""
        options = self.options
        method = registry.entry("method", self.key.method)
        counts = dict.fromkeys(SETTINGS, True) | {
            "folds": options.evaluation == "cv",
            "tune_by": options.tune and options.tune_by != "validation",
            "space": bool(options.space),
            **attributes_of(options, SOURCES),
            "encoder": options.encoder,
            "bases": options.bases == "stronger" and self.key.dataset in method.stronger,
        }
        values: Fields = {"hparams": self.hparams, "data_seed": self.key.seed}
        values |= attributes_of(options, filter(counts.get, counts))
        if options.dataset_option:
            values["dataset_option"] = dict(options.dataset_option)
        if self.key.dataset == "table":
            tables = {name: str(path.resolve()) for name, path in options.tables.items()}
            values |= options.layout | tables
        if options.gold is not None:
            values["gold"] = str(options.gold.resolve())
        if files := self.files():
            values["digests"] = {name: _digest_of(name, path) for name, path in files.items()}
        if options.distribute == "multi_worker":
            values["workers"] = process.workers()
        return values

    def files(self) -> dict[str, Path]:
        """Returns the user's files and folders that the run reads, by the names of the flags."""
        files: dict[str, Path] = {}
        if self.key.dataset == "table":
            files |= self.options.tables
        if self.options.gold is not None:
            files["gold"] = self.options.gold
        if self.options.encoder is not None:
            parts = self.options.encoder.split(":", 2)
            path = Path(parts[-1] if parts[0] == "keras" else self.options.encoder)
            if path.exists():
                files["encoder"] = path
        return files

    def config(self, dataset: CrowdDataset, estimator: Any) -> Fields:
        """Returns the content of config.json."""
        flags = dataclasses.asdict(self.options)
        del flags["list"]
        return {
            **self.key.record(),
            "changes": registry.method(self.key.method).changes,
            "parameters": jsonable(estimator.get_params(deep=False), repr),
            "settings": self.settings(),
            "flags": jsonable(flags, repr),
            "threads": dict.fromkeys(THREAD_COUNTS, self.options.threads),
            "machine": process.machine(),
            "versions": process.versions(),
            "git_revision": process.git_revision(),
            "card": {**dataclasses.asdict(dataset.card), "statistics": data_statistics(dataset)},
        }


def _differing(one: NamedValues, other: NamedValues, ignored: Collection[str]) -> list[str]:
    """Returns the names of values that differ, sorted.

    A flag that an earlier version did not have was off, which versions spell differently.
    """
    names = sorted({*one, *other}.difference(ignored))
    return [name for name in names if (one.get(name) or None) != (other.get(name) or None)]


def preset_name(dataset: str, encoder: Any) -> str | None:
    """Returns the data set whose presets a method takes, None if images are encoded.

    Presets for images have convolutions, and vectors have no pixels.
    """
    if getattr(encoder, "takes", "") == "images":
        return None
    return dataset


def data_statistics(dataset: CrowdDataset) -> Fields:
    """Returns the sizes of a dataset and the statistics of its annotations."""
    return {
        "feature_shape": list(dataset.features.shape[1:]),
        "train_size": len(dataset.features),
        "validation_size": 0 if dataset.validation is None else len(dataset.validation),
        "test_size": len(dataset.test),
        **statistics.describe(dataset.annotations, dataset.truth),
    }


def _digest_of(name: str, path: Path) -> str:
    """Returns the digest of an input file, computed again only when the file has changed."""
    state = path.stat()
    return _digest(name, path, state.st_mtime_ns, state.st_size, state.st_ino)


@functools.lru_cache(maxsize=64)
def _digest(name: str, path: Path, *_: int) -> str:
    return run_files.input_digest(name, path)
