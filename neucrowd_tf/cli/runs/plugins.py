"""The modules that register methods, datasets and suites, and what is registered."""

from __future__ import annotations

import importlib
import importlib.metadata
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from neucrowd_tf.datasets import CrowdDataset
from neucrowd_tf.declare import registry
from neucrowd_tf.declare.types import Fields
from neucrowd_tf.errors import DataError, UsageError, one_line

KINDS: tuple[registry.Kind, ...] = ("method", "dataset", "suite")
# A package's entry points of this group are modules that register when they are imported.
GROUP = "neucrowd_tf.plugins"


def register(packages: Iterable[str] = ()) -> None:
    """Imports packages, which register what they have, and installed plug-ins.

    A plug-in that cannot be imported is a warning.
    """
    for name in packages:
        importlib.import_module(name)
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:
            warnings.warn(
                f"plug-in {entry.name} ({entry.value}): not imported ({type(error).__name__}:"
                f" {one_line(error)})",
                stacklevel=2,
            )


def load_dataset(name: str, data_dir: str | Path | None = None, seed: int = 0) -> CrowdDataset:
    """Returns a dataset by its name, as `--dataset` takes it.

    Args:
        name: such as "music"; those of the package and of installed plug-ins. In a checkout
            `import data` registers the benchmark datasets.
        data_dir: where the files are; None downloads them to the cache.
        seed: draws what is simulated.

    Raises:
        UsageError: no dataset has this name, or a seed that is no whole number from 0.
        DataError: its files are not in `data_dir`, or cannot be downloaded.
    """
    register()
    try:
        return registry.dataset(name, "name").load(data_dir, seed)
    except DataError as error:
        if "--data_dir" not in str(error):
            raise
        raise DataError(str(error).replace("--data_dir", "data_dir=")) from None


def listing() -> str:
    """Returns a line for each method, each dataset and each suite."""
    groups = []
    for kind in KINDS:
        entries = registry.entries(kind)
        names = list(entries)
        if kind == "suite":
            names = [name for name in names if entries[name].in_all]
        else:
            names.sort()
        width = max(map(len, names), default=0)
        lines = [f"{kind.capitalize()}s:"]
        for name in names:
            lines.append(f"  {name:<{width}}  {entries[name].summary}")
        if names:
            groups.append("\n".join(lines))
    return "\n\n".join(groups)


def hyper_parameters(
    methods: Iterable[str], chosen: Iterable[tuple[str, Any]], flag: str = "hparam"
) -> dict[str, Fields]:
    """Returns each method's hyper-parameters from those of the command line.

    Args:
        methods: names.
        chosen: name or method.name, and value. A plain name goes to each method that has it.
        flag: the flag's name, for messages.

    Raises:
        UsageError: a name that no method has; suggests the closest one.
    """
    names = {name: registry.entry("method", name).parameter_names for name in methods}
    result: dict[str, Fields] = {name: {} for name in names}
    for full, value in chosen:
        owner, dot, name = full.rpartition(".")
        if dot and owner not in names:
            raise UsageError(f"--{flag}={full}: {owner} is not among --method.")
        if name == "seed":
            raise UsageError(f"--{flag}=seed: use --seed.")
        takers = [owner] if dot else list(names)
        users = [method for method in takers if name in (names[method] or [name])]
        if not users:
            every = set[str]().union(*filter(None, map(names.get, takers))) - {"seed"}
            names_of = f"{', '.join(takers)}: {', '.join(sorted(every)) or 'no hyper-parameters'}"
            raise UsageError(
                f"--{flag}={name}: no method of this command has it. These exist for {names_of}."
            )
        for method in users:
            result[method][name] = value
    return result


def check_dataset_options(dataset: registry.Dataset | registry.Entry, names: Iterable[str]) -> None:
    """Raises UsageError for an option that this dataset's loader does not take."""
    for name in names:
        if name not in dataset.options:
            raise UsageError(f"--dataset_option={name}: not an option of {dataset.name}.")
