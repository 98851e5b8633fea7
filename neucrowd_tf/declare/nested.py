"""Options of an estimator's nested configurations, such as those of its network."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from neucrowd_tf.declare.declarations import declared_by_name
from neucrowd_tf.declare.picking import entries_of
from neucrowd_tf.declare.types import Fields
from neucrowd_tf.errors import UsageError
from neucrowd_tf.names import among


def nested_names(kind: object) -> list[str]:
    """Returns the options of an estimator's nested configurations, such as those of its network.

    An estimator declares `nested`: configuration classes by name for each argument that takes such
    a name or a mapping. On the command line these options are listed with the estimator's
    arguments.
    """
    names: dict[str, None] = {}
    for kinds in getattr(kind, "nested", {}).values():
        names |= dict.fromkeys(_options(kinds))
    return list(names)


def _options(kinds: Mapping[str, type]) -> list[str]:
    """Returns the names of what several configuration classes declare."""
    return list(itertools.chain.from_iterable(map(declared_by_name, kinds.values())))


def nest(kind: object, values: Fields, presets: Fields | None = None) -> Fields:
    """Returns arguments of an estimator with the options of nested configurations moved into these.

    Args:
        kind: the estimator's class (or another factory, whose arguments stay as they are).
        values: arguments and options by name.
        presets: likewise; `values` win, and options that a configuration lacks are left out.

    Raises:
        UsageError: an option in `values` for an argument that is an object.
    """
    merged = {**(presets or {}), **values}
    if not isinstance(merged.get("optimizer", ""), str) and "learning_rate" not in values:
        merged.pop("learning_rate", None)  # the optimizer has its own
    for name, kinds in getattr(kind, "nested", {}).items():
        options = {}
        for option in among(merged, _options(kinds)):
            options[option] = merged.pop(option)
        config = merged.get(name, declared_by_name(kind)[name].default)
        if callable(config):
            for option in among(options, values):
                raise UsageError(f"{option}: has no effect on {name}, which is an object")
            continue
        if isinstance(config, str):
            config = {"name": config}
        chosen = config.get("name", next(iter(kinds)))
        allowed = set(values)
        if chosen in kinds:
            allowed.update(_options({chosen: kinds[chosen]}))
        options = entries_of(options, among(options, allowed))
        if options:
            merged[name] = {**config, **options}
    return merged
