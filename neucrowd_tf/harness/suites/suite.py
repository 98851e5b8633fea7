"""What a suite is: which runs fill a table or a figure, and what the paper prints beside them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from neucrowd_tf.harness.suites.papers import Table

# The first seed of every table. Freeze presets in a commit before seeds from here on are run.
FIRST_SEED = 1000


@dataclasses.dataclass(frozen=True)
class Case:
    """Some datasets and methods that run with the same settings.

    Attributes:
        datasets, methods: by name.
        setting: a name for `hparams` and `options` ("k=3"), the same in every suite that has these; it precedes the method in the
            table and names the folder, so that suites share their runs. Nothing is called nothing.
        seeds: how many of them the table shows.
        hparams: hyper-parameters by name, or by "method.name".
        options: further flags of the command ("evaluation", "folds", "repeats", "keep_annotations").
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    setting: str = ""
    seeds: int = 5
    hparams: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The folder of these runs in the pool that all suites share."""
        return self.setting.replace("/", "_") or "default"

    def row_name(self, method: str) -> str:
        """Returns the method as the table names it."""
        return f"{self.setting}/{method}" if self.setting else method


# An analysis makes more files from finished runs: (suite, folder with the runs, folder for results) -> the files written.
Analysis = Callable[["Suite", Path, Path], list[Path]]


@dataclasses.dataclass(frozen=True)
class Suite:
    """One table or figure.

    Attributes:
        name: as in `--suite`.
        title: what it is ("NeuCrowd, table 2").
        cases: the runs.
        metrics: what the table shows, as metrics.json names it.
        printed: the paper's figures.
        x: for a figure, the settings' common name ("k"); the picture is then a curve over settings.
        analysis: "module:function" that makes further tables or pictures from the finished runs.
        note: what a reader has to know.
    """

    name: str
    title: str
    cases: tuple[Case, ...]
    metrics: tuple[str, ...] = ("accuracy",)
    printed: Table = dataclasses.field(default_factory=dict)
    x: str = ""
    analysis: str = ""
    note: str = ""

    @property
    def summary(self) -> str:
        """One line for `--list`."""
        return self.title
