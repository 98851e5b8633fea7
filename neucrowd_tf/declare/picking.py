"""Entries, attributes and objects picked by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

Key = TypeVar("Key")
Entry = TypeVar("Entry")
Result = TypeVar("Result")


def starting_with(names: Iterable[str], start: str | tuple[str, ...]) -> list[str]:
    """Returns the names that begin with a text, or one of several."""
    return [name for name in names if name.startswith(start)]


def entries_of(entries: Mapping[Key, Entry], names: Iterable[Key]) -> dict[Key, Entry]:
    """Returns the entries of those names that a mapping has, in the order of the names."""
    return {name: entries[name] for name in names if name in entries}


def mapped(function: Callable[[Entry], Result], entries: Mapping[Key, Entry]) -> dict[Key, Result]:
    """Returns what a function makes of each entry of a mapping."""
    return {name: function(entry) for name, entry in entries.items()}


def by_name(values: Iterable[Entry]) -> dict[str, Entry]:
    """Returns objects by their attribute `name`."""
    return {value.name: value for value in values}  # type: ignore[attr-defined]


def of_type(values: Iterable[object], kind: type[Entry]) -> list[Entry]:
    """Returns the objects of a type."""
    return [value for value in values if isinstance(value, kind)]


def having(values: Iterable[Entry], **attributes: object) -> list[Entry]:
    """Returns the objects of which some attributes have these values."""
    chosen = list(attributes.items())
    return [x for x in values if all(getattr(x, name) == value for name, value in chosen)]


def attributes_of(value: object, names: Iterable[str]) -> dict[str, Any]:
    """Returns an object's attributes of some names by name."""
    return {name: getattr(value, name) for name in names}
