"""All suites in one place, read from the files in `suites/`.

A section there is a suite. Its keys are the fields of `Suite`, words separated by spaces, and, for
all of its cases, what a case may say; `cases` lists what is different between them. A case says
`datasets`, `methods`, `setting`, `seeds`, `first_seed`, `x`; flags of the command (`OPTIONS`); all
else is a hyper-parameter, and names the setting where nothing else does. A list of `x` is a case
for each, with it in place of "{x}". A word $name stands for those under `names`, `printed` for
rows of other tables ("table dataset method"), or a whole table by name.

A map has `axes`: names, their values and what each value sets. A case is then one for each
combination of values, with a setting such as "items=60,labels=1" before its own; `at` names the
axes' values that it has, if not all. `rivals` has the simple rivals of each method of the map.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from neucrowd_tf.cli.runs.options import SCARCITY
from neucrowd_tf.declare import registry
from neucrowd_tf.declare.declarations import declared_by_name
from neucrowd_tf.declare.picking import entries_of
from neucrowd_tf.declare.settings import settings_in
from neucrowd_tf.declare.types import NamedValues
from neucrowd_tf.errors import DataError, one_line
from neucrowd_tf.names import among, without
from reproduction import smoke
from reproduction.printed import TABLES, Table
from reproduction.run import run_suite
from reproduction.suite import Analysis, Case, Suite

# In the order in which they are listed.
FILES = ("neucrowd", "dasc", "crowding", "iced", "others", "maps")
OPTIONS = (
    *("evaluation", "folds", "repeats", "dataset_option", "curves", "tune", "tune_by", "bases"),
    *SCARCITY,
)
_CASE = ("datasets", "methods", "setting", "seeds", "first_seed", "x")
_SUITE = without(declared_by_name(Suite), ["file"])


def read_file(path: Path) -> list[registry.Suite]:
    """Returns the suites of a user's file, as `--suite=FILE.toml` runs them.

    Raises:
        DataError: no such file, or not a file of suites.
    """
    try:
        suites = [dataclasses.replace(suite, file=str(path)) for suite in read(path)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: not a file of suites ({type(error).__name__}: {one_line(error)})."
            " docs/howto/adding_a_method.md shows one."
        ) from None
    return list(map(_registered, suites))


def _registered(suite: Suite) -> registry.Suite:
    return registry.Suite(suite.name, partial(run_suite, suite), suite.title, module=__name__)


def read(path: Path) -> Iterator[Suite]:
    """Yields the suites of a file."""
    sections = settings_in(path)
    names = sections.pop("names", {})
    for name, section in sections.items():
        if Path(name).name != name:
            raise ValueError(f"the suite {name!r} has no name for a file")
        rows = section.pop("cases", ({},) if "methods" in section else ())
        fields = entries_of(section, _SUITE)
        for key, meaning in _MEANINGS.items():
            if key in fields:
                fields[key] = meaning(fields[key], names)
        cases: list[Case] = []
        for row in rows:
            for cell in _cells({**entries_of(section, without(section, fields)), **row}):
                cases += _cases(cell, names)
        yield Suite(name, cases=tuple(cases), **fields)


def _cells(row: NamedValues) -> Iterator[NamedValues]:
    """Yields a map's row for each combination of its axes' values; any other row as it is."""
    row = dict(row)
    axes = row.pop("axes", {})
    at = row.pop("at", {})
    chosen = []
    for axis, choices in axes.items():
        values = at.get(axis, " ".join(choices)).split()
        chosen.append([(f"{axis}={value}", choices[value]) for value in values])
    for combination in itertools.product(*chosen):
        cell = dict(row)
        options = dict(row.get("dataset_option", {}))
        places = []
        for place, choice in combination:
            places.append(place)
            cell |= choice
            options |= choice.get("dataset_option", {})
        if options:
            cell["dataset_option"] = options
        if places:
            cell["setting"] = ",".join([*places, *filter(None, [row.get("setting")])])
        yield cell


def _cases(row: NamedValues, names: Mapping[str, str]) -> Iterator[Case]:
    """Yields a row's cases, one for each value of `x`."""
    values_of_x = row.get("x")
    if not isinstance(values_of_x, tuple):
        values_of_x = (values_of_x,)
    for x in values_of_x:
        values = {key: x if value == "{x}" else value for key, value in row.items()}
        if "dataset_option" in values:
            values["dataset_option"] = tuple(values["dataset_option"].items())
        hparams = entries_of(values, without(values, (*_CASE, *OPTIONS)))
        named = ",".join(f"{key}={value}" for key, value in hparams.items())
        yield Case(
            _words(row["datasets"], names),
            _words(row["methods"], names),
            values.get("setting", named).format(x=x),
            hparams=hparams,
            options=entries_of(values, among(values, OPTIONS)),
            x=x,
            **entries_of(values, ("seeds", "first_seed")),
        )


def _words(text: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the words of a text, with those that stand for others."""
    words: list[str] = []
    for word in text.split():
        if word.startswith("$"):
            words += _words(names[word[1:]], names)
        else:
            words.append(word)
    return tuple(words)


def _rivals(rivals: Mapping[str, str], names: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {method: _words(text, names) for method, text in rivals.items()}


def _printed(rows: Mapping[str, str] | str, names: Mapping[str, str]) -> Table:
    if isinstance(rows, str):
        return TABLES[rows]
    figures = {}
    for name, source in rows.items():
        table, dataset, method = source.split()
        figures[dataset, name] = TABLES[table][dataset, method]
    return figures


def _function(path: str, names: Mapping[str, str]) -> Analysis:
    """Returns `module.function` of this package."""
    module, name = path.split(".")
    return getattr(importlib.import_module(f"reproduction.{module}"), name)


# What a suite's fields mean that are no plain values.
_MEANINGS: dict[str, Callable[[Any, Mapping[str, str]], object]] = {
    "metrics": _words,
    "printed": _printed,
    "rivals": _rivals,
    "analysis": _function,
}
_PATHS = [Path(__file__).parent / "suites" / f"{name}.toml" for name in FILES]
SUITES = tuple(itertools.chain.from_iterable(map(read, _PATHS)))

for _suite in SUITES:
    registry.register_suite(_registered(_suite))
# Its methods are all that are registered.
registry.register_suite(
    registry.Suite("smoke", smoke.run, smoke.TITLE, in_all=False, module=__name__)
)
registry.register_suite_files(read_file)
