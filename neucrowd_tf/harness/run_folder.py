"""One run's name, its folder, and how one tells a finished run from a half-written one."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.files.json import jsonable
from neucrowd_tf.io.predictions import read_predictions, read_rows
from neucrowd_tf.io.run_files import (
    ANNOTATORS,
    CHECKPOINTS,
    CONFIG,
    EVALUATION,
    FILES,
    FINISHED,
    FOLDERS,
    LABELS,
    PREDICTIONS,
    WAY_OUT,
    digests_of,
    other_results,
    read_config,
    read_object,
)

METRICS = ("accuracy", "balanced_accuracy", "f1", "auc", "log_loss")


@dataclasses.dataclass(frozen=True, order=True)
class RunKey:
    """Which run: a dataset, a method, a seed, and with cross-validation the fold of a repeat (both
    from 0).
    """

    dataset: str
    method: str
    seed: int
    repeat: int | None = None
    fold: int | None = None

    def folder(self, output_dir: Path, folds: int) -> Path:
        """Returns the run's folder."""
        base = output_dir / self.dataset / self.method / f"seed-{self.seed}"
        return (
            base
            if self.fold is None or self.repeat is None
            else base / f"fold-{self.repeat * folds + self.fold}"
        )

    def record(self) -> dict[str, Any]:
        """Returns what is known of the run by name."""
        given = dataclasses.asdict(self)
        return {name: value for name, value in given.items() if value is not None}

    def __str__(self) -> str:
        part = "" if self.fold is None else f" repeat {self.repeat} fold {self.fold}"
        return f"{self.dataset} {self.method} seed {self.seed}{part}"


def check_place(path: Path, *, folder: bool) -> None:
    """Raises UsageError for what stands where a run writes a file or a folder, and cannot become
    one: a folder or a pipe for a file, a file or a link to nothing for a folder.
    """
    if folder and not path.is_dir() and os.path.lexists(path):
        what = "a link to nothing" if path.is_symlink() and not path.exists() else "a file"
    elif not folder and path.is_dir():
        what = "a folder"
    elif not folder and path.exists() and not path.is_file():
        what = "a pipe or a device"
    else:
        return
    raise UsageError(
        f"--output_dir: expected a {'folder' if folder else 'file'}, or nothing yet, at {path},"
        f" received {what}; remove it or choose another --output_dir"
    )


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Makes a folder and holds a lock on it among all processes that ask for it; leaves no file of
    it there.

    Raises:
        UsageError: a folder or a link in the lock's place, which no command put there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / ".lock"
    check_place(lock, folder=False)
    if lock.is_symlink():
        raise UsageError(
            f"--output_dir: expected a file of a lock, or none, at {lock}, received a link; remove"
            " it"
        )
    with FileLock(lock):
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # Windows removes no file that is open
                lock.unlink()  # whoever waits for it sees that it is gone, and makes another


def _is_number(name: str, value: Any) -> bool:
    """Whether metrics.json may hold a value under this name: a finite number or none, none below
    0, and shares up to 1.
    """
    if value is None or isinstance(value, bool):
        return value is None or name == "resumed"
    if isinstance(value, (int, float)) and name in METRICS:
        return 0 <= value < float("inf") and (value <= 1 or name == "log_loss")
    return isinstance(value, (int, float)) and abs(value) < float("inf")


