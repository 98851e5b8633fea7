"""Which modules register methods, datasets and suites: the library's, those that a program names,
and those of installed packages.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import warnings
from collections.abc import Iterable
from typing import Any

from neucrowd_tf import registry
from neucrowd_tf.errors import UsageError, one_line

LIBRARY = (
    "neucrowd_tf.two_stage",
    "neucrowd_tf.choice",
    "neucrowd_tf.datasets.bundled",
    "neucrowd_tf.neucrowd",
    "neucrowd_tf.rll",
    "neucrowd_tf.crowd_layers",
    "neucrowd_tf.dasc",
    "neucrowd_tf.crowding",
    "neucrowd_tf.iced",
    "neucrowd_tf.datasets.table",
)
# A package's entry points of this group are modules that register when they are imported.
GROUP = "neucrowd_tf.plugins"


def register(modules: Iterable[str] = ()) -> None:
    """Imports the library's modules, further ones by name, and those that installed packages name.

    A package's module that cannot be imported is told, and costs no other.
    """
    for name in (*LIBRARY, *modules):
        importlib.import_module(name)
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:
            warnings.warn(
                f"plug-in {entry.name} ({entry.value}) is left out: {type(error).__name__}:"
                f" {one_line(error)}",
                stacklevel=2,
            )


def listing() -> str:
    """Returns a line for each method, each dataset and each suite."""
    lines = []
    for title, items in (
        ("Methods", registry.methods()),
        ("Datasets", registry.datasets()),
        ("Suites", [suite for suite in registry.suites() if suite.in_all]),
    ):
        width = max((len(item.name) for item in items), default=0)
        shown = [f"  {item.name:<{width}}  {item.summary}" for item in items]
        lines += [f"{title}:", *shown, ""] if items else []
    return "\n".join(lines[:-1])


def hyper_parameters(
    methods: Iterable[str], given: Iterable[tuple[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Returns each method's hyper-parameters from those of the command line.

    Args:
        methods: names.
        given: name or method.name, and value. A plain name goes to each method that has it.

    Raises:
        UsageError: a name that no method has, with the closest one that exists.
    """
    taken = {name: registry.method(name).parameter_names for name in methods}
    chosen: dict[str, dict[str, Any]] = {name: {} for name in taken}
    for full, value in given:
        owner, dot, name = full.rpartition(".")
        if dot and owner not in taken:
            raise UsageError(
                f"--hparam: expected one of --method's names before the dot, received {full!r}"
            )
        if name == "seed":
            raise UsageError(
                "--hparam: expected --seed for the seed, received a hyper-parameter 'seed'"
            )
        known = {method: taken[method] for method in ([owner] if dot else taken)}
        users = [method for method, names in known.items() if names is None or name in names]
        if not users:
            raise UsageError(_unknown(name, known))
        for method in users:
            chosen[method][name] = value
    return chosen


def _unknown(name: str, known: dict[str, list[str] | None]) -> str:
    """Returns what to say of a hyper-parameter that none of these methods has."""
    every = sorted({item for names in known.values() for item in names or ()} - {"seed"})
    close = difflib.get_close_matches(name, every, n=1)
    methods = ", ".join(known)
    hint = (
        f"; did you mean {close[0]!r}?"
        if close
        else f" ({methods} {'takes' if len(known) == 1 else 'take'} {', '.join(every) or 'none'})"
    )
    return f"--hparam: expected a hyper-parameter of {methods}, received {name!r}{hint}"


def check_dataset_options(dataset: registry.Dataset, given: Iterable[str]) -> None:
    """Raises UsageError for an option that this dataset's loader does not take."""
    for name in given:
        if name not in dataset.options:
            able = [item.name for item in registry.datasets() if name in item.options]
            raise UsageError(
                f"--{name}: expected a dataset with that option"
                f" ({', '.join(able) or 'none has it'}), received --dataset={dataset.name}"
            )
