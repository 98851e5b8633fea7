"""The registry of methods, datasets and suites; it imports none of them."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from neucrowd_tf.datasets.core import CrowdDataset
from neucrowd_tf.declare import nest, nested_names, whole
from neucrowd_tf.errors import UsageError

Factory = TypeVar("Factory", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Method:
    """A registered method.

    Attributes:
        name: as in `--method`.
        factory: called with hyper-parameters (and `seed`), returns an unfitted estimator.
        summary: one line for `--list`.
        defaults: the arguments that make this name out of the factory (an ablation's switches,
            say).
        requires_identities: whether it needs to know who gave each label.
        max_classes: 2 for methods that are binary by nature, None otherwise.
        uses_truth: the upper bound that trains on true labels; never a crowd method.
        presets: hyper-parameters by dataset name, chosen on validation data.
        stronger: hyper-parameters by dataset name of a stronger base than the papers', chosen on
            folds of training instances.
        space: hyper-parameters and the values that `--tune` may try.
    """

    name: str
    factory: Callable[..., Any]
    summary: str
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    requires_identities: bool = False
    max_classes: int | None = None
    uses_truth: bool = False
    presets: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    stronger: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    space: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)

    def make(self, *, dataset: str | None = None, bases: str = "papers", **hparams: Any) -> Any:
        """Returns an estimator with the method's defaults, the dataset's preset and `hparams`.

        Later ones override earlier ones. With `bases="stronger"` the dataset's stronger base, if
        the method has one, overrides its preset. `ensemble`, which every method takes, is the
        number of fits with different seeds whose probabilities are averaged.
        """
        presets = {**self.defaults, **self.presets.get(dataset or "", {})}
        presets |= self.stronger.get(dataset or "", {}) if bases == "stronger" else {}
        arguments = self._arguments(hparams, presets)
        size = arguments.pop("ensemble", 1)
        whole(1).check("ensemble", size)
        estimator = self.factory(**arguments)
        if size == 1 or not _ENSEMBLES:
            return estimator
        return _ENSEMBLES[0](estimator, size=size, seed=arguments.get("seed", 0))

    def _arguments(self, values: dict[str, Any], presets: dict[str, Any]) -> dict[str, Any]:
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
        parameters = inspect.signature(self.factory).parameters.values()
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            return None
        names = [item.name for item in parameters if item.kind is not item.VAR_POSITIONAL]
        if isinstance(name := self.defaults.get("estimator"), str):
            theirs = method(name, "estimator").parameter_names or []
            other = {*names, *getattr(self.factory, "fixed", ()), "ensemble"}
            names += [option for option in theirs if option not in other]
        return names + nested_names(self.factory) + ["ensemble"] * bool(_ENSEMBLES)


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A registered dataset.

    Attributes:
        loader: `loader(data_dir, seed, **options)`; `seed` draws what is simulated, and is ignored
            by real data.
        simulated: whether `seed` changes the data.
        options: the names of further options that the loader takes (a table's files, for one).
    """

    name: str
    loader: Callable[..., CrowdDataset]
    summary: str
    simulated: bool = False
    options: tuple[str, ...] = ()

    def load(
        self, data_dir: str | Path | None = None, seed: int = 0, **options: Any
    ) -> CrowdDataset:
        """Loads the dataset from `data_dir`, or from the cache, where it is downloaded once."""
        return self.loader(None if data_dir is None else Path(data_dir), seed, **options)


@dataclasses.dataclass(frozen=True)
class Suite:
    """A registered suite: runs that fill a table or a figure.

    Attributes:
        make: called with the command's options and a function that tells the user a line, makes
            what is not there yet and returns a line for each run that failed.
        in_all: whether `--suite=all` has it, and `--list` shows it.
    """

    name: str
    make: Callable[..., Sequence[str]]
    summary: str
    in_all: bool = True


_METHODS: dict[str, Method] = {}
_ENSEMBLES: list[Callable[..., Any]] = []
_DATASETS: dict[str, Dataset] = {}
_SUITES: dict[str, Suite] = {}
_SUITE_FILES: list[Callable[[Path], Sequence[Suite]]] = []


