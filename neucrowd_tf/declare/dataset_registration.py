"""Decorators by which a module registers datasets and suites.

`neucrowd_tf.declare.registry` looks them up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from neucrowd_tf.datasets.core import CrowdDataset
from neucrowd_tf.declare.declarations import whole
from neucrowd_tf.declare.registration import add
from neucrowd_tf.declare.types import Texts

Loader = TypeVar("Loader", bound=Callable[..., CrowdDataset])


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A registered dataset.

    Attributes:
        loader: `loader(data_dir, seed, **options)` returns a `CrowdDataset`; `seed` draws what is
            simulated, and is ignored by real data.
        simulated: whether `seed` changes the data.
        options: the names of further options that the loader takes (a table's files, for one).
        module: the module that registers it.
    """

    name: str
    loader: Callable[..., CrowdDataset]
    summary: str
    simulated: bool = False
    options: tuple[str, ...] = ()
    module: str = ""

    def load(
        self, data_dir: str | Path | None = None, seed: int = 0, **options: object
    ) -> CrowdDataset:
        """Returns the `CrowdDataset` from `data_dir`, or from the cache (downloaded once).

        Raises:
            UsageError: a seed that is no whole number from 0.
        """
        whole(0).check("seed", seed)
        return self.loader(None if data_dir is None else Path(data_dir), seed, **options)


@dataclasses.dataclass(frozen=True)
class Suite:
    """A registered suite: runs that fill a table or a figure.

    Attributes:
        make: called with the command's options and a function that tells the user a line, makes
            what is not there yet and returns a line for each run that failed.
        in_all: whether `--suite=all` has it, and `--list` shows it.
        module: the module that registers it.
    """

    name: str
    make: Callable[..., Texts]
    summary: str
    in_all: bool = True
    module: str = ""


DATASETS: dict[str, Dataset] = {}
SUITES: dict[str, Suite] = {}


def register_dataset(
    name: str, *, summary: str, module: str | None = None, **fields: Any
) -> Callable[[Loader], Loader]:
    """Returns a decorator that registers a loader as the dataset `name`.

    Args:
        name: as in `--dataset`.
        summary: one line for `--list`.
        module: the `__name__` of the module that registers it, where this is not the module of
            the loader.
        fields: further fields of `Dataset`.

    Raises:
        ValueError: another module has registered this name.
        TypeError: what is decorated is no class or function.
    """

    def decorate(loader: Loader) -> Loader:
        if not callable(loader):
            raise TypeError(f"{name!r}: expected a class or function, received {loader!r}")
        place = module or loader.__module__
        add(DATASETS, Dataset(name, loader, summary, module=place, **fields), "dataset")
        return loader

    return decorate


def register_suite(suite: Suite) -> None:
    """Registers what `--suite` with its name makes.

    Raises:
        ValueError: another module has registered this name.
    """
    add(SUITES, suite, "suite")
