"""Flags of the commands: parsed by absl and listed by --help.

A command declares its flags once, in a frozen dataclass (`neucrowd_tf.declare.declarations`);
flags that several commands share are declared in a base class. `parse(Flags, argv)` returns the
checked values. `--flagfile=FILE` reads flags from a file. A flag's type is bool, int, float, str,
Path, a `Literal` of words, `tuple[str, ...]` (separated by commas) or `tuple[tuple[str, Any], ...]`
(name=value, may be repeated).
"""

from __future__ import annotations

import ast
import contextlib
import csv
import dataclasses
import inspect
import itertools
import json
import os
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from absl import flags as absl_flags

from neucrowd_tf.declare.declarations import Constraint, Declaration, declared_by_name, number
from neucrowd_tf.declare.types import NamedValues, Texts
from neucrowd_tf.errors import UsageError

Values = TypeVar("Values")
_HELP = ("--help", "-help", "-h", "--helpfull", "--helpshort")


class HelpRequest(Exception):
    """`--help` was among the flags; the exception's text is the help."""


def parse(kind: type[Values], argv: Texts, command: str = "") -> Values:
    """Returns the values of a command line.

    Args:
        kind: a dataclass of flags; its docstring describes the command.
        argv: the arguments, without the program's name.
        command: how the command is called, for the help text.

    Raises:
        UsageError: an unknown flag, a value that cannot be used, or a positional argument; one
            line.
        HelpRequest: `--help` is among the arguments.
    """
    if not set(_HELP).isdisjoint(argv):
        raise HelpRequest(help_text(kind, command))
    values = _absl_flags(kind)
    try:
        _, *rest = values([command, *argv])
    except (absl_flags.Error, ValueError) as error:
        reason = " ".join(str(error).removeprefix("flag ").removeprefix("ERROR:: ").split())
        if isinstance(error, (absl_flags.CantOpenFlagFileError, UnicodeDecodeError)):
            reason = f"--flagfile: {reason}. Name a text file in UTF-8."
        raise UsageError(reason) from None
    if rest:
        raise UsageError(f"{rest[0]!r} is not a flag. Write --name=value; --help lists the flags.")
    chosen = {}
    flags = declared_by_name(kind)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        value = values[field.name].value
        if value is not None:
            chosen[field.name] = tuple(value) if isinstance(value, list) else value
        elif field.default is dataclasses.MISSING:
            raise UsageError(f"--{field.name} is missing: {flags[field.name].meaning}")
    return kind(**chosen)


def help_text(kind: type, command: str) -> str:
    """Returns a command's help: its description and each flag with its meaning and default."""
    flags = _absl_flags(kind).get_help(include_special_flags=False)
    last = "  --flagfile: File of further flags, one per line."
    return f"usage: {command} --flag=value ...\n\n{described(kind)}\n{flags}\n{last}"


def described(kind: type) -> str:
    """Returns a class's docstring, "" without one: dataclasses then have a signature there."""
    text = inspect.cleandoc(kind.__doc__ or "")
    if text.startswith(f"{kind.__name__}("):
        return ""
    return text


def flag_groups(kind: type) -> dict[str, dict[str, str]]:
    """Returns the meaning of each flag by name, in groups by the class that declares them."""
    flags = declared_by_name(kind)
    groups: dict[str, dict[str, str]] = {}
    for owner in kind.__mro__:
        title = "Flags"
        if owner is not kind:
            title = described(owner).partition("\n")[0].rstrip(".") or owner.__name__
        for name in filter(flags.__contains__, inspect.get_annotations(owner)):
            groups.setdefault(title, {})[name] = _meaning(flags.pop(name))
    return groups


def _absl_flags(kind: type) -> absl_flags.FlagValues:
    """Returns absl's flags in their groups."""
    values = absl_flags.FlagValues()
    flags = declared_by_name(kind)
    for title, meanings in flag_groups(kind).items():
        for name, meaning in meanings.items():
            flag = flags[name]
            make: Any = absl_flags.MultiFlag if tuple in _entry_kinds(flag) else absl_flags.Flag
            values[name] = make(
                _parser(flag), None, name, None, meaning, boolean=bool in flag.kinds
            )
            values.register_flag_by_module(title, values[name])
    return values


def _entry_kinds(flag: Declaration) -> tuple[Any, ...]:
    """Returns the types of the entries of a tuple: `tuple` if these are tuples themselves."""
    tuples = [kind for kind in flag.kinds if typing.get_origin(kind) is tuple]
    entries = itertools.chain.from_iterable(map(typing.get_args, tuples))
    return tuple(typing.get_origin(entry) or entry for entry in entries if entry is not ...)


