"""Reads what the runs of a suite left."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

from neucrowd_tf.declare.types import Fields
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.run_files import CONFIG, EVALUATION, FINISHED, HISTORY, STATUS
from reproduction.suite import Case, Suite

RUNS = "runs"


@dataclasses.dataclass(frozen=True)
class FinishedRun:
    """A finished run (or a fold of it) and its place in the suite."""

    case: Case
    dataset: str
    method: str
    seed: int
    folder: Path

    def read(self, name: str) -> Fields:
        """Returns a JSON file of the run; nothing if it is missing."""
        path = self.folder / name
        if path.exists():
            return dict(read_json(path))
        return {}

    @property
    def evaluation(self) -> Fields:
        return self.read(EVALUATION)

    def metric(self, name: str) -> float | None:
        """Returns a figure of the test split, the run's times, evaluation.json or the last epoch.

        "validation_accuracy" is that of the validation split, "recall_7" that of class 7.
        """
        finished = self.read(FINISHED)
        test = finished["test"]
        if name.startswith("recall_"):
            return float(test["per_class"][name.removeprefix("recall_")]["recall"])
        value = test.get(name, finished.get("timings", {}).get(name))
        if name == "validation_accuracy":
            value = finished.get("validation", {}).get("accuracy")
        if value is None:
            value = finished.get(name)
        if value is None:
            value = self.evaluation.get(name)
        if value is None:
            value = self.read(HISTORY).get(name, [None])[-1]
        return None if value is None else float(value)

    @property
    def revision(self) -> str:
        """The commit that made the run."""
        return self.read(CONFIG).get("git_revision") or "unknown"


def case_folder(root: Path, case: Case) -> Path:
    """Returns where a case's runs lie: in the pool `<root>/runs`, by setting.

    Suites with the same case share its runs.
    """
    return root / RUNS / case.folder


def _folders(root: Path, case: Case, dataset: str, method: str) -> Iterator[tuple[int, Path]]:
    """Yields the seeds and folders of a row's own runs, finished or not.

    Other suites may have run more seeds.
    """
    base = case_folder(root, case) / dataset / method
    for seed in range(case.first_seed, case.first_seed + case.seeds):
        folder = base / f"seed-{seed}"
        if case.folds is None:
            yield seed, folder
        for fold in range((case.folds or 0) * case.options.get("repeats", 1)):
            yield seed, folder / f"fold-{fold}"


def row_runs(root: Path, case: Case, dataset: str, method: str) -> list[FinishedRun]:
    """Returns the finished runs of one row of a table."""
    runs = []
    for seed, folder in _folders(root, case, dataset, method):
        if (folder / FINISHED).exists():
            runs.append(FinishedRun(case, dataset, method, seed, folder))
    return runs


def suite_runs(suite: Suite, root: Path) -> list[FinishedRun]:
    """Returns all finished runs of a suite."""
    runs = []
    for case in suite.cases:
        for dataset, method in itertools.product(case.datasets, case.methods):
            runs += row_runs(root, case, dataset, method)
    return runs


def absent_reason(root: Path, case: Case, dataset: str, method: str) -> str:
    """Returns why a row has no run, where a run said so."""
    for _, folder in _folders(root, case, dataset, method):
        if (folder / STATUS).exists():
            record = read_json(folder / STATUS)
            return f"{record.get('status', 'skipped')}: {record.get('reason', '')}".strip(": ")
    return ""
