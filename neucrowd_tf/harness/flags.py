"""The command's flags, and what they say as one checked value.

Each flag stands once, as a field of `Options` with its default, its help and its limits; what flags
cannot be together is a table, `RULES`.
"""

# ruff: noqa: RUF009 (what is called there makes a field)
from __future__ import annotations

import ast
import contextlib
import dataclasses
import difflib
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from absl import flags

from neucrowd_tf.errors import UsageError

MAX_SEED = 2**31 - 1
TABLE_FLAGS = (
    *("features", "images", "texts", "annotations", "truth"),
    *("test_features", "test_texts", "test_truth"),
)
# A suite's tables would not be what they say they are if a flag changed these.
SET_BY_SUITE = (
    *("dataset", "method", "seed", "data_seed", "weights", "hparam", "keep_annotations"),
    *("keep_one", "dataset_option", "curves", "evaluation", "folds", "repeats", "tune"),
    *(*TABLE_FLAGS, "classes", "image_size"),
)
_PATHS = ("data_dir", "output_dir", *TABLE_FLAGS)
_NAMES, _PAIRS = ("dataset", "method", "suite", "model_annotator"), ("hparam", "dataset_option")


def _flag(kind: str, default: Any, text: str, **limits: Any) -> Any:
    """Returns a field of `Options`; `kind` and `limits` are those of absl's `DEFINE_<kind>`."""
    return dataclasses.field(default=default, metadata={"kind": kind, "help": text, **limits})


@dataclasses.dataclass(frozen=True)
class Options:
    """What the flags say; each field is the flag of its name."""

    dataset: tuple[str, ...] = _flag(
        "list", (), "Datasets by name, separated by commas; see --list."
    )
    method: tuple[str, ...] = _flag("list", (), "Methods by name, separated by commas; see --list.")
    suite: tuple[str, ...] = _flag(
        "list",
        (),
        "Tables and figures of the papers by name, separated by commas; `all`, or `smoke`; see"
        " --list.",
    )
    data_dir: Path | None = _flag(
        "string",
        None,
        "Folder with a copy of the published data; without it files are downloaded once into a"
        " cache.",
    )
    output_dir: Path = _flag(
        "string", Path("runs"), "Folder for results.csv, summary.csv and a folder a run."
    )
    seed: int = _flag("integer", 0, "The first seed.", lower_bound=0, upper_bound=MAX_SEED)
    num_runs: int | None = _flag(
        "integer",
        None,
        "How many seeds: seed, seed + 1, ...; 1 by default. --suite: at most so many of those its"
        " table has.",
        lower_bound=1,
    )
    hparam: tuple[tuple[str, Any], ...] = _flag(
        "multi_string",
        (),
        "A hyper-parameter as name=value, or method.name=value for one of several methods; may be"
        " repeated.",
    )
    weights: str | None = _flag(
        "string",
        None,
        "Keras weights (.weights.h5 or .keras) that the base network starts from; the same as"
        " --hparam weights=.",
    )
    resume: bool = _flag("boolean", False, "Skip finished runs and go on with half-finished ones.")
    export: bool = _flag("boolean", False, "Also write each fitted model as a SavedModel.")
    refit_all: bool = _flag(
        "boolean",
        False,
        "--export: fit the method (of auto: the recommended one) once more, on every annotated row,"
        " and export that.",
    )
    model_annotator: tuple[str, ...] = _flag(
        "list",
        (),
        "--dataset=table: annotators that are models: labels like others', but counted apart in the"
        " statistics of agreement.",
    )
    report: bool | None = _flag(
        "boolean",
        None,
        "Write report.html into each run's folder; by default yes, but not for the runs of"
        " --suite.",
    )
    list: bool = _flag("boolean", False, "List methods and datasets and stop.")
    device: str = _flag("string", "auto", "auto, cpu, gpu, or one device such as gpu:1.")
    mixed_precision: bool = _flag("boolean", False, "Compute in bfloat16, keep weights in float32.")
    distribute: str = _flag(
        "enum",
        "none",
        "How to spread training over devices.",
        enum_values=["none", "mirrored", "multi_worker"],
    )
    logical_cpus: int = _flag(
        "integer",
        1,
        "Split the CPU into so many devices, to try --distribute=mirrored without GPUs.",
        lower_bound=1,
        upper_bound=64,
    )
    data_seed: int | None = _flag(
        "integer",
        None,
        "Draws simulated crowds and splits; by default each run's own.",
        lower_bound=0,
        upper_bound=MAX_SEED,
    )
    keep_annotations: float | None = _flag(
        "float", None, "The share of annotations that is kept, drawn with the run's seed."
    )
    keep_one: bool = _flag(
        "boolean", False, "--keep_annotations: every instance keeps at least one."
    )
    dataset_option: tuple[tuple[str, Any], ...] = _flag(
        "multi_string",
        (),
        "An option of a dataset's loader as name=value (rate=0.3 of usps_lt); may be repeated.",
    )
    curves: bool = _flag(
        "boolean",
        False,
        "Also write the accuracy on training and test rows after each epoch to curves.csv.",
    )
    features: Path | None = _flag(
        "string",
        None,
        "--dataset=table: CSV (or Parquet) with a column `task`, then numbers; or an NPY array with"
        " a row a task.",
    )
    images: Path | None = _flag(
        "string",
        None,
        "--dataset=table: in place of --features, a folder of images whose names are the tasks.",
    )
    image_size: int | None = _flag(
        "integer",
        None,
        "--images: scale each to so many pixels high and wide.",
        lower_bound=1,
        upper_bound=4096,
    )
    texts: Path | None = _flag(
        "string", None, "--dataset=table: in place of --features, a CSV with columns task, text."
    )
    annotations: Path | None = _flag(
        "string", None, "--dataset=table: CSV with columns task, worker, label."
    )
    truth: Path | None = _flag(
        "string", None, "--dataset=table: CSV with columns task, label; for evaluation only."
    )
    test_features: Path | None = _flag(
        "string", None, "--dataset=table: features of the test rows."
    )
    test_texts: Path | None = _flag("string", None, "--dataset=table: texts of the test rows.")
    test_truth: Path | None = _flag("string", None, "--dataset=table: labels of the test rows.")
    classes: str | None = _flag(
        "string",
        None,
        "--dataset=table: all classes in their order, separated by commas; by default those in use,"
        " sorted.",
    )
    jobs: int = _flag(
        "integer",
        1,
        "How many runs to train at once, each in a process of its own.",
        lower_bound=1,
        upper_bound=1024,
    )
    evaluation: str = _flag(
        "enum",
        "split",
        "The dataset's own split, or repeated stratified cross-validation.",
        enum_values=["split", "cv"],
    )
    folds: int = _flag("integer", 5, "Folds of --evaluation=cv.", lower_bound=2)
    repeats: int = _flag("integer", 1, "Repeats of --evaluation=cv.", lower_bound=1)
    tune: int = _flag(
        "integer",
        0,
        "Try so many hyper-parameter settings on validation data before each run.",
        lower_bound=0,
    )
    # One thread: the models are small, and two threads that wait for each other cost three times
    # the time on a busy machine.
    threads: int = _flag(
        "integer",
        1,
        "Threads of each run; part of what makes results repeat bit for bit.",
        lower_bound=1,
    )
    checkpoint_seconds: float = _flag(
        "float", 5.0, "The least time between two checkpoints.", lower_bound=0.0
    )

    @property
    def seeds(self) -> range:
        """The seeds of `--seed` and `--num_runs`."""
        return range(self.seed, self.seed + (self.num_runs or 1))

    @property
    def table(self) -> dict[str, Path]:
        """The files of --dataset=table that were given."""
        given = {name: getattr(self, name) for name in TABLE_FLAGS}
        return {name: path for name, path in given.items() if path is not None}


def _define() -> tuple[str, ...]:
    """Defines absl's flags from the fields, and returns their names."""
    for field in dataclasses.fields(Options):
        limits = dict(field.metadata)
        kind, text = limits.pop("kind"), limits.pop("help")
        default = field.default
        if isinstance(default, (tuple, Path)):
            default = list(default) if isinstance(default, tuple) else str(default)
        getattr(flags, f"DEFINE_{kind}")(field.name, default, help=text, **limits)
    return tuple(field.name for field in dataclasses.fields(Options))


NAMES = _define()


# --------------------------------------------------------------------- what cannot be together


def _state(path: Path | None) -> str:
    if path is None or not path.exists():
        return "does not exist"
    return "is a folder" if path.is_dir() else "is a file"


def _changed(name: str) -> Callable[[Options], bool]:
    return lambda o: getattr(o, name) != getattr(Options, name)


def _sources(options: Options) -> list[str]:
    """Returns the flags that say where a table's instances are; one is expected."""
    return [name for name in ("features", "images", "texts") if getattr(options, name) is not None]


def _rules() -> list[tuple[str, Callable[[Options], object], str]]:
    """Returns a flag, when it cannot be, and what to say then; `{o}` is the options, `{state}` what
    is at the flag's path.
    """
    alone = "expected without --suite, which sets its own, received both"
    nameless = "expected at least one name, received none (--list shows them)"
    no_table = "expected together with --dataset=table only, received --dataset={datasets}"
    return [
        *((n, lambda o, n=n: o.suite and _changed(n)(o), alone) for n in SET_BY_SUITE),
        *(
            (n, lambda o, n=n: not o.suite and not getattr(o, n), nameless)
            for n in ("dataset", "method")
        ),
        (
            "num_runs",
            lambda o: o.seeds[-1] > MAX_SEED,
            f"expected seeds up to {MAX_SEED}, received {{o.seed}} + {{o.num_runs}} - 1",
        ),
        (
            "distribute",
            lambda o: o.distribute == "multi_worker",
            "expected none or mirrored, received multi_worker, which is not supported yet",
        ),
        (
            "device",
            lambda o: not re.fullmatch(r"auto|(cpu|gpu)(:\d+)?", o.device),
            "expected auto, cpu, gpu, cpu:<n> or gpu:<n>, received {o.device!r}",
        ),
        (
            "weights",
            lambda o: o.weights is not None and not Path(o.weights).is_file(),
            "expected a file of Keras weights, received {o.weights!r}",
        ),
        (
            "keep_annotations",
            lambda o: o.keep_annotations is not None and not 0 < o.keep_annotations <= 1,
            "expected a share above 0 and up to 1, received {o.keep_annotations!r}",
        ),
        (
            "checkpoint_seconds",
            lambda o: not o.checkpoint_seconds < float("inf"),
            "expected a number of seconds, received {o.checkpoint_seconds!r}",
        ),
        (
            "features",
            lambda o: "table" in o.dataset and not _sources(o),
            "--dataset=table needs it (or --images, or --texts), received none",
        ),
        *(
            (
                n,
                lambda o, n=n: _sources(o)[1:2] == [n],
                "expected in place of --{first}, received both",
            )
            for n in ("images", "texts")
        ),
        (
            "refit_all",
            lambda o: o.refit_all and (not o.export or o.evaluation == "cv"),
            "expected together with --export, and without --evaluation=cv",
        ),
        (
            "annotations",
            lambda o: "table" in o.dataset and o.annotations is None,
            "--dataset=table needs it, received none",
        ),
        *(
            (n, lambda o, n=n: "table" not in o.dataset and _changed(n)(o), no_table)
            for n in ("classes", "model_annotator", *TABLE_FLAGS)
        ),
        (
            "image_size",
            lambda o: o.image_size is not None and o.images is None,
            "expected together with --images only, received {o.image_size} without it",
        ),
        (
            "images",
            lambda o: o.images is not None and not o.images.is_dir(),
            "expected a folder of images, received {o.images}, which {state}",
        ),
        *(
            (
                n,
                lambda o, n=n: n in o.table and not o.table[n].is_file(),
                f"expected a CSV file, received {{o.{n}}}, which {{state}}",
            )
            for n in TABLE_FLAGS
            if n != "images"
        ),
        (
            "data_dir",
            lambda o: o.data_dir is not None and not o.data_dir.is_dir(),
            "expected a folder, received {o.data_dir}, which {state}",
        ),
        *(
            (
                n,
                lambda o, n=n: o.evaluation == "split" and _changed(n)(o),
                f"expected together with --evaluation=cv, received {{o.{n}}} with"
                " --evaluation=split",
            )
            for n in ("folds", "repeats")
        ),
        (
            "keep_one",
            lambda o: o.keep_one and o.keep_annotations is None,
            "expected together with --keep_annotations, received it alone",
        ),
    ]


