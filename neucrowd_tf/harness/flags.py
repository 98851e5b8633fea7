"""The command's flags, and what they say as one checked value.

Each flag stands once: its default is that of its field of `Options`, its help stands in `HELP`, its
limits in `LIMITS`. What flags cannot be together is a table, `rules`.
"""

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
TABLE_FLAGS = (
    *("features", "images", "texts", "annotations", "truth"),
    *("test_features", "test_texts", "test_truth"),
)
# How the tables are written, as the loader takes them; given only where they are not the default.
LAYOUT_FLAGS = (
    *("image_size", "max_pixels", "classes", "task_column", "worker_column", "label_column"),
    *("separator", "unmatched", "missing", "exact_names", "ignore_columns"),
)
# A suite's tables would not be what they say they are if a flag changed these.
SET_BY_SUITE = (
    *("dataset", "method", "seed", "data_seed", "weights", "hparam", "keep_annotations"),
    *("target", "gold"),
    *("keep_one", "dataset_option", "curves", "evaluation", "folds", "repeats", "tune"),
    *(*TABLE_FLAGS, *LAYOUT_FLAGS),
)
_PATHS = ("data_dir", "output_dir", *TABLE_FLAGS)
_NAMES, _PAIRS = ("dataset", "method", "suite", "model_annotator"), ("hparam", "dataset_option")


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
    target: str | None = None
    gold: str | None = None
    resume: bool = False
    export: bool = False
    refit_all: bool = False
    model_annotator: tuple[str, ...] = ()
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
    texts: Path | None = None
    annotations: Path | None = None
    truth: Path | None = None
    test_features: Path | None = None
    test_texts: Path | None = None
    test_truth: Path | None = None
    classes: str | None = None
    task_column: str | None = None
    worker_column: str | None = None
    label_column: str | None = None
    separator: str | None = None
    unmatched: str = "error"
    missing: str | None = None
    exact_names: bool = False
    ignore_columns: str | None = None
    max_pixels: int | None = None
    jobs: int = 1
    scheduler: str | None = None
    evaluation: str = "split"
    folds: int = 5
    repeats: int = 1
    tune: int = 0
    # One thread: the models are small, and two threads that wait for each other cost three times
    # the time on a busy machine.
    threads: int = 1
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

    @property
    def layout(self) -> dict[str, Any]:
        """How the tables of --dataset=table are written, where that was said."""
        given = {name: getattr(self, name) for name in LAYOUT_FLAGS}
        return {name: value for name, value in given.items() if value != getattr(Options, name)}