def _divided(
    options: Mapping[str, Any], names: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the options that have none of these names, and those that have."""
    rest = {name: value for name, value in options.items() if name not in names}
    return rest, {name: value for name, value in options.items() if name in names}


def register_method(name: str, *, summary: str, **fields: Any) -> Callable[[Factory], Factory]:
    """Returns a decorator that registers a class or function as a method.

    Several of these decorators register variants.
    """

    def decorate(factory: Factory) -> Factory:
        _add(_METHODS, Method(name=name, factory=factory, summary=summary, **fields), "factory")
        return factory

    return decorate


def register_ensemble(factory: Callable[..., Any]) -> None:
    """Registers the class that averages several fits: `factory(estimator, size=, seed=)`."""
    _ENSEMBLES[:] = [factory]


def register_dataset(name: str, *, summary: str, **fields: Any) -> Callable[[Factory], Factory]:
    """Returns a decorator that registers a loader as the dataset `name`."""

    def decorate(loader: Factory) -> Factory:
        _add(_DATASETS, Dataset(name=name, loader=loader, summary=summary, **fields), "loader")
        return loader

    return decorate


def _add(table: dict[str, Any], entry: Any, function: str) -> None:
    """Adds an entry under its name; ValueError if that is another function's."""
    earlier = table.setdefault(entry.name, entry)
    if getattr(earlier, function) is not getattr(entry, function):
        raise ValueError(f"{type(entry).__name__.lower()} {entry.name!r} is registered already")
    table[entry.name] = entry


def register_suite(suite: Suite) -> None:
    """Registers what `--suite` with its name makes."""
    _add(_SUITES, suite, "make")


def register_suite_files(reader: Callable[[Path], Sequence[Suite]]) -> None:
    """Registers what reads the suites of `--suite=FILE.toml`."""
    _SUITE_FILES[:] = [reader]


def _look_up(table: Mapping[str, Any], name: str, kind: str, argument: str = "") -> Any:
    if name not in table:
        names = sorted(table)
        close = (
            difflib.get_close_matches(name, names, n=3)
            or [full for full in names if difflib.get_close_matches(name, full.split("_"))][:3]
        )
        hint = f"Did you mean {' or '.join(close)}?" if close else "--list shows all names."
        raise UsageError(f"{argument or '--' + kind}: no {kind} is named {name!r}. {hint}")
    return table[name]


def check_preset(dataset: str | None, *presets: Iterable[str]) -> None:
    """Raises UsageError for a dataset that none of these presets is for."""
    names = sorted(set().union(*presets))
    if dataset is not None and dataset not in names:
        raise UsageError(
            f"preset: no presets for {dataset!r}. Datasets with presets: {', '.join(names)}."
        )


def method(name: str, argument: str = "--method") -> Method:
    """Returns the method of that name; UsageError suggests the closest names."""
    entry: Method = _look_up(_METHODS, name, "method", argument)
    return entry


def dataset(name: str) -> Dataset:
    """Returns the dataset of that name; UsageError suggests the closest names."""
    entry: Dataset = _look_up(_DATASETS, name, "dataset")
    return entry


def methods() -> list[Method]:
    """Returns all registered methods by name."""
    return [_METHODS[name] for name in sorted(_METHODS)]


def datasets() -> list[Dataset]:
    """Returns all registered datasets by name."""
    return [_DATASETS[name] for name in sorted(_DATASETS)]


def suites() -> list[Suite]:
    """Returns the registered suites in the order in which they were registered."""
    return list(_SUITES.values())


def chosen_suites(names: Sequence[str]) -> list[Suite]:
    """Returns the suites of those names, each once.

    "all" is every one that `--list` shows; FILE.toml is those of a file.

    Raises:
        UsageError: an unknown name.
        DataError: a file without suites.
    """
    chosen: dict[str, Suite] = {}
    for name in names:
        if name.endswith(".toml") and _SUITE_FILES:
            suites = _SUITE_FILES[0](Path(name))
        elif name == "all" and _SUITES:
            suites = [suite for suite in _SUITES.values() if suite.in_all]
        else:
            suites = [_look_up(_SUITES, name, "suite")]
        chosen |= {suite.name: suite for suite in suites}
    return list(chosen.values())
