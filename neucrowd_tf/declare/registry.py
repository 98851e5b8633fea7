"""The registry of methods, datasets and suites.

A module registers them when it is imported; the decorators are the only source. What each module
registers stands in an index, so that a name costs the import of one module, and a question about
names none.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.resources
import importlib.util
import inspect
import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Literal

from neucrowd_tf.declare import dataset_registration, registration
from neucrowd_tf.declare.dataset_registration import Dataset, Suite
from neucrowd_tf.declare.dataset_registration import register_dataset as register_dataset
from neucrowd_tf.declare.dataset_registration import register_suite as register_suite
from neucrowd_tf.declare.declarations import whole
from neucrowd_tf.declare.nested import nest, nested_names
from neucrowd_tf.declare.picking import having, mapped
from neucrowd_tf.declare.registration import Registered
from neucrowd_tf.declare.registration import register_method as register_method
from neucrowd_tf.declare.settings import frozen
from neucrowd_tf.declare.types import Fields, NamedValues, Texts
from neucrowd_tf.errors import UsageError
from neucrowd_tf.names import did_you_mean, without

Kind = Literal["method", "dataset", "suite"]
INDEX = "index.json"


@dataclasses.dataclass(frozen=True)
class Method(Registered):
    """A registered method, and how its estimators are made."""

    def make(self, *, dataset: str | None = None, bases: str = "papers", **hparams: object) -> Any:
        """Returns an estimator with the method's defaults, the dataset's preset and `hparams`.

        Later ones override earlier ones. With `bases="stronger"` the dataset's stronger base, if
        the method has one, overrides its preset. `ensemble`, which every method takes, is the
        number of fits with different seeds whose probabilities are averaged.
        """
        presets = {**self.defaults, **self.presets.get(dataset or "", {})}
        if bases == "stronger":
            presets |= self.stronger.get(dataset or "", {})
        arguments = self._arguments(hparams, presets)
        size = arguments.pop("ensemble", 1)
        whole(1).check("ensemble", size)
        estimator = self.factory(**arguments)
        if size == 1:
            return estimator
        from neucrowd_tf.training.ensemble import Ensemble

        return Ensemble(estimator, size=size, seed=arguments.get("seed", 0))

    def _arguments(self, values: Fields, presets: Fields) -> Fields:
        """Returns the factory's arguments, with options of networks in their configurations.

        Where `estimator` names a method, what the factory does not declare belongs to that method,
        and the argument becomes its estimator.
        """
        if not isinstance(self.defaults.get("estimator"), str):
            return nest(self.factory, values, presets)
        names = {*inspect.signature(self.factory).parameters, "ensemble"}
        options, direct = _divided(values, names)
        theirs, presets = _divided(presets, names)
        name = direct.get("estimator", self.defaults["estimator"])
        if refused := sorted(options.keys() & set(getattr(self.factory, "fixed", ()))):
            raise UsageError(f"{refused[0]}: {self.name} does not take it. Leave it out.")
        if isinstance(name, str):
            inner = method(name, "estimator")
            arguments = inner._arguments(options, {**inner.defaults, **theirs})
            direct["estimator"] = inner.factory(**arguments)
        elif options:
            raise UsageError(f"{min(options)}: has no effect on estimator, which is an object")
        return nest(self.factory, direct, presets)

    @property
    def parameter_names(self) -> list[str] | None:
        """Hyper-parameters of the factory and its nested configurations; None if it takes any.

        They include those of the method that the default of `estimator` names.
        """
        names = []
        for parameter in inspect.signature(self.factory).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                return None
            if parameter.kind is not parameter.VAR_POSITIONAL:
                names.append(parameter.name)
        if isinstance(name := self.defaults.get("estimator"), str):
            theirs = method(name, "estimator").parameter_names or []
            other = {*names, *getattr(self.factory, "fixed", ()), "ensemble"}
            names += without(theirs, other)
        return [*names, *nested_names(self.factory), "ensemble"]


@dataclasses.dataclass(frozen=True)
class Entry:
    """A name in an index; its fields are those of `Method`, `Dataset` and `Suite`.

    Attributes:
        module: the module that registers it: importing this one is enough. In the index of a
            plug-in it begins with a dot.
        stronger: the names of the datasets for which there is a stronger base.
    """

    name: str
    module: str
    summary: str
    parameter_names: tuple[str, ...] | None = None
    requires_identities: bool = False
    trains_network: bool = True
    max_classes: int | None = None
    uses_truth: bool = False
    stronger: tuple[str, ...] = ()
    simulated: bool = False
    options: tuple[str, ...] = ()
    in_all: bool = True


@functools.cache
def read_index(package: str) -> dict[Kind, dict[str, Entry]]:
    """Returns the entries of a package's index by kind and name."""
    path = importlib.resources.files(package).joinpath(INDEX)
    index = frozen(json.loads(path.read_text(encoding="utf-8")))
    entries: dict[Kind, dict[str, Entry]] = {}
    for kind, listed in index.items():
        entries[kind] = {}
        for fields in listed:
            # A plug-in has one name in a checkout and another in a wheel.
            module = importlib.util.resolve_name(fields["module"], package)
            entries[kind][fields["name"]] = Entry(**{**fields, "module": module})
    return entries