def _pass_over_folder(name: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Takes a user's file of one digest for the same one where it has only moved to another folder;
    its own name, whose ending says how it is read, counts.
    """
    for old, new in ((before, now), (before.get("hparams"), now.get("hparams"))):
        if isinstance(old, dict) and isinstance(new, dict):
            paths = old.get(name), new.get(name)
            if all(isinstance(path, str) for path in paths) and len({*map(_name, paths)}) == 1:
                new[name] = old[name]


def _name(path: Any) -> str:
    return Path(path).name


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @property
    def finished(self) -> bool:
        return (self.path / FINISHED).is_file()

    @property
    def started(self) -> bool:
        return (self.path / CONFIG).is_file()

    def check(self) -> None:
        """Raises UsageError for what of another kind stands where the run's files and folders go,
        the run's own folder among them.
        """
        for place in (*reversed(self.path.parents[:3]), self.path):
            check_place(place, folder=True)
        for name in FILES[:-1]:  # what goes wrong with report.html costs a run nothing
            check_place(self.path / name, folder=False)
        for name in FOLDERS:
            check_place(self.path / name, folder=True)
        for checkpoint in (self.path / CHECKPOINTS).rglob("*.npz"):
            check_place(checkpoint, folder=False)

    def metrics(self) -> dict[str, Any]:
        """Returns a finished run's metrics.json."""
        whole = read_object(self.path / FINISHED)
        test, timings = whole.get("test"), whole.get("timings")
        expected = "the metrics of a run"
        if isinstance(test, dict) and isinstance(timings, dict):
            numbers = {**{name: test.get(name) for name in METRICS}, **timings}
            wrong = [name for name, value in numbers.items() if not _is_number(name, value)]
            if not wrong:
                return whole
            expected = f"a number for {wrong[0]!r}"
        raise DataError(
            f"{self.path / FINISHED}: expected {expected}, received something else;"
            f" {WAY_OUT[FINISHED]}"
        )

    def digests(self) -> dict[str, str]:
        """Returns the digests of a finished run's files of results, by name."""
        return digests_of(self.metrics(), self.path / FINISHED)

    def has_results(self, key: RunKey) -> bool:
        """Whether a finished run's files of results are there as it wrote them. Earlier versions
        wrote no digests: theirs are there, and can be read.
        """
        digests = self.digests()
        if other_results(self.path, digests):
            return False
        names = {*digests, PREDICTIONS, ANNOTATORS, EVALUATION}
        names |= {LABELS} if key.dataset == "table" else set()
        try:
            for name in {ANNOTATORS, LABELS} & (names - digests.keys()):
                read_rows(self.path / name)
            if PREDICTIONS not in digests:
                read_predictions(self.path / PREDICTIONS)
        except DataError:
            return False
        return all((self.path / name).is_file() for name in names)

    def check_settings(self, settings: dict[str, Any]) -> None:
        """Raises UsageError when the run in this folder was started with other settings, naming the
        first that differs.
        """
        before, now = read_config(self.path)["settings"], jsonable(settings)
        digests = before.pop("digests", {}), now.pop("digests", {})
        self._check_data(*digests, now)
        for same, _ in digests[0].items() & digests[1].items():
            _pass_over_folder(same, before, now)
        for name in sorted({*before, *now}):
            # A flag that a version before this one did not have was off.
            if before.get(name) != now.get(name) and (name in before or now.get(name)):
                raise UsageError(
                    f"{self.path}: expected the settings that this run was started with ({name}:"
                    f" {before.get(name)}), received {name}: {now.get(name)};"
                    f" {self._way_out}"
                )

    @property
    def _way_out(self) -> str:
        """What to do where a run cannot be gone on with."""
        other = "remove this folder" if self.finished else "leave out --resume"
        return f"choose another --output_dir or {other}"

    def _check_data(
        self, before: dict[str, str], now: dict[str, str], settings: dict[str, Any]
    ) -> None:
        """Raises UsageError for a file that is another than when the run was started."""
        for name, digest in before.items():
            if name in now and now[name] != digest:
                hparams = settings.get("hparams", {})
                raise UsageError(
                    f"--{name}: expected {settings.get(name) or hparams.get(name)} as it was when"
                    f" the run in {self.path} was started (SHA-256 {digest[:12]}), received it"
                    f" changed ({now[name][:12]}); {self._way_out}"
                )

    def clear(self) -> None:
        """Removes what a run writes, and nothing else."""
        for name in FILES:
            (self.path / name).unlink(missing_ok=True)
        for name in FOLDERS:
            shutil.rmtree(self.path / name, ignore_errors=True)
        self.sweep()

    def sweep(self) -> None:
        """Removes temporary files and folders that a killed process left."""
        if not self.path.is_dir():
            return
        for item in self.path.iterdir():
            if item.name.startswith(".") and ".part" in item.name:
                shutil.rmtree(item) if item.is_dir() else item.unlink(missing_ok=True)

    def discard(self) -> None:
        """Clears the folder and removes it, and its parents, where nothing else is in them."""
        self.clear()
        folder = self.path
        for _ in range(4):
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent
