"""Which flags cannot be together, as a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from neucrowd_tf.errors import UsageError
from neucrowd_tf.harness.options import LAYOUT_FLAGS, MAX_SEED, SET_BY_SUITE, TABLE_FLAGS, Options
from neucrowd_tf.io.files.reading import ending

_PICTURES = ("image_size", "max_pixels")
_OF_A_TABLE = tuple(
    name for name in ("model_annotator", *TABLE_FLAGS, *LAYOUT_FLAGS) if name not in _PICTURES
)
_SOURCES = ("features", "images", "texts")


def _changed(o: Options, name: str) -> bool:
    return bool(getattr(o, name) != getattr(Options, name))


def _sources(o: Options) -> list[str]:
    """Returns what says where a table's instances are; one is expected."""
    return [name for name in _SOURCES if name in o.table]


def _is_no_file(o: Options, name: str) -> bool:
    return getattr(o, name) is not None and not Path(getattr(o, name)).is_file()


def _is_no_folder(o: Options, name: str) -> bool:
    return getattr(o, name) is not None and not getattr(o, name).is_dir()


def _is_csv(path: Path) -> bool:
    return ending(path) not in (".npy", ".parquet", ".pq", ".json") and not path.is_dir()


def _state(path: object) -> str:
    """Returns what stands where a path points to."""
    if not isinstance(path, Path):
        return ""
    return "is a folder" if path.is_dir() else "is a file" if path.exists() else "does not exist"


# Flags, whether one of them cannot be so with the others, and what to say then. The first that is
# broken is told of.
RULES: tuple[tuple[tuple[str, ...], Callable[[Options, str], object], str], ...] = (
    (
        SET_BY_SUITE,
        lambda o, name: o.suite and _changed(o, name),
        "expected without --suite, which sets its own, received both",
    ),
    (
        ("dataset", "method"),
        lambda o, name: not o.suite and not getattr(o, name),
        "expected at least one name, received none (--list shows them; --dataset=table is for files"
        " of your own)",
    ),
    (
        ("num_runs",),
        lambda o, name: o.seeds[-1] > MAX_SEED,
        f"expected seeds up to {MAX_SEED}, received {{o.seed}} + {{o.num_runs}} - 1",
    ),
    (
        ("jobs", "scheduler", "suite", "tune", "curves", "export", "logical_cpus"),
        lambda o, name: o.distribute == "multi_worker" and _changed(o, name),
        "expected without --distribute=multi_worker",
    ),
    (
        ("device",),
        lambda o, name: not re.fullmatch(r"auto|(cpu|gpu)(:\d+)?", o.device),
        "expected auto, cpu, gpu, cpu:<n> or gpu:<n>, received {value!r}",
    ),
    (
        ("scheduler",),
        lambda o, name: o.scheduler is not None and o.jobs > 1,
        "expected without --jobs (each of its workers makes a run at a time), received both",
    ),
    (("weights",), _is_no_file, "expected a file of Keras weights, received {value!r}"),
    (("gold",), _is_no_file, "expected a CSV file, received {value!r}"),
    (
        ("keep_annotations",),
        lambda o, name: o.keep_annotations is not None and not 0 < o.keep_annotations <= 1,
        "expected a share above 0 and up to 1, received {value!r}",
    ),
    (
        ("checkpoint_seconds",),
        lambda o, name: not o.checkpoint_seconds < float("inf"),
        "expected a number of seconds, received {value!r}",
    ),
    (
        ("features",),
        lambda o, name: "table" in o.dataset and not _sources(o),
        "expected with --dataset=table (or --images, or --texts), received none",
    ),
    (
        _SOURCES,
        lambda o, name: name in _sources(o)[1:],
        "expected in place of --{source}, received both",
    ),
    (
        ("refit_all",),
        lambda o, name: o.refit_all and (not o.export or o.evaluation == "cv"),
        "expected together with --export, and without --evaluation=cv, received it otherwise",
    ),
    (
        ("annotations",),
        lambda o, name: "table" in o.dataset and name not in o.table,
        "expected with --dataset=table, received none",
    ),
    (
        _OF_A_TABLE,
        lambda o, name: "table" not in o.dataset and _changed(o, name),
        "expected together with --dataset=table only, received --dataset={datasets}",
    ),
    (
        _PICTURES,
        lambda o, name: o.images is None and _changed(o, name),
        "expected together with --images only, received {value} without it",
    ),
    (
        ("ignore_columns",),
        lambda o, name: o.ignore_columns is not None and o.features is None,
        "expected together with --features only, received it without",
    ),
    (
        ("separator",),
        lambda o, name: (
            o.separator is not None and o.gold is None and not any(map(_is_csv, o.table.values()))
        ),
        "expected together with a CSV, received it with none",
    ),
    (("images",), _is_no_folder, "expected a folder of images, received {value}, which {state}"),
    (
        tuple(name for name in TABLE_FLAGS if name not in ("images", "annotations")),
        _is_no_file,
        "expected a CSV file, received {value}, which {state}",
    ),
    (
        ("annotations",),  # SageMaker's export is a folder
        lambda o, name: _is_no_file(o, name) and _is_no_folder(o, name),
        "expected a CSV file, received {value}, which {state}",
    ),
    (
        ("data_dir",),
        lambda o, name: o.data_dir is not None and set(o.dataset) == {"table"},
        "expected without --dataset=table, whose files have flags of their own, received {value}",
    ),
    (
        ("tune_by",),
        lambda o, name: _changed(o, name) and not o.tune and not o.suite,
        "expected together with --tune, received {value} without it",
    ),
    (("data_dir",), _is_no_folder, "expected a folder, received {value}, which {state}"),
    (
        ("folds", "repeats"),
        lambda o, name: o.evaluation == "split" and _changed(o, name),
        "expected together with --evaluation=cv, received {value} with --evaluation=split",
    ),
    (
        ("keep_one",),
        lambda o, name: o.keep_one and o.keep_annotations is None,
        "expected together with --keep_annotations, received it alone",
    ),
)


def check(options: Options) -> Options:
    """Returns the options when they can be used together.

    Raises:
        UsageError: what cannot be, and what was expected.
    """
    if options.list:
        return options
    for names, broken, text in RULES:
        for name in names:
            if broken(options, name):
                value = getattr(options, name)
                source = next(iter(_sources(options)), "")
                datasets = ",".join(options.dataset)
                said = text.format(
                    o=options, value=value, state=_state(value), source=source, datasets=datasets
                )
                raise UsageError(f"--{name}: {said}")
    return options
