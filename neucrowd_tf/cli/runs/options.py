"""The flags of runs: `Options`, one field per flag, and which of them exclude each other."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from neucrowd_tf.cli.command_line import LabelFlags
from neucrowd_tf.datasets.files import TableFiles
from neucrowd_tf.datasets.scarcity import Scarcity
from neucrowd_tf.declare.declarations import declared, declared_by_name, number, whole
from neucrowd_tf.declare.flag_parsing import pair, parse_value
from neucrowd_tf.declare.flag_parsing import parse as parse_flags
from neucrowd_tf.declare.types import Entries, Fields, Pairs, Texts
from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.schema import FLAGS
from neucrowd_tf.names import among, without

__all__ = ["Options", "check", "parse", "parse_value"]

MAX_SEED = 2**31 - 1
NAMES = tuple(FLAGS)
# Files of --dataset=table, and further arguments of its loader.
_FILES = declared(TableFiles)
TABLES = tuple(field.name for field in _FILES if Path in field.kinds)
LAYOUT = tuple(without(declared_by_name(TableFiles), TABLES))
SCARCITY = tuple(declared_by_name(Scarcity))
# A suite sets these itself; with other values its table would not be what its title says.
SET_BY_SUITE = (
    "dataset",
    "method",
    "seed",
    "hparam",
    *SCARCITY,
    "gold",
    "dataset_option",
    "curves",
    "evaluation",
    "folds",
    "repeats",
    "tune",
    "tune_by",
    "space",
    "baseline",
    *TABLES,
    *LAYOUT,
    *NAMES,
    "encoder",
    "bases",
)


def _tries(text: str) -> int | str:
    """Returns the value of --tune."""
    if text == "grid":
        return text
    if not text.isdecimal() or int(text) > 1_000_000:
        raise ValueError("must be grid or a whole number from 0 to 1000000")
    return int(text)


def _space(text: str) -> tuple[str, tuple[Any, ...]]:
    """Returns a name and its values: of a list, or of a text separated by commas."""
    name, value = pair(text)
    if isinstance(value, str):
        value = [parse_value(item.strip()) for item in value.split(",")]
    return name, tuple(value) if isinstance(value, list | tuple) else (value,)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(TableFiles, LabelFlags, Scarcity):
    """Trains methods on datasets and writes their results.

    With --dataset=table the data are the user's own files.
    """

    dataset: Annotated[Entries, "Datasets, separated by commas (see --list)."] = ()
    method: Annotated[Entries, "Methods, separated by commas (see --list)."] = ()
    suite: Annotated[Entries, "Suites to run: names, `all`, or your FILE.toml."] = ()
    rows: Annotated[Entries, "Rows, as dataset/[setting/]method; * is any text."] = ()
    list: Annotated[bool, "Lists methods, datasets and suites, and ends."] = False
    output_dir: Annotated[Path, "Folder of results.csv, summary.csv and the runs."] = Path("runs")
    data_dir: Annotated[Path | None, "Folder of the published data. Default: download."] = None
    seed: Annotated[int, whole(0, MAX_SEED), "First seed."] = 0
    num_runs: Annotated[int | None, whole(1), "Number of seeds. Default: 1, or the suite's."] = None
    hparam: Annotated[Pairs, "[METHOD.]NAME=VALUE: hyper-parameter"] = ()
    bases: Annotated[
        Literal["stronger", "papers"],
        "Networks of crowd layers and two-stage methods: the papers', or stronger ones for"
        " datasets that have them. Suites use the papers'.",
    ] = "stronger"
    baseline: Annotated[Entries, "Methods to compare with, besides mv_lr and ds_lr."] = ()
    table: Annotated[Literal["md", "tex"] | None, "Also writes summary.md or summary.tex."] = None
    resume: Annotated[bool, "Keeps finished runs and continues unfinished ones."] = False
    export: Annotated[bool, "Also writes each fitted model as a SavedModel."] = False
    report: Annotated[bool | None, "Writes report.html. Default: not with --suite."] = None
    curves: Annotated[bool, "Writes the accuracy after each epoch to curves.csv."] = False
    jobs: Annotated[int, whole(1, 1024), "Number of runs at the same time."] = 1
    scheduler: Annotated[str | None, "Dask scheduler whose workers make the runs."] = None
    device: Annotated[str, "Device: auto, cpu, gpu, or one such as gpu:1."] = "auto"
    mixed_precision: Annotated[bool, "Computes in bfloat16 with weights in float32."] = False
    distribute: Annotated[
        Literal["none", "mirrored", "multi_worker"],
        "Trains on all devices of this machine, or on the processes that TF_CONFIG lists.",
    ] = "none"
    threads: Annotated[int, whole(1, 1024), "Threads per run; results depend on it."] = 1
    checkpoint_seconds: Annotated[float, number(least=0), "Least seconds between checkpoints."] = (
        5.0
    )
    dataset_option: Annotated[Pairs, "NAME=VALUE for a dataset's loader"] = ()
    evaluation: Annotated[
        Literal["split", "cv"], "The dataset's own split, or repeated stratified cross-validation."
    ] = "split"
    folds: Annotated[int, whole(2, 10_000), "Number of folds (with --evaluation=cv)."] = 5
    repeats: Annotated[int, whole(1, 10_000), "Number of repeats (with --evaluation=cv)."] = 1
    tune: Annotated[int | str, _tries, "Number of settings to try before each run, or `grid`."] = 0
    space: Annotated[Pairs, _space, "For --tune: name=a,b,c."] = ()
    tune_by: Annotated[
        Literal["validation", "crowd"],
        "Data that score the settings (with --tune): the validation split or annotations.",
    ] = "validation"
    encoder: Annotated[
        str | None,
        "Network that makes features of texts or images: a folder (model.onnx,"
        " tokenizer.json), sentence-transformers:NAME, keras:NAME or keras:NAME:WEIGHTS. Default:"
        " TF-IDF of texts, pixels of images.",
    ] = None

    @property
    def seeds(self) -> range:
        """The seeds of `--seed` and `--num_runs`."""
        return range(self.seed, self.seed + (self.num_runs or 1))

    @property
    def tables(self) -> dict[str, Path]:
        """The files of --dataset=table by the names of their flags."""
        return self.changed_among(TABLES)

    @property
    def layout(self) -> Fields:
        """How the files of --dataset=table are read: the flags that are not at their default."""
        return self.changed_among((*LAYOUT, *NAMES))

    def changed_among(self, names: Iterable[str]) -> Fields:
        """Returns the flags of these names that are not at their default."""
        changed = {}
        for name in names:
            value = getattr(self, name)
            if value != DEFAULTS[name]:
                changed[name] = value
        return changed


DEFAULTS = {field.name: field.default for field in dataclasses.fields(Options)}


def parse(argv: Texts) -> Options:
    """Returns the checked options of a command line.

    Raises:
        UsageError: a flag that cannot be used; one line.
        HelpRequest: `--help` is among the arguments.
    """
    return check(parse_flags(Options, argv, "neucrowd run"))


def check(options: Options) -> Options:
    """Returns the options.

    Raises:
        UsageError: flags that cannot be used together, or that name no file or folder.
    """
    if options.list:
        return options
    for problem in _problems(options):
        raise UsageError(problem)
    return options


def _problems(o: Options) -> Iterator[str]:
    """Yields what is wrong with the flags, in the order of importance."""
    changed = o.changed_among(DEFAULTS)
    tables = among(changed, TABLES)
    if o.suite:
        for name in among(changed, SET_BY_SUITE):
            yield f"--{name}: not with --suite, which sets it. Leave it out."
    else:
        for name in without(("dataset", "method"), changed):
            yield (
                f"--{name} is missing: name at least one; --list shows them. --dataset=table is"
                " for your own files."
            )
    if o.seeds[-1] > MAX_SEED:
        yield f"--num_runs: seeds go up to {MAX_SEED}. Choose a smaller --seed or --num_runs."
    if o.distribute == "multi_worker":
        others = ("jobs", "scheduler", "suite", "tune", "curves", "export")
        for name in among(others, changed):
            yield f"--{name}: not with --distribute=multi_worker."
    if not re.fullmatch(r"auto|(cpu|gpu)(:\d+)?", o.device):
        yield f"--device={o.device}: must be auto, cpu, gpu, cpu:N or gpu:N"
    if o.scheduler is not None and o.jobs > 1:
        yield "--jobs: not with --scheduler, each of whose workers makes one run at a time."
    for name, needed in (("space", "tune"), ("rows", "suite")):
        if getattr(o, name) and not getattr(o, needed):
            yield f"--{name}: only with --{needed}."
    if "table" in o.dataset:
        yield from o.problems()
    elif tables and not o.suite:
        yield f"--{tables[0]}: only with --dataset=table."
    folders = ("data_dir", "images")
    for name in ("gold", *tables, *folders):
        path = getattr(o, name)
        if path is None or (name == "annotations" and path.is_dir()):  # SageMaker's export
            continue
        is_there = path.is_file()
        kind = "file"
        if name in folders:
            is_there = path.is_dir()
            kind = "folder"
        if not is_there:
            yield f"--{name}={path}: {'not a' if path.exists() else 'no such'} {kind}"
