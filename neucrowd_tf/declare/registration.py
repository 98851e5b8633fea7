"""The decorator that registers methods; `neucrowd_tf.declare.registry` looks them up."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from neucrowd_tf.declare.types import NamedValues

Factory = TypeVar("Factory", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Registered:
    """What is registered of a method.

    Attributes:
        name: as in `--method`.
        factory: called with hyper-parameters (and `seed`), returns an unfitted estimator.
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
        changes: how the method differs from its paper, and which name has the published equations;
            a run says it. Empty for a method as published.
        module: the module that registers it.
    """

    name: str
    factory: Callable[..., Any]
    summary: str
    defaults: NamedValues = dataclasses.field(default_factory=dict)
    requires_identities: bool = False
    trains_network: bool = True
    max_classes: int | None = None
    uses_truth: bool = False
    presets: Mapping[str, NamedValues] = dataclasses.field(default_factory=dict)
    stronger: Mapping[str, NamedValues] = dataclasses.field(default_factory=dict)
    space: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)
    changes: str = ""
    module: str = ""


METHODS: dict[str, Registered] = {}


def register_method(
    name: str, *, summary: str, module: str | None = None, **fields: Any
) -> Callable[[Factory], Factory]:
    """Returns a decorator that registers a class or function as a method.

    An ablation is a further decorator on the same class, with a name and `defaults` of its own. A
    module may register a name again, as a notebook's cell does that is run again: the later class
    counts.

    Args:
        name: as in `--method`.
        summary: one line for `--list`.
        module: the `__name__` of the module that registers it, where this is not the module of
            the class.
        fields: further fields of `Registered`.

    Raises:
        ValueError: another module has registered this name.
        TypeError: what is decorated is no class or function.
    """

    def decorate(factory: Factory) -> Factory:
        if not callable(factory):
            raise TypeError(f"{name!r}: expected a class or function, received {factory!r}")
        fields.setdefault("requires_identities", getattr(factory, "requires_identities", False))
        fields.setdefault("trains_network", getattr(factory, "trains_network", True))
        place = module or factory.__module__
        add(METHODS, Registered(name, factory, summary, module=place, **fields), "method")
        return factory

    return decorate


class _Named(Protocol):
    """What the tables have in common."""

    @property
    def name(self) -> str: ...
    @property
    def module(self) -> str: ...


Entry = TypeVar("Entry", bound=_Named)


def add(table: dict[str, Entry], entry: Entry, kind: str) -> None:
    """Adds an entry to a table of what is registered, under its name.

    Raises:
        ValueError: another module has registered this name.
    """
    earlier = table.get(entry.name, entry)
    if earlier.module != entry.module:
        raise ValueError(
            f"{kind} {entry.name!r} is registered already, by {earlier.module}. Choose another"
            " name."
        )
    table[entry.name] = entry