HELP = """
dataset: Datasets by name, separated by commas; see --list.
method: Methods by name, separated by commas; see --list.
suite: Tables and figures of the papers by name, separated by commas; `all`, or `smoke`; see --list.
data_dir: Folder with a copy of the published data; without it files are downloaded once into a
  cache.
output_dir: Folder for results.csv, summary.csv and a folder a run.
seed: The first seed.
num_runs: How many seeds: seed, seed + 1, ...; 1 by default. --suite: at most so many of those its
  table has.
hparam: A hyper-parameter as name=value, or method.name=value for one of several methods; may be
  repeated.
weights: Keras weights (.weights.h5 or .keras) that the base network starts from; the same as
  --hparam weights=.
target: auto: whether classes will be met as often as in training (as_trained, the default) or
  equally often (balanced); the same as --hparam target=.
gold: auto: CSV with columns task, label: true labels of some training tasks, which help to choose;
  the same as --hparam gold=.
resume: Skip finished runs and go on with half-finished ones.
export: Also write each fitted model as a SavedModel.
refit_all: --export: fit the method (of auto: the recommended one) once more, on every annotated
  row, and export that.
model_annotator: --dataset=table: annotators that are models: labels like others', but counted apart
  in the statistics of agreement.
report: Write report.html into each run's folder; by default yes, but not for the runs of --suite.
list: List methods and datasets and stop.
device: auto, cpu, gpu, or one device such as gpu:1.
mixed_precision: Compute in bfloat16, keep weights in float32.
distribute: How to spread training: over this machine's devices (mirrored), or over the processes
  that TF_CONFIG lists, each of which is given this command (multi_worker).
logical_cpus: Split the CPU into so many devices, to try --distribute=mirrored without GPUs.
data_seed: Draws simulated crowds and splits; by default each run's own.
keep_annotations: The share of annotations that is kept, drawn with the run's seed.
keep_one: --keep_annotations: every instance keeps at least one.
dataset_option: An option of a dataset's loader as name=value (rate=0.3 of usps_lt); may be
  repeated.
curves: Also write the accuracy on training and test rows after each epoch to curves.csv.
features: --dataset=table: CSV (or Parquet) with a column `task`, then numbers; or an NPY array with
  a row a task.
images: --dataset=table: in place of --features, a folder of images whose names are the tasks.
image_size: --images: scale each to so many pixels high and wide.
texts: --dataset=table: in place of --features, a CSV with columns task, text.
annotations: --dataset=table: CSV with columns task, worker, label.
truth: --dataset=table: CSV with columns task, label; for evaluation only.
test_features: --dataset=table: features of the test rows.
test_texts: --dataset=table: texts of the test rows.
test_truth: --dataset=table: labels of the test rows.
classes: --dataset=table: all classes in their order, separated by commas; by default those in use,
  sorted.
task_column: --dataset=table: the name of the column of tasks.
worker_column: --dataset=table: the name of the column of annotators.
label_column: --dataset=table: the name of the column of labels.
separator: --dataset=table: the sign between the columns of CSVs, or tab.
unmatched: --dataset=table: what becomes of labels of tasks that --features does not have.
missing: --dataset=table: what stands for a missing label, separated by commas, as NA,-1; empty
  where no text does.
exact_names: --dataset=table: names that differ in case, spaces or a number's spelling alone are
  others.
ignore_columns: --dataset=table: columns of --features that are none, separated by commas.
max_pixels: --images: the most pixels of one; 67 million by default.
jobs: How many runs to train at once, each in a process of its own.
scheduler: The address of a Dask scheduler (tcp://host:8786), whose workers make the runs and share
  the folders; in place of --jobs.
evaluation: The dataset's own split, or repeated stratified cross-validation.
folds: Folds of --evaluation=cv.
repeats: Repeats of --evaluation=cv.
tune: Try so many hyper-parameter settings on validation data before each run.
threads: Threads of each run; part of what makes results repeat bit for bit.
checkpoint_seconds: The least time between two checkpoints.
"""
# The least and the largest number, or the words that a flag takes.
LIMITS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("seed", "data_seed"), (0, MAX_SEED)),
    "num_runs": (1, 100_000),
    "repeats": (1, 10_000),
    "threads": (1, 1024),
    "folds": (2, 10_000),
    "tune": (0, 1_000_000),
    "max_pixels": (1, None),
    "unmatched": ("error", "drop"),
    "checkpoint_seconds": (0.0, None),
    "jobs": (1, 1024),
    "logical_cpus": (1, 64),
    "image_size": (1, 4096),
    "distribute": ("none", "mirrored", "multi_worker"),
    "evaluation": ("split", "cv"),
    "target": ("as_trained", "balanced"),
}
_KINDS = {"bool": "boolean", "int": "integer", "float": "float", "str": "string", "Path": "string"}


def _define() -> tuple[str, ...]:
    """Defines absl's flags from the fields, and returns their names."""
    texts = dict(line.split(": ", 1) for line in HELP.replace("\n  ", " ").strip().splitlines())
    for field in dataclasses.fields(Options):
        default, limits = field.default, LIMITS.get(field.name, ())
        kind = _KINDS.get(str(field.type).partition(" ")[0], "multi_string")
        more: dict[str, Any] = {}
        if limits and isinstance(limits[0], str):
            kind, more = "enum", {"enum_values": [*limits]}
        elif limits:
            more = {"lower_bound": limits[0], "upper_bound": limits[1]}
        elif field.name in _NAMES:
            kind = "list"
        if isinstance(default, (tuple, Path)):
            default = str(default) if isinstance(default, Path) else [*default]
        getattr(flags, f"DEFINE_{kind}")(field.name, default, help=texts[field.name], **more)
    return tuple(texts)


NAMES = _define()


# --------------------------------------------------------------------- what cannot be together


