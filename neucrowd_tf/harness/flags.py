"""The flags of runs: `Options`, one field per flag, and which of them exclude each other."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from neucrowd_tf.commands.command_line import LabelFlags
from neucrowd_tf.datasets.files import TableFiles
from neucrowd_tf.errors import UsageError
from neucrowd_tf.flags import flag, pair, parse_value
from neucrowd_tf.flags import parse as parse_flags
from neucrowd_tf.io.schema import TableOptions

__all__ = ["Options", "check", "parse", "parse_value"]

MAX_SEED = 2**31 - 1
NAMES = tuple(field.name for field in dataclasses.fields(TableOptions))
# Files of --dataset=table, and further arguments of its loader.
_FILES = dataclasses.fields(TableFiles)
TABLES = tuple(field.name for field in _FILES if str(field.type).startswith("Path"))
LAYOUT = tuple(field.name for field in _FILES if field.name not in TABLES)
# A suite sets these itself; with other values its table would not be what its title says.
SET_BY_SUITE = (
    *("dataset", "method", "seed", "hparam", "keep_annotations"),
    *("gold", "keep_one", "dataset_option", "curves", "evaluation", "folds", "repeats"),
    *("tune", "tune_by", "space", "baseline", *TABLES, *LAYOUT, *NAMES),
    *("encoder", "bases"),
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
class Options(TableFiles, LabelFlags):
    """Trains methods on datasets and writes their results.

    With --dataset=table the data are the user's own files.
    """

    dataset: tuple[str, ...] = flag((), help="Datasets, separated by commas (see --list).")
    method: tuple[str, ...] = flag((), help="Methods, separated by commas (see --list).")
    suite: tuple[str, ...] = flag((), help="Tables and figures: names, `all`, or your FILE.toml.")
    rows: tuple[str, ...] = flag((), help="Rows, as dataset/[setting/]method; * is text or comma.")
    list: bool = flag(False, help="Lists methods, datasets and suites, and ends.")
    output_dir: Path = flag(Path("runs"), help="Folder of results.csv, summary.csv and the runs.")
    data_dir: Path | None = flag(None, help="Copy of the published data. Default: a download.")
    seed: int = flag(0, least=0, most=MAX_SEED, help="First seed.")
    num_runs: int | None = flag(None, least=1, help="Seeds. Default: 1; with --suite its own.")
    hparam: tuple[tuple[str, Any], ...] = flag((), help="Hyper-parameter: [METHOD.]NAME=VALUE.")
    bases: Literal["stronger", "papers"] = flag(
        "stronger",
        help="Base networks of crowd layers and two-stage methods on datasets that have a stronger"
        " one than the papers'. Suites take the papers'.",
    )
    baseline: tuple[str, ...] = flag((), help="Methods to compare with, besides mv_lr and ds_lr.")
    table: Literal["md", "tex"] | None = flag(None, help="Format of the summary.")
    resume: bool = flag(False, help="Keeps finished runs and continues unfinished ones.")
    export: bool = flag(False, help="Also writes each fitted model as a SavedModel.")
    report: bool | None = flag(None, help="Writes report.html. Default: not with --suite.")
    curves: bool = flag(False, help="Writes the accuracy after each epoch to curves.csv.")
    jobs: int = flag(1, least=1, most=1024, help="Number of runs at the same time.")
    scheduler: str | None = flag(None, help="Dask scheduler whose workers make the runs.")
    device: str = flag("auto", help="auto, cpu, gpu, or one device such as gpu:1.")
    mixed_precision: bool = flag(False, help="Computes in bfloat16 with weights in float32.")
    distribute: Literal["none", "mirrored", "multi_worker"] = flag(
        "none",
        help="Trains on all devices of this machine, or on the processes that TF_CONFIG lists.",
    )
    threads: int = flag(1, least=1, most=1024, help="Threads per run; results depend on it.")
    checkpoint_seconds: float = flag(5.0, least=0, help="Least seconds between checkpoints.")
    dataset_option: tuple[tuple[str, Any], ...] = flag((), help="Option of a dataset's loader.")
    keep_annotations: float | None = flag(None, help="Share of annotations to keep, at random.")
    keep_one: bool = flag(False, help="Keeps one per instance (with --keep_annotations).")
    evaluation: Literal["split", "cv"] = flag(
        "split", help="The dataset's own split, or repeated stratified cross-validation."
    )
    folds: int = flag(5, least=2, most=10_000, help="Number of folds (with --evaluation=cv).")
    repeats: int = flag(1, least=1, most=10_000, help="Repeats (with --evaluation=cv).")
    tune: int | str = flag(0, parse=_tries, help="Settings to try before each run, or `grid`.")
    space: tuple[tuple[str, Any], ...] = flag((), parse=_space, help="For --tune: name=a,b,c.")
    tune_by: Literal["validation", "crowd"] = flag(
        "validation",
        help="Data that score the settings (with --tune): the validation split or annotations.",
    )
    encoder: str | None = flag(
        None,
        help="Network that makes features of texts or images: a folder (model.onnx,"
        " tokenizer.json), sentence-transformers:NAME, keras:NAME or keras:NAME:WEIGHTS. Default:"
        " TF-IDF of texts, pixels of images.",
    )

    @property
    def seeds(self) -> range:
        """The seeds of `--seed` and `--num_runs`."""
        return range(self.seed, self.seed + (self.num_runs or 1))

    @property
    def tables(self) -> dict[str, Path]:
        """The files of --dataset=table by the names of their flags."""
        files = {name: getattr(self, name) for name in TABLES}
        return {name: path for name, path in files.items() if path is not None}

    @property
    def layout(self) -> dict[str, Any]:
        """How the files of --dataset=table are read: the flags that are not at their default."""
        values = {name: getattr(self, name) for name in (*LAYOUT, *NAMES)}
        return {name: value for name, value in values.items() if value != DEFAULTS[name]}


DEFAULTS = {field.name: field.default for field in dataclasses.fields(Options)}


def parse(argv: Sequence[str]) -> Options:
    """Returns the checked options of a command line.

    Raises:
        UsageError: a flag that cannot be used; one line.
        HelpRequest: `--help` is among the arguments.
    """
    return check(parse_flags(Options, argv, "neucrowd run"))


def check(options: Options) -> Options:
    """Returns the options, with --gold among the hyper-parameters of --method=auto.

    Raises:
        UsageError: flags that cannot be used together, or that name no file or folder.
    """
    if options.list:
        return options
    for problem in _problems(options):
        raise UsageError(problem)
    if options.gold is None or "auto" not in options.method:
        return options
    others = (item for item in options.hparam if item[0] != "gold")
    return dataclasses.replace(options, hparam=(*others, ("gold", str(options.gold))))


def _problems(o: Options) -> Iterator[str]:
    """Yields what is wrong with the flags, in the order of importance."""
    changed = [name for name in DEFAULTS if getattr(o, name) != DEFAULTS[name]]
    tables = [name for name in changed if name in TABLES]
    if o.suite:
        yield from (
            f"--{name}: not with --suite, which sets it. Leave it out."
            for name in changed
            if name in SET_BY_SUITE
        )
    else:
        yield from (
            f"--{name} is missing: name at least one; --list shows them. --dataset=table is for"
            " your own files."
            for name in ("dataset", "method")
            if name not in changed
        )
    if o.seeds[-1] > MAX_SEED:
        yield f"--num_runs: seeds go up to {MAX_SEED}. Choose a smaller --seed or --num_runs."
    if o.distribute == "multi_worker":
        others = ("jobs", "scheduler", "suite", "tune", "curves", "export")
        yield from (
            f"--{name}: not with --distribute=multi_worker." for name in others if name in changed
        )
    if not re.fullmatch(r"auto|(cpu|gpu)(:\d+)?", o.device):
        yield f"--device={o.device}: must be auto, cpu, gpu, cpu:N or gpu:N"
    if o.scheduler is not None and o.jobs > 1:
        yield "--jobs: not with --scheduler, each of whose workers makes one run at a time."
    for name, needed in (("space", "tune"), ("rows", "suite")):
        if getattr(o, name) and not getattr(o, needed):
            yield f"--{name}: only with --{needed}."
    if o.keep_annotations is not None and not 0 < o.keep_annotations <= 1:
        yield f"--keep_annotations={o.keep_annotations}: must be above 0 and at most 1"
    if "table" in o.dataset:
        yield from o.problems()
    elif tables and not o.suite:
        yield f"--{tables[0]}: only with --dataset=table."
    folders = ("data_dir", "images")
    for name in ("gold", *tables, *folders):
        path = getattr(o, name)
        if path is None or (name == "annotations" and path.is_dir()):  # SageMaker's export
            continue
        if not (path.is_dir() if name in folders else path.is_file()):
            kind = "folder" if name in folders else "file"
            yield f"--{name}={path}: {'not a' if path.exists() else 'no such'} {kind}"
