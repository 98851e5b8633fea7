"""What a run is, what its result depends on, and what its config.json says."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

from neucrowd_tf.annotations import statistics
from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.errors import UsageError
from neucrowd_tf.harness import process
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.harness.run_folder import RunFolder, RunKey
from neucrowd_tf.io.files.json import jsonable
from neucrowd_tf.io.run_files import OF_METHODS, STATUS, digest_given

# Flags that change a result, as config.json's settings name them.
SETTINGS = (
    *("keep_annotations", "keep_one", "tune", "threads", "device", "mixed_precision"),
    *("distribute", "evaluation"),
)
THREAD_COUNTS = ("tensorflow_intra_op", "tensorflow_inter_op", "blas", "openmp")


@dataclasses.dataclass(frozen=True)
class Work:
    """A run that is to be made, with all that a process needs for it.

    Attributes:
        key: which run.
        hparams: its hyper-parameters.
        options: the command's.
        progress: whether its fit shows bars; None shows them on a terminal.
        only_complete: whether only what a finished run lacks is to be made.
        label: what to say before the run's name.
    """

    key: RunKey
    hparams: dict[str, Any]
    options: Options
    progress: bool | None = None
    only_complete: bool = False
    label: str = ""

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.key.folder(self.options.output_dir, self.options.folds))

    def again(self) -> Work:
        """Returns the same run for another process, after the first one died."""
        return dataclasses.replace(self, options=dataclasses.replace(self.options, resume=True))

    def check(self) -> bool:
        """Returns whether there is something in the folder to go on from.

        Raises:
            UsageError: a finished run without --resume, one that was started with other settings,
                or what is no file or folder of a run in such a one's place.
        """
        folder, resume = self.folder, self.options.resume
        folder.check()
        if folder.finished and not resume:
            raise UsageError(
                f"--output_dir: expected a folder without this run, received {folder.path}, which"
                " holds a finished run; choose another folder, or pass --resume to keep it"
            )
        begun = resume and (folder.started or folder.finished)
        if begun:
            folder.check_settings(self.settings())
        return begun

    def prepare(self) -> None:
        """Readies the folder, which is there: what a killed process left is resumed, or cleared
        without --resume.

        Raises:
            UsageError: as `check` does.
        """
        folder = self.folder
        if self.check():
            folder.sweep()
            (folder / STATUS).unlink(missing_ok=True)
        else:
            folder.clear()

    def settings(self) -> dict[str, Any]:
        """Returns everything that the result depends on, apart from the code: of the user's files
        the digests too.
        """
        options = self.options
        counts = dict.fromkeys(SETTINGS, True) | {
            "folds": options.evaluation == "cv",
            "tune_by": options.tune and options.tune_by != "validation",
            "refit_all": options.refit_all,
            "model_annotator": options.model_annotator,
            "logical_cpus": options.distribute == "mirrored",
        }
        values: dict[str, Any] = {"hparams": self.hparams, "data_seed": self.data_seed}
        values |= {name: getattr(options, name) for name in counts if counts[name]}
        if options.dataset_option:
            values["dataset_option"] = dict(options.dataset_option)
        if self.key.dataset == "table":
            values |= {"classes": options.classes, "image_size": options.image_size}
            tables = {name: str(path.resolve()) for name, path in options.table.items()}
            values |= options.layout | tables
        if files := self.files():
            values["digests"] = {name: _digest_of(name, path) for name, path in files.items()}
        if options.distribute == "multi_worker":
            values["workers"] = process.workers()
        return values

    def files(self) -> dict[str, Path]:
        """Returns the user's files and folders that the run reads, by the flags' names."""
        files = self.options.table if self.key.dataset == "table" else {}
        named = {name: self.hparams.get(name) for name in OF_METHODS}
        given = {name: Path(path) for name, path in named.items() if isinstance(path, str)}
        return files | {name: path for name, path in given.items() if path.is_file()}

    @property
    def data_seed(self) -> int:
        """The seed that draws simulated crowds and splits."""
        return self.key.seed if self.options.data_seed is None else self.options.data_seed

    def config(self, dataset: CrowdDataset, estimator: Any) -> dict[str, Any]:
        """Returns what config.json holds: what is needed to make the run again, and what the data
        was like.
        """
        flags = dataclasses.asdict(self.options)
        del flags["list"]
        return {
            **self.key.record(),
            "parameters": jsonable(estimator.get_params(deep=False), repr),
            "settings": self.settings(),
            "flags": jsonable(flags, repr),
            "threads": dict.fromkeys(THREAD_COUNTS, self.options.threads),
            "versions": process.versions(),
            "git_revision": process.git_revision(),
            "card": {**dataclasses.asdict(dataset.card), "statistics": data_statistics(dataset)},
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


def _digest_of(name: str, path: Path) -> str:
    """Returns the digest of a user's file or folder, read again only when it has changed."""
    state = path.stat()
    return _digest(name, path, state.st_mtime_ns, state.st_size, state.st_ino)


@functools.lru_cache(maxsize=64)
def _digest(name: str, path: Path, *_: int) -> str:
    return digest_given(name, path)