def _state(path: Path) -> str:
    return "is a folder" if path.is_dir() else "is a file" if path.exists() else "does not exist"


def _is_csv(path: Path) -> bool:
    return path.suffix not in (".npy", ".parquet", ".pq", ".json") and not path.is_dir()


def rules(o: Options) -> list[tuple[str, object, str]]:
    """Returns a flag, whether it cannot be so with the others, and what to say then."""
    changed = {name for name in NAMES if getattr(o, name) != getattr(Options, name)}
    table, files = "table" in o.dataset, o.table
    given = ",".join(o.dataset)
    no_table = f"expected together with --dataset=table only, received --dataset={given}"
    alone = "expected without --suite, which sets its own, received both"
    none = "expected at least one name, received none (--list shows them)"
    cv = "expected together with --evaluation=cv, received {} with --evaluation=split"
    csv = "expected a CSV file, received {}, which {}"
    share, pictures = o.keep_annotations, ("image_size", "max_pixels")
    apart = [
        name for name in ("model_annotator", *TABLE_FLAGS, *LAYOUT_FLAGS) if name not in pictures
    ]
    # What says where a table's instances are; one is expected.
    sources = [name for name in ("features", "images", "texts") if name in files]
    last = f"{o.seed} + {o.num_runs} - 1"
    together = o.distribute == "multi_worker"
    return [
        *((name, o.suite and name in changed, alone) for name in SET_BY_SUITE),
        *((name, not o.suite and not getattr(o, name), none) for name in ("dataset", "method")),
        ("num_runs", o.seeds[-1] > MAX_SEED, f"expected seeds up to {MAX_SEED}, received {last}"),
        *(
            (name, together and name in changed, "expected without --distribute=multi_worker")
            for name in ("jobs", "scheduler", "suite", "tune", "curves", "export", "logical_cpus")
        ),
        (
            "device",
            not re.fullmatch(r"auto|(cpu|gpu)(:\d+)?", o.device),
            f"expected auto, cpu, gpu, cpu:<n> or gpu:<n>, received {o.device!r}",
        ),
        (
            "scheduler",
            o.scheduler is not None and o.jobs > 1,
            "expected without --jobs (each of its workers makes a run at a time), received both",
        ),
        (
            "weights",
            o.weights is not None and not Path(o.weights).is_file(),
            f"expected a file of Keras weights, received {o.weights!r}",
        ),
        (
            "gold",
            o.gold is not None and not Path(o.gold).is_file(),
            f"expected a CSV file, received {o.gold!r}",
        ),
        (
            "keep_annotations",
            share is not None and not 0 < share <= 1,
            f"expected a share above 0 and up to 1, received {share!r}",
        ),
        (
            "checkpoint_seconds",
            not o.checkpoint_seconds < float("inf"),
            f"expected a number of seconds, received {o.checkpoint_seconds!r}",
        ),
        (
            "features",
            table and not sources,
            "--dataset=table needs it (or --images, or --texts), received none",
        ),
        *(
            (name, True, f"expected in place of --{sources[0]}, received both")
            for name in sources[1:2]
        ),
        (
            "refit_all",
            o.refit_all and (not o.export or o.evaluation == "cv"),
            "expected together with --export, and without --evaluation=cv",
        ),
        (
            "annotations",
            table and "annotations" not in files,
            "--dataset=table needs it, received none",
        ),
        *((name, not table and name in changed, no_table) for name in apart),
        *(
            (
                name,
                name in changed and o.images is None,
                f"expected together with --images only, received {getattr(o, name)} without it",
            )
            for name in pictures
        ),
        (
            "ignore_columns",
            o.ignore_columns is not None and o.features is None,
            "expected together with --features only, received it without",
        ),
        (
            "separator",
            o.separator is not None and not any(map(_is_csv, files.values())),
            "expected together with a CSV, received it with none",
        ),
        (
            "images",
            o.images is not None and not o.images.is_dir(),
            f"expected a folder of images, received {o.images}, which {_state(o.images or Path())}",
        ),
        *(
            (name, name != "images" and not path.is_file(), csv.format(path, _state(path)))
            for name, path in files.items()
        ),
        (
            "data_dir",
            o.data_dir is not None and not o.data_dir.is_dir(),
            f"expected a folder, received {o.data_dir}, which {_state(o.data_dir or Path())}",
        ),
        *(
            (name, o.evaluation == "split" and name in changed, cv.format(getattr(o, name)))
            for name in ("folds", "repeats")
        ),
        (
            "keep_one",
            o.keep_one and share is None,
            "expected together with --keep_annotations, received it alone",
        ),
    ]


