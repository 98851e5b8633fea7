"""What a suite is: which runs fill a table or a figure, and what the paper prints beside them."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from neucrowd_tf.cli.runs.options import DEFAULTS, Options
from neucrowd_tf.declare.declarations import declared_by_name
from neucrowd_tf.declare.types import Fields, NamedValues
from reproduction.printed import TABLES, Table

# The first seed of every table. Freeze presets in a commit before seeds from here on are run.
FIRST_SEED = 11000


@dataclasses.dataclass(frozen=True)
class Case:
    """Some datasets and methods that run with the same settings.

    Attributes:
        datasets, methods: by name.
        setting: a name for `hparams` and `options` ("k=3"), the same in every suite that has these;
            it precedes the method in the table and names the folder, so that suites share their
            runs. It is empty if both are.
        seeds: how many of them the table shows.
        hparams: hyper-parameters by name, or by "method.name".
        options: further flags of the command ("evaluation", "folds", "repeats", "keep_annotations",
            "dataset_option", "curves").
        x: for a figure, where the setting stands on its axis.
        first_seed: of its runs.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    setting: str = ""
    seeds: int = 5
    hparams: NamedValues = dataclasses.field(default_factory=dict)
    options: NamedValues = dataclasses.field(default_factory=dict)
    x: float | None = None
    first_seed: int = FIRST_SEED

    def __post_init__(self) -> None:
        """Raises UsageError or ValueError for a value that the flag of its name does not take."""
        flags = declared_by_name(Options)
        flags |= {"seeds": flags["num_runs"], "first_seed": flags["seed"]}
        values = {"seeds": self.seeds, "first_seed": self.first_seed, **self.options}
        for name, value in values.items():
            flag = flags[name]
            if flag.rule is not None:
                flag.rule.check(name, value)
            elif flag.convert is not None:
                flag.convert(str(value))

    @property
    def folder(self) -> str:
        """The folder of these runs in the pool that all suites share."""
        return self.setting.replace("/", "_") or "default"

    @property
    def folds(self) -> int | None:
        """The folds of a cross-validation, None for a split's runs."""
        if self.options.get("evaluation") == "cv":
            return self.options.get("folds", DEFAULTS["folds"])
        return None

    def row_name(self, method: str) -> str:
        """Returns the method as the table names it."""
        if self.setting:
            return f"{self.setting}/{method}"
        return method


# An analysis makes more files from finished runs and the data: (suite, the command's options) ->
# the files written.
Analysis = Callable[["Suite", Options], list[Path]]


@dataclasses.dataclass(frozen=True)
class Suite:
    """One table or figure.

    Attributes:
        name: as in `--suite`.
        title: what it is ("NeuCrowd, table 2"); the paper comes before the comma.
        cases: the runs.
        metrics: what the table shows, as metrics.json or evaluation.json names it.
        printed: the paper's figures; without them those of the table with the suite's name.
        baseline: a method that the others' gains are measured over, run by run; or several, of
            which each is that of the methods whose names end in it ("_wdn") and the first that of
            all others.
        rivals: for a map, the simple rivals of each method that it is of.
        analysis: makes further tables or pictures from the finished runs.
        note: what a reader has to know.
        file: the user's file that the suite was read from; "" for one of the project.
    """

    name: str
    title: str
    cases: tuple[Case, ...]
    metrics: tuple[str, ...] = ("accuracy",)
    printed: Table | None = None
    baseline: str = ""
    rivals: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    analysis: Analysis | None = None
    note: str = ""
    file: str = ""

    @property
    def figures(self) -> Table:
        """The paper's figures."""
        if self.printed is None:
            return TABLES.get(self.name, {})
        return self.printed

    def baseline_of(self, method: str) -> str:
        """Returns what a method's gain is measured over; "" where the suite has no baseline."""
        first, *layers = self.baseline.split() or [""]
        return next((name for name in layers if method.endswith(f"_{name}")), first)

    @property
    def command(self) -> str:
        """The command that makes the table."""
        program = Path(sys.argv[0]).name if self.file else "run_experiment.py"
        flags = f"--suite={self.file or self.name} --data_dir=DATA --output_dir=OUT --jobs=2"
        return f"python {program} {flags}"

    def with_rows(self, patterns: Sequence[str]) -> Suite:
        """Returns the suite with those rows whose `dataset/row name` matches a pattern."""
        cases = []
        for case in self.cases:
            for dataset in case.datasets:
                methods = []
                for method in case.methods:
                    matches = partial(fnmatchcase, f"{dataset}/{case.row_name(method)}")
                    if any(map(matches, patterns)):
                        methods.append(method)
                # A hyper-parameter of one method ("method.name") goes with its method.
                hparams = {}
                for name, value in case.hparams.items():
                    if name.rpartition(".")[0] in ("", *methods):
                        hparams[name] = value
                if methods:
                    selected: Fields = {"datasets": (dataset,), "methods": tuple(methods)}
                    cases.append(dataclasses.replace(case, hparams=hparams, **selected))
        return dataclasses.replace(self, cases=tuple(cases))