_SUITE_FILES: list[Callable[[Path], Sequence[Suite]]] = []
# Rivals and loaders as a wheel brings them; in a checkout they are `baselines` and `data`.
_IN_WHEELS = ("neucrowd_tf.plugins.baselines", "neucrowd_tf.plugins.data")


def _indexed() -> dict[str, None]:
    """Returns the packages whose indexes are read."""
    packages = {"neucrowd_tf.declare": None}
    if importlib.util.find_spec("neucrowd_tf.plugins") is not None:
        packages |= dict.fromkeys(_IN_WHEELS)
    return packages


_INDEXED = _indexed()


def _divided(options: NamedValues, names: Collection[str]) -> tuple[Fields, Fields]:
    """Returns the options that have none of these names, and those that have."""
    others: Fields = {}
    same: Fields = {}
    for name, value in options.items():
        if name in names:
            same[name] = value
        else:
            others[name] = value
    return others, same


def register_suite_files(reader: Callable[[Path], Sequence[Suite]]) -> None:
    """Registers what reads the suites of `--suite=FILE.toml`."""
    _SUITE_FILES[:] = [reader]


def register_index(package: str) -> None:
    """Registers what stands in a package's index; its `__init__` calls this."""
    _INDEXED[package] = None


def _table(kind: Kind) -> Fields:
    tables: dict[Kind, Fields] = {
        "method": registration.METHODS,
        "dataset": dataset_registration.DATASETS,
        "suite": dataset_registration.SUITES,
    }
    return dict(tables[kind])


def registered(kind: Kind) -> Fields:
    """Returns what the imported modules have registered, by name."""
    return mapped(_opened, _table(kind))


def _opened(listed: object) -> Any:
    """Returns an entry; a registered method with what makes its estimators."""
    if isinstance(listed, Registered):
        return Method(**vars(listed))
    return listed


def entries(kind: Kind) -> Fields:
    """Returns what is registered by name, or the index's `Entry` of what is not imported yet."""
    indexed: Fields = {}
    for package in _INDEXED:
        indexed |= read_index(package)[kind]
    return indexed | _table(kind)


def entry(kind: Kind, name: str, argument: str = "") -> Any:
    """Returns the entry of that name, without importing anything.

    Raises:
        UsageError: no such name; suggests the closest ones.
    """
    every = entries(kind)
    if name not in every:
        hint = did_you_mean(name, every) or "--list shows all names."
        raise UsageError(f"{argument or '--' + kind}: no {kind} is named {name!r}. {hint}")
    return _opened(every[name])


def _look_up(kind: Kind, name: str, argument: str = "") -> Any:
    listed = entry(kind, name, argument)
    if isinstance(listed, Entry):
        importlib.import_module(listed.module)
        if name not in _table(kind):
            raise UsageError(
                f"--{kind}={name}: {listed.module} does not register it. Run `make pages`."
            )
        return entry(kind, name)
    return listed


def method(name: str, argument: str = "--method") -> Method:
    """Returns the method of that name; UsageError suggests the closest names."""
    return _look_up("method", name, argument)


def dataset(name: str, argument: str = "--dataset") -> Dataset:
    """Returns the dataset of that name; UsageError suggests the closest names."""
    return _look_up("dataset", name, argument)


def methods() -> list[Method]:
    """Returns all methods by name; their modules are imported."""
    return list(map(method, sorted(entries("method"))))


def datasets() -> list[Dataset]:
    """Returns all datasets by name; their modules are imported."""
    return list(map(dataset, sorted(entries("dataset"))))


def chosen_suites(names: Texts) -> list[Suite]:
    """Returns the suites of those names, each once.

    "all" is every one that `--list` shows; FILE.toml is those of a file.

    Raises:
        UsageError: an unknown name.
        DataError: a file without suites.
    """
    chosen: dict[str, Suite] = {}
    for name in names:
        suites: Sequence[Suite] = []
        if name == "all" or name.endswith(".toml"):  # which needs what suites register
            suites = list(map(functools.partial(_look_up, "suite"), entries("suite")))
        if name.endswith(".toml") and _SUITE_FILES:
            suites = _SUITE_FILES[0](Path(name))
        elif name == "all" and suites:
            suites = having(suites, in_all=True)
        else:
            suites = [_look_up("suite", name)]
        for suite in suites:
            chosen[suite.name] = suite
    return list(chosen.values())