def check(options: Options) -> Options:
    """Returns the options when they can be used together.

    Raises:
        UsageError: what cannot be, and what was expected.
    """
    for name, broken, text in () if options.list else rules(options):
        if broken:
            raise UsageError(f"--{name}: {text}")
    return options


# --------------------------------------------------------------------- from a command line


def parse_value(text: str) -> Any:
    """Returns a hyper-parameter's value: a literal of JSON or Python where it is one, else the
    text.
    """
    for reader in (json.loads, ast.literal_eval):
        # What is nested too deeply, or has thousands of digits, is no literal either.
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return reader(text)
    return text


def _named_values(flag: str, items: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    values: dict[str, Any] = {}
    for item in items:
        name, sign, value = item.partition("=")
        if not sign or not re.fullmatch(r"(\w+\.)?[A-Za-z]\w*", name.strip()):
            raise UsageError(f"--{flag}: expected name=value, received {item!r}")
        values[name.strip()] = parse_value(value.strip())
    return tuple(values.items())


def _path(flag: str, text: str | None) -> Path | None:
    if text == "":
        raise UsageError(f"--{flag}: expected a path, received nothing")
    if text is not None and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UsageError(f"--{flag}: expected a path in UTF-8, received {text!a}")
    return None if text is None else Path(os.path.expanduser(text))


# What absl says of a value, and how this project says it.
_ABSL = (
    (
        r"flag --(?P<flag>\w+)=.*?: (?P<value>.*) is not (?P<kind>an? .*)",
        "{kind}, received {value}",
    ),
    (
        r"flag --(?P<flag>\w+)=(?P<value>.*): value should be one of <(?P<names>.*)>",
        "one of {names}, received {value!r}",
    ),
    (r"Missing value for flag --(?P<flag>\w+)", "a value, received none"),
)


def _one_line(error: Exception) -> str:
    """Returns absl's message on one line, with the closest flag where the name is unknown."""
    text = " ".join(str(error).split())
    unknown = re.search(r"Unknown command line flag '([^']+)'", text)
    if unknown:
        close = difflib.get_close_matches(unknown[1], NAMES, n=1)
        hint = f"; did you mean --{close[0]}?" if close else ""
        return f"--{unknown[1]}: expected a flag of this command, received an unknown one{hint}"
    for pattern, expected in _ABSL:
        if found := re.fullmatch(pattern, text):
            return f"--{found['flag']}: expected {expected.format(**found.groupdict())}"
    return text


def parse(argv: Sequence[str], values: flags.FlagValues = flags.FLAGS) -> Options:
    """Returns what a command line (its first item is the program) says.

    Raises:
        UsageError: one line that names the flag, what was expected and what was received.
    """
    try:
        rest = values(list(argv))
    except flags.Error as error:
        raise UsageError(_one_line(error)) from None
    except OSError as error:
        raise UsageError(f"--flagfile: {error.strerror}: {error.filename}") from None
    if len(rest) > 1:
        raise UsageError(f"expected flags only, received {rest[1]!r}")
    given = {name: values[name].value for name in NAMES}
    for name in _NAMES:
        given[name] = tuple(dict.fromkeys(item.strip() for item in given[name] if item.strip()))
    for name in _PAIRS:
        given[name] = _named_values(name, given[name] or [])
    for name in ("weights", "target", "gold"):
        if given[name] is not None:
            given[name] = os.path.expanduser(given[name])
            others = (item for item in given["hparam"] if item[0] != name)
            given["hparam"] = (*others, (name, given[name]))
    given |= {name: _path(name, given[name]) for name in _PATHS}
    try:
        return check(Options(**given))
    except OSError as error:  # a path that is too long, say
        reason = error.strerror or error
        raise UsageError(f"expected paths that can be looked up, received one: {reason}") from None
