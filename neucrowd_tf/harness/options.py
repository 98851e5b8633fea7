"""The command's flags: each stands once, its default as a field of `Options`, its help in `HELP`
(or, where other commands have it too, in `neucrowd_tf.io.tables.flags`), its limits in `LIMITS`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from absl import flags

from neucrowd_tf.io.run_files import TABLES as TABLE_FLAGS
from neucrowd_tf.io.tables.flags import ANNOTATIONS, MODEL_ANNOTATOR, TABLE_OPTIONS
from neucrowd_tf.io.tables.format import TableFormat

MAX_SEED = 2**31 - 1
# How the tables are written, as the loader takes them; given only where they are not the default.
LAYOUT_FLAGS = (*("image_size", "max_pixels", "unmatched", "ignore_columns"), *TABLE_OPTIONS)
# A suite's tables would not be what they say they are if a flag changed these.
SET_BY_SUITE = (
    *("dataset", "method", "seed", "data_seed", "weights", "hparam", "keep_annotations"),
    *("target", "gold"),
    *("keep_one", "dataset_option", "curves", "evaluation", "folds", "repeats", "tune", "tune_by"),
    *(*TABLE_FLAGS, *LAYOUT_FLAGS),
)


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
    question: str | None = None
    first: bool = False
    ignore_columns: str | None = None
    max_pixels: int | None = None
    jobs: int = 1
    scheduler: str | None = None
    evaluation: str = "split"
    folds: int = 5
    repeats: int = 1
    tune: int = 0
    tune_by: str = "validation"
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

    @property
    def table_format(self) -> TableFormat:
        """What of `layout` every command says of a table of labels."""
        return TableFormat.of(**{name: getattr(self, name) for name in TABLE_OPTIONS})


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
truth: --dataset=table: CSV with columns task, label; for evaluation only.
test_features: --dataset=table: features of the test rows.
test_texts: --dataset=table: texts of the test rows.
test_truth: --dataset=table: labels of the test rows.
unmatched: --dataset=table: what becomes of labels, also true ones, of tasks that --features does
  not have.
ignore_columns: --dataset=table: columns of --features that are none, separated by commas.
max_pixels: --images: the most pixels of one; 67 million by default.
jobs: How many runs to train at once, each in a process of its own.
scheduler: The address of a Dask scheduler (tcp://host:8786), whose workers make the runs and share
  the folders; in place of --jobs.
evaluation: The dataset's own split, or repeated stratified cross-validation.
folds: Folds of --evaluation=cv.
repeats: Repeats of --evaluation=cv.
tune: Try so many hyper-parameter settings on validation data before each run.
tune_by: --tune: what settings are scored against: the validation split where there is one, or
  held-out annotations of the crowd even so.
threads: Threads of each run; part of what makes results repeat bit for bit.
checkpoint_seconds: The least time between two checkpoints.
"""


def _flags(kind: str) -> tuple[str, ...]:
    """Returns the flags whose type begins so."""
    return tuple(f.name for f in dataclasses.fields(Options) if str(f.type).startswith(kind))


PATHS, NAME_LISTS, PAIRS = map(_flags, ("Path", "tuple[str", "tuple[tuple"))
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
    "tune_by": ("validation", "crowd"),
    "target": ("as_trained", "balanced"),
}
_KINDS = {"bool": "boolean", "int": "integer", "float": "float", "str": "string", "Path": "string"}


def _define() -> tuple[str, ...]:
    """Defines absl's flags from the fields, and returns their names."""
    texts = dict(line.split(": ", 1) for line in HELP.replace("\n  ", " ").strip().splitlines())
    shared = {"annotations": ANNOTATIONS, "model_annotator": MODEL_ANNOTATOR, **TABLE_OPTIONS}
    texts |= {name: f"--dataset=table: {text}." for name, text in shared.items()}
    for field in dataclasses.fields(Options):
        default, limits = field.default, LIMITS.get(field.name, ())
        kind = _KINDS.get(str(field.type).partition(" ")[0], "multi_string")
        more: dict[str, Any] = {}
        if limits and isinstance(limits[0], str):
            kind, more = "enum", {"enum_values": [*limits]}
        elif limits:
            more = {"lower_bound": limits[0], "upper_bound": limits[1]}
        elif field.name in NAME_LISTS:
            kind = "list"
        if isinstance(default, (tuple, Path)):
            default = str(default) if isinstance(default, Path) else [*default]
        getattr(flags, f"DEFINE_{kind}")(field.name, default, help=texts[field.name], **more)
    return tuple(texts)


NAMES = _define()