RULES = tuple(_rules())


def check(options: Options) -> Options:
    """Returns the options when they can be used together.

    Raises:
        UsageError: what cannot be, and what was expected.
    """
    for name, broken, message in () if options.list else RULES:
        if broken(options):
            path = getattr(options, name) if name in _PATHS else None
            text = message.format(
                o=options,
                state=_state(path),
                datasets=",".join(options.dataset),
                first=next(iter(_sources(options)), ""),
            )
            raise UsageError(f"--{name}: {text}")
    return options


# --------------------------------------------------------------------- from a command line


def parse_value(text: str) -> Any:
    """Returns a hyper-parameter's value: a literal of JSON or Python where it is one, else the
    text.
    """
    for reader in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError):
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
    return None if text is None else Path(os.path.expanduser(text))


def _one_line(error: Exception) -> str:
    """Returns absl's message on one line, with the closest flag where the name is unknown."""
    text = " ".join(str(error).split())
    unknown = re.search(r"Unknown command line flag '([^']+)'", text)
    if unknown:
        close = difflib.get_close_matches(unknown[1], NAMES, n=1)
        hint = f"; did you mean --{close[0]}?" if close else ""
        return f"--{unknown[1]}: expected a flag of this command, received an unknown one{hint}"
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
    if given["weights"] is not None:
        given["weights"] = os.path.expanduser(given["weights"])
        others = (item for item in given["hparam"] if item[0] != "weights")
        given["hparam"] = (*others, ("weights", given["weights"]))
    given |= {name: _path(name, given[name]) for name in _PATHS}
    return check(Options(**given))
