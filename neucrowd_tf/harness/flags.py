"""The command's flags, and what they say as one checked value."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import difflib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import flags

from neucrowd_tf.errors import UsageError

MAX_SEED = 2**31 - 1
TABLE_FLAGS = ("features", "images", "annotations", "truth", "test_features", "test_truth")
# A suite's tables would not be what they say they are if a flag changed these.
SET_BY_SUITE = (
    *(
        "dataset",
        "method",
        "seed",
        "data_seed",
        "weights",
        "hparam",
        "keep_annotations",
        "keep_one",
        "dataset_option",
        "curves",
    ),
    *("evaluation", "folds", "repeats", "tune", *TABLE_FLAGS, "classes", "image_size"),
)
# One thread: the models are small, and two threads that wait for each other cost three times the
# time on a busy machine.
DEFAULT_THREADS = 1

_METHOD_FLAGS: list[flags.FlagHolder[Any]] = [
    flags.DEFINE_list("dataset", [], "Datasets by name, separated by commas; see --list."),
    flags.DEFINE_list("method", [], "Methods by name, separated by commas; see --list."),
    flags.DEFINE_list(
        "suite",
        [],
        "Tables and figures of the papers by name, separated by commas; `all`, or `smoke`; see"
        " --list.",
    ),
    flags.DEFINE_string(
        "data_dir",
        None,
        "Folder with a copy of the published data; without it files are downloaded once into a"
        " cache.",
    ),
    flags.DEFINE_string(
        "output_dir", "runs", "Folder for results.csv, summary.csv and a folder a run."
    ),
    flags.DEFINE_integer("seed", 0, "The first seed.", lower_bound=0, upper_bound=MAX_SEED),
    flags.DEFINE_integer(
        "num_runs",
        None,
        "How many seeds: seed, seed + 1, ...; 1 by default. --suite: at most so many of those its"
        " table has.",
        lower_bound=1,
    ),
    flags.DEFINE_multi_string(
        "hparam",
        [],
        "A hyper-parameter as name=value, or method.name=value for one of several methods; may be"
        " repeated.",
    ),
    flags.DEFINE_string(
        "weights",
        None,
        "Keras weights (.weights.h5 or .keras) that the base network starts from; the same as"
        " --hparam weights=.",
    ),
    flags.DEFINE_boolean("resume", False, "Skip finished runs and go on with half-finished ones."),
    flags.DEFINE_boolean("export", False, "Also write each fitted model as a SavedModel."),
    flags.DEFINE_boolean(
        "report",
        None,
        "Write report.html into each run's folder; by default yes, but not for the runs of"
        " --suite.",
    ),
    flags.DEFINE_boolean("list", False, "List methods and datasets and stop."),
    flags.DEFINE_string("device", "auto", "auto, cpu, gpu, or one device such as gpu:1."),
    flags.DEFINE_boolean("mixed_precision", False, "Compute in bfloat16, keep weights in float32."),
    flags.DEFINE_enum(
        "distribute",
        "none",
        ["none", "mirrored", "multi_worker"],
        "How to spread training over devices.",
    ),
    flags.DEFINE_integer(
        "logical_cpus",
        1,
        "Split the CPU into so many devices, to try --distribute=mirrored without GPUs.",
        lower_bound=1,
        upper_bound=64,
    ),
    flags.DEFINE_integer(
        "data_seed",
        None,
        "Draws simulated crowds and splits; by default each run's own.",
        lower_bound=0,
        upper_bound=MAX_SEED,
    ),
    flags.DEFINE_float(
        "keep_annotations",
        None,
        "The share of annotations that is kept, drawn with the run's seed.",
    ),
    flags.DEFINE_boolean(
        "keep_one", False, "--keep_annotations: every instance keeps at least one."
    ),
    flags.DEFINE_multi_string(
        "dataset_option",
        [],
        "An option of a dataset's loader as name=value (rate=0.3 of usps_lt); may be repeated.",
    ),
    flags.DEFINE_boolean(
        "curves",
        False,
        "Also write the accuracy on training and test rows after each epoch to curves.csv.",
    ),
    flags.DEFINE_string(
        "features",
        None,
        "--dataset=table: CSV (or Parquet) with a column `task`, then numbers; or an NPY array with"
        " a row a task.",
    ),
    flags.DEFINE_string(
        "images",
        None,
        "--dataset=table: in place of --features, a folder of images whose names are the tasks.",
    ),
    flags.DEFINE_integer(
        "image_size",
        None,
        "--images: scale each to so many pixels high and wide.",
        lower_bound=1,
        upper_bound=4096,
    ),
    flags.DEFINE_string(
        "annotations", None, "--dataset=table: CSV with columns task, worker, label."
    ),
    flags.DEFINE_string(
        "truth", None, "--dataset=table: CSV with columns task, label; for evaluation only."
    ),
    flags.DEFINE_string("test_features", None, "--dataset=table: features of the test rows."),
    flags.DEFINE_string("test_truth", None, "--dataset=table: labels of the test rows."),
    flags.DEFINE_string(
        "classes",
        None,
        "--dataset=table: all classes in their order, separated by commas; by default those in use,"
        " sorted.",
    ),
    flags.DEFINE_integer(
        "jobs",
        1,
        "How many runs to train at once, each in a process of its own.",
        lower_bound=1,
        upper_bound=1024,
    ),
    flags.DEFINE_enum(
        "evaluation",
        "split",
        ["split", "cv"],
        "The dataset's own split, or repeated stratified cross-validation.",
    ),
    flags.DEFINE_integer("folds", 5, "Folds of --evaluation=cv.", lower_bound=2),
    flags.DEFINE_integer("repeats", 1, "Repeats of --evaluation=cv.", lower_bound=1),
    flags.DEFINE_integer(
        "tune",
        0,
        "Try so many hyper-parameter settings on validation data before each run.",
        lower_bound=0,
    ),
    flags.DEFINE_integer(
        "threads",
        DEFAULT_THREADS,
        "Threads of each run; part of what makes results repeat bit for bit.",
        lower_bound=1,
    ),
    flags.DEFINE_float(
        "checkpoint_seconds", 5.0, "The least time between two checkpoints.", lower_bound=0.0
    ),
]
NAMES = tuple(holder.name for holder in _METHOD_FLAGS)


@dataclasses.dataclass(frozen=True)
class Options:
    """What the flags say; each field is the flag of its name."""

    dataset: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    suite: tuple[str, ...] = ()
    data_dir: Path | None = None
    output_dir: Path = Path("runs")
    seed: int = 0
    num_runs: int | None = None
    hparam: tuple[tuple[str, Any], ...] = ()
    weights: str | None = None
    resume: bool = False
    export: bool = False
    report: bool | None = None
    list: bool = False
    device: str = "auto"
    mixed_precision: bool = False
    distribute: str = "none"
    logical_cpus: int = 1
    data_seed: int | None = None
    keep_annotations: float | None = None
    keep_one: bool = False
    dataset_option: tuple[tuple[str, Any], ...] = ()
    curves: bool = False
    features: Path | None = None
    images: Path | None = None
    image_size: int | None = None
    annotations: Path | None = None
    truth: Path | None = None
    test_features: Path | None = None
    test_truth: Path | None = None
    classes: str | None = None
    jobs: int = 1
    evaluation: str = "split"
    folds: int = 5
    repeats: int = 1
    tune: int = 0
    threads: int = DEFAULT_THREADS
    checkpoint_seconds: float = 5.0

    @property
    def seeds(self) -> range:
        """The seeds of `--seed` and `--num_runs`."""
        return range(self.seed, self.seed + (self.num_runs or 1))

    @property
    def table(self) -> dict[str, Path]:
        """The files of --dataset=table that were given."""
        given = {name: getattr(self, name) for name in TABLE_FLAGS}
        return {name: path for name, path in given.items() if path is not None}

    def to_json(self) -> str:
        """Returns the options as text, for a worker process."""
        return json.dumps(dataclasses.asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Options:
        """Returns what `to_json` wrote."""
        values = json.loads(text)
        for name in ("data_dir", "output_dir", *TABLE_FLAGS):
            values[name] = None if values[name] is None else Path(values[name])
        for name in ("dataset", "method", "suite"):
            values[name] = tuple(values[name])
        for name in ("hparam", "dataset_option"):
            values[name] = tuple((key, value) for key, value in values[name])
        return cls(**values)


def parse_value(text: str) -> Any:
    """Returns a hyper-parameter's value: a literal of JSON or Python where it is one, else the
    text.
    """
    for reader in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError):
            return reader(text)
    return text


def _named_values(flag: str, items: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    found: dict[str, Any] = {}
    for item in items:
        name, sign, value = item.partition("=")
        if not sign or not re.fullmatch(r"(\w+\.)?[A-Za-z]\w*", name.strip()):
            raise UsageError(f"--{flag}: expected name=value, received {item!r}")
        found[name.strip()] = parse_value(value.strip())
    return tuple(found.items())


def _paths(values: dict[str, Any]) -> None:
    for name in ("data_dir", "output_dir", *TABLE_FLAGS):
        text = values[name]
        if text is not None:
            if not text:
                raise UsageError(f"--{name}: expected a path, received nothing")
            values[name] = Path(os.path.expanduser(text))


def check(options: Options) -> Options:
    """Returns the options when they can be used together.

    Raises:
        UsageError: what cannot be, and what was expected.
    """
    if options.list:
        return options
    for name in SET_BY_SUITE if options.suite else ():
        if getattr(options, name) != getattr(Options, name):
            raise UsageError(
                f"--{name}: expected without --suite, which sets its own, received both"
            )
    for name in ("dataset", "method") if not options.suite else ():
        if not getattr(options, name):
            raise UsageError(
                f"--{name}: expected at least one name, received none (--list shows them)"
            )
    if options.seeds[-1] > MAX_SEED:
        raise UsageError(
            f"--num_runs: expected seeds up to {MAX_SEED}, received {options.seed} +"
            f" {options.num_runs} - 1"
        )
    if options.distribute == "multi_worker":
        raise UsageError(
            "--distribute: expected none or mirrored, received multi_worker, which is not"
            " supported yet"
        )
    if not re.fullmatch(r"auto|(cpu|gpu)(:\d+)?", options.device):
        raise UsageError(
            f"--device: expected auto, cpu, gpu, cpu:<n> or gpu:<n>, received {options.device!r}"
        )
    if options.weights is not None and not Path(options.weights).is_file():
        raise UsageError(
            f"--weights: expected a file of Keras weights, received {options.weights!r}"
        )
    if options.keep_annotations is not None and not 0 < options.keep_annotations <= 1:
        raise UsageError(
            "--keep_annotations: expected a share above 0 and up to 1, received"
            f" {options.keep_annotations!r}"
        )
    if not options.checkpoint_seconds < float("inf"):
        raise UsageError(
            "--checkpoint_seconds: expected a number of seconds, received"
            f" {options.checkpoint_seconds!r}"
        )
    if "table" in options.dataset:
        if options.features is None and options.images is None:
            raise UsageError("--features: --dataset=table needs it (or --images), received none")
        if options.features is not None and options.images is not None:
            raise UsageError("--images: expected in place of --features, received both")
        if options.annotations is None:
            raise UsageError("--annotations: --dataset=table needs it, received none")
    elif options.classes is not None:
        raise UsageError(
            "--classes: expected together with --dataset=table only, received"
            f" --dataset={','.join(options.dataset)}"
        )
    elif options.table:
        names = ",".join(options.dataset)
        raise UsageError(
            f"--{next(iter(options.table))}: expected together with --dataset=table only, received"
            f" --dataset={names}"
        )
    if options.image_size is not None and options.images is None:
        raise UsageError(
            f"--image_size: expected together with --images only, received {options.image_size}"
            " without it"
        )
    for name, path in options.table.items():
        if name == "images" and not path.is_dir():
            raise UsageError(
                f"--images: expected a folder of images, received {path}, which"
                f" {'is a file' if path.exists() else 'does not exist'}"
            )
        if name != "images" and not path.is_file():
            raise UsageError(
                f"--{name}: expected a CSV file, received {path}, which"
                f" {'is a folder' if path.is_dir() else 'does not exist'}"
            )
    folder = options.data_dir
    if folder is not None and not folder.is_dir():
        raise UsageError(
            f"--data_dir: expected a folder, received {folder}, which"
            f" {'is a file' if folder.exists() else 'does not exist'}"
        )
    for name in ("folds", "repeats"):
        if options.evaluation == "split" and getattr(options, name) != getattr(Options, name):
            raise UsageError(
                f"--{name}: expected together with --evaluation=cv, received"
                f" {getattr(options, name)} with --evaluation=split"
            )
    if options.keep_one and options.keep_annotations is None:
        raise UsageError("--keep_one: expected together with --keep_annotations, received it alone")
    return options


def _one_line(error: Exception, known: Sequence[str]) -> str:
    """Returns absl's message on one line, with the closest flag where the name is unknown."""
    text = " ".join(str(error).split())
    unknown = re.search(r"Unknown command line flag '([^']+)'", text)
    if unknown:
        close = difflib.get_close_matches(unknown[1], known, n=1)
        return f"--{unknown[1]}: expected a flag of this command, received an unknown one" + (
            f"; did you mean --{close[0]}?" if close else ""
        )
    return text


def parse(argv: Sequence[str], values: flags.FlagValues = flags.FLAGS) -> Options:
    """Returns what a command line (its first item is the program) says.

    Raises:
        UsageError: one line that names the flag, what was expected and what was received.
    """
    try:
        rest = values(list(argv))
    except flags.Error as error:
        raise UsageError(_one_line(error, NAMES)) from None
    except OSError as error:
        raise UsageError(f"--flagfile: {error.strerror}: {error.filename}") from None
    if len(rest) > 1:
        raise UsageError(f"expected flags only, received {rest[1]!r}")
    found = {name: values[name].value for name in NAMES}
    for name in ("dataset", "method", "suite"):
        found[name] = tuple(dict.fromkeys(item.strip() for item in found[name] if item.strip()))
    for name in ("hparam", "dataset_option"):
        found[name] = _named_values(name, found[name] or [])
    if found["weights"] is not None:
        found["weights"] = os.path.expanduser(found["weights"])
        found["hparam"] = (
            *(item for item in found["hparam"] if item[0] != "weights"),
            ("weights", found["weights"]),
        )
    _paths(found)
    return check(Options(**found))