def parse_value(text: str) -> Any:
    """Returns the value of a hyper-parameter: a JSON or Python literal, otherwise the text."""
    for read in (json.loads, ast.literal_eval):
        # Literals that JSON cannot write (bytes, sets), that are nested too deeply or that have
        # thousands of digits are texts too.
        with contextlib.suppress(ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            value = read(text)
            json.dumps(value)
            return value
    return text


_TRUTH_VALUE = Constraint("true or false", lambda _: True)


class _Parser(absl_flags.ArgumentParser):
    """Makes a flag's value of its text by a function, and checks it by a rule if there is one."""

    def __init__(self, convert: Callable[[str], Any], rule: Constraint | None = None) -> None:
        self._convert = convert
        self._rule = rule
        if rule not in (None, _TRUTH_VALUE):
            self.syntactic_help = rule.expected.removeprefix("None or ")

    def parse(self, argument: Any) -> Any:
        if isinstance(argument, str) and re.match(r"--[a-z]", argument):
            raise ValueError("must be a value, not a flag")
        if self._rule is None:
            return self._convert(argument)
        with contextlib.suppress(ValueError):
            if self._rule.holds(value := self._convert(argument)):
                return value
        raise ValueError(f"must be {self._rule.expected.removeprefix('None or ')}")


# How the text of a flag of one of these types is read, and the rule of flags that declare none.
_SCALARS: dict[type, tuple[Callable[[str], Any], Constraint]] = {
    bool: (absl_flags.BooleanParser().parse, _TRUTH_VALUE),
    int: (int, Constraint("a whole number", lambda _: True)),
    float: (float, number()),
}


def _parser(flag: Declaration) -> absl_flags.ArgumentParser:
    """Returns what makes a flag's value of its text."""
    if flag.rule and flag.rule.choices:
        return absl_flags.EnumParser(flag.rule.choices)
    if flag.convert is not None:
        return _Parser(flag.convert)
    for kind, (convert, rule) in _SCALARS.items():
        if kind in flag.kinds:
            return _Parser(convert, rule if kind is bool else flag.rule or rule)
    entries = _entry_kinds(flag)
    if Path in flag.kinds:
        return _Parser(_path)
    if tuple in entries:
        return _Parser(pair)
    if entries:
        return _Parser(_entries)
    return _Parser(str)


def _path(text: str) -> Path:
    if not text:
        raise ValueError("must be a path")
    return Path(os.path.expanduser(text))


def split_list(text: str) -> tuple[str, ...]:
    """Returns the entries of a flag's list: separated by commas, quoted as in a CSV if needed.

    The text `"Smith, A.",bot` has two entries.
    """
    try:
        (entries,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):  # a quotation mark within an entry
        entries = text.split(",")
    return tuple(map(str.strip, entries or [""]))


def _entries(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, split_list(text))))


def pair(text: str) -> tuple[str, Any]:
    """Returns the name and the value of `name=value`; ValueError for any other text."""
    name, sign, value = map(str.strip, text.partition("="))
    if not sign or not re.fullmatch(r"(\w+\.)?[A-Za-z]\w*", name):
        raise ValueError("must be name=value")
    return name, parse_value(value)


def from_values(kind: type[Values], values: NamedValues) -> Values:
    """Returns flags from values of Python; texts are parsed as on a command line.

    None stands for the default.

    Raises:
        UsageError: an unknown name, or a value that cannot be used.
    """
    flags = declared_by_name(kind)
    converted = {}
    for name, value in values.items():
        if name not in flags:
            raise UsageError(f"--{name}: no such flag")
        if value is None:
            continue
        try:
            converted[name] = _convert(flags[name], value)
        except ValueError as error:
            raise UsageError(f"--{name}: {error}, received {value!r}") from None
    return kind(**converted)


def _convert(flag: Declaration, value: object) -> Any:
    entries = _entry_kinds(flag)
    if isinstance(value, list | tuple) and entries:
        return tuple(value if float in entries else map(str, value))
    if isinstance(value, bool):
        fits = bool in flag.kinds
    elif isinstance(value, int | float):
        fits = not {int, float}.isdisjoint((*flag.kinds, *entries))
    else:
        fits = isinstance(value, str | Path)
    if not fits:
        choices = flag.rule.choices if flag.rule else ()
        raise ValueError(f"must be {' or '.join(choices) or f'a value of type {_spelt(flag)}'}")
    return _parser(flag).parse(value if isinstance(value, bool) else str(value))


def _spelt(flag: Declaration) -> str:
    """Returns a flag's types in words."""
    names = [kind.__name__ if isinstance(kind, type) else str(kind) for kind in flag.kinds]
    return " | ".join(names + ["None"] * (flag.default is None)).replace("typing.", "")


def _meaning(flag: Declaration) -> str:
    default = flag.default
    text = flag.meaning
    if flag.rule and flag.rule.choices:
        text = f"<{'|'.join(flag.rule.choices)}>: {text}"
    if default is dataclasses.MISSING:
        return f"{text} Required."
    if default is None or default == () or isinstance(default, bool) or "Default:" in text:
        return text
    return f"{text} Default: {default}."
