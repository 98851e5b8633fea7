"""Which modules register methods and datasets. This is the one place where they are listed."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
from collections.abc import Iterable
from typing import Any

from neucrowd_tf import registry
from neucrowd_tf.errors import UsageError

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


def register(rooms: Iterable[str] = ()) -> None:
    """Imports the library's rooms, those that exist, and further modules by name."""
    for name in LIBRARY:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
    for name in rooms:
        importlib.import_module(name)


def listing(*, suites: bool = True) -> str:
    """Returns a line for each method, each dataset and, unless they are not wanted, each suite."""
    from reproduction.catalogue import SUITES

    lines = []
    for title, items in (
        ("Methods", registry.methods()),
        ("Datasets", registry.datasets()),
        ("Suites", SUITES if suites else ()),
    ):
        if not items:
            continue
        width = max((len(item.name) for item in items), default=0)
        lines += [f"{title}:", *(f"  {item.name:<{width}}  {item.summary}" for item in items), ""]
    return "\n".join(lines[:-1])


def parameter_names(method: registry.Method) -> list[str] | None:
    """Returns the hyper-parameters that a method's factory takes, or None where it takes any."""
    parameters = inspect.signature(method.factory).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return [
        parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL
    ]


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
    names = list(methods)
    taken = {name: parameter_names(registry.method(name)) for name in names}
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    for full, value in given:
        owner, dot, plain = full.rpartition(".")
        if dot and owner not in names:
            raise UsageError(
                f"--hparam: expected one of --method's names before the dot, received {full!r}"
            )
        if plain == "seed":
            raise UsageError(
                "--hparam: expected --seed for the seed, received a hyper-parameter 'seed'"
            )
        known = {name: taken[name] for name in ([owner] if dot else names)}
        users = [
            name for name, parameters in known.items() if parameters is None or plain in parameters
        ]
        if not users:
            every = sorted(
                {
                    parameter
                    for parameters in known.values()
                    for parameter in parameters or ()
                    if parameter != "seed"
                }
            )
            close = difflib.get_close_matches(plain, every, n=1)
            take = "takes" if len(known) == 1 else "take"
            hint = (
                f"; did you mean {close[0]!r}?"
                if close
                else f" ({', '.join(known)} {take} {', '.join(every) or 'none'})"
            )
            raise UsageError(
                f"--hparam: expected a hyper-parameter of {', '.join(known)}, received"
                f" {plain!r}{hint}"
            )
        for name in users:
            found[name][plain] = value
    return found


def dataset_options(dataset: registry.Dataset, given: dict[str, Any]) -> dict[str, Any]:
    """Returns the options that a dataset's loader takes out of those given.

    Raises:
        UsageError: one that this dataset does not have, where it is not meant for another one.
    """
    for name in given:
        if name not in dataset.options:
            able = [item.name for item in registry.datasets() if name in item.options]
            raise UsageError(
                f"--{name}: expected a dataset with that option"
                f" ({', '.join(able) or 'none has it'}), received --dataset={dataset.name}"
            )
    return dict(given)
