"""Decorators by which a module registers methods; `neucrowd_tf.declare.registry` looks them up."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Factory = TypeVar("Factory", bound=Callable[..., Any] | str)


@dataclasses.dataclass(frozen=True)
class Registered:
    """What is registered of a method.

    Attributes:
        name: as in `--method`.
        factory: called with hyper-parameters (and `seed`), returns an unfitted estimator. As text,
            "module:Class", it is imported when the method is asked for.
        summary: one line for `--list`.
        defaults: the arguments that make this name out of the factory (an ablation's switches,
            say).
        requires_identities: whether it needs to know who gave each label.
        trains_network: whether fits and predictions may need TensorFlow.
        max_classes: 2 for methods that are binary by nature, None otherwise.
        uses_truth: the upper bound that trains on true labels; never a crowd method.
        presets: hyper-parameters by dataset name, chosen on validation data.
        stronger: hyper-parameters by dataset name of a stronger base than the papers', chosen on
            folds of training instances.
        space: hyper-parameters and the values that `--tune` may try.
        changes: how the method differs from its paper, and which name has the paper's words; a
            run says it. Empty for a method as published.
        module: the module that registers it.
    """

    name: str
    factory: Callable[..., Any] | str
    summary: str
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    requires_identities: bool = False
    trains_network: bool = True
    max_classes: int | None = None
    uses_truth: bool = False
    presets: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    stronger: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    space: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)
    changes: str = ""
    module: str = ""


METHODS: dict[str, Registered] = {}


def register_method(name: str, *, summary: str, **fields: Any) -> Callable[[Factory], Factory]:
    """Returns a decorator that registers a class or function as a method.

    Several of these decorators register variants.
    """

    def decorate(factory: Factory) -> Factory:
        fields.setdefault("requires_identities", getattr(factory, "requires_identities", False))
        fields.setdefault("trains_network", getattr(factory, "trains_network", True))
        add(METHODS, Registered(name, factory, summary, **fields), "method", "factory")
        return factory

    return decorate


def add(table: dict[str, Any], entry: Any, kind: str, function: str) -> None:
    """Adds an entry to a table of what is registered, under its name.

    Raises:
        ValueError: that is another function's.
    """
    earlier = table.get(entry.name, entry)
    if getattr(earlier, function) != getattr(entry, function):
        raise ValueError(f"{kind} {entry.name!r} is registered already")
    # The module whose statements are being run, not that of a helper that they call.
    frame = inspect.currentframe()
    while frame and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    module = str(frame.f_globals["__name__"]) if frame else ""
    table[entry.name] = dataclasses.replace(entry, module=module)
