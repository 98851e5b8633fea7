"""Flags of the commands: declared as fields of dataclasses, parsed by absl, listed by --help.

A command declares its flags once, in a frozen dataclass; flags that several commands share are
declared in a base class::

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Flags(TableOptions):
        '''Infers one label per item.'''

        annotations: Path = flag(help="Labels: CSV with task, worker, label.")
        seed: int = flag(0, least=0, help="Seed of random draws.")

`parse(Flags, argv)` returns the checked values. `--flagfile=FILE` reads flags from a file.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import dataclasses
import inspect
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from absl import flags as absl_flags

from neucrowd_tf.errors import UsageError

Values = TypeVar("Values")
_HELP = ("--help", "-help", "-h", "--helpfull", "--helpshort")


class HelpRequest(Exception):
    """`--help` was among the flags; the exception's text is the help."""


def flag(
    default: Any = dataclasses.MISSING,
    *,
    help: str,
    least: float | None = None,
    most: float | None = None,
    choices: Sequence[str] = (),
    parse: Callable[[str], Any] | None = None,
    name: str | None = None,
) -> Any:
    """Declares a flag as a field of a dataclass.

    The field's annotation is the flag's type: bool, int, float, str, Path, a `Literal` of words,
    `tuple[str, ...]` (separated by commas) or `tuple[tuple[str, Any], ...]` (name=value, may be
    repeated).

    Args:
        default: the value without the flag; a flag without a default is required.
        help: what it means: one or two sentences.
        least: the smallest accepted number.
        most: the largest accepted number.
        choices: the accepted words, if the annotation cannot be a `Literal` of them.
        parse: makes the value of a text, or raises ValueError; None converts to the field's type.
        name: the flag's name, if the field's name cannot be it.
    """
    metadata = {"help": help, "least": least, "most": most, "choices": choices, "parse": parse}
    return dataclasses.field(default=default, metadata={**metadata, "name": name})


def parse(kind: type[Values], argv: Sequence[str], command: str = "") -> Values:
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
    if any(item in _HELP for item in argv):
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
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        value = values[_name(field)].value
        if value is not None:
            chosen[field.name] = tuple(value) if isinstance(value, list) else value
        elif field.default is dataclasses.MISSING:
            raise UsageError(f"--{_name(field)} is missing: {field.metadata['help']}")
    return kind(**chosen)


def help_text(kind: type, command: str) -> str:
    """Returns a command's help: its description and each flag with its meaning and default."""
    return "\n".join(
        [
            f"usage: {command} --flag=value ...",
            "",
            _description(kind),
            _absl_flags(kind).get_help(include_special_flags=False),
            "  --flagfile: File of further flags, one per line.",
        ]
    )


def _description(kind: type) -> str:
    """Returns a class's docstring, or its name where Python drops docstrings (-OO)."""
    text = kind.__doc__ or ""
    return kind.__name__ if text.startswith(f"{kind.__name__}(") else inspect.cleandoc(text)


def _absl_flags(kind: type) -> absl_flags.FlagValues:
    """Returns absl's flags, in groups by the class that declares them."""
    values = absl_flags.FlagValues()
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for owner in kind.__mro__:
        title = "Flags" if owner is kind else _description(owner).partition("\n")[0].rstrip(".")
        for field in [
            fields.pop(name) for name in inspect.get_annotations(owner) if name in fields
        ]:
            name, repeated = _name(field), str(field.type).startswith("tuple[tuple")
            make: Any = absl_flags.MultiFlag if repeated else absl_flags.Flag
            boolean = str(field.type).startswith("bool")
            values[name] = make(_parser(field), None, name, None, _meaning(field), boolean=boolean)
            values.register_flag_by_module(title, values[name])
    return values


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


class _Converted(absl_flags.ArgumentParser):
    """Makes a flag's value of its text by a function."""

    def __init__(self, convert: Callable[[str], Any]) -> None:
        self.parse = convert  # type: ignore[method-assign]


def _parser(field: dataclasses.Field[Any]) -> absl_flags.ArgumentParser:
    """Returns what makes a field's value of a flag's text."""
    kind, limits = str(field.type), field.metadata
    if choices := _choices(field):
        return absl_flags.EnumParser(choices)
    if kind.startswith("bool"):
        return _Boolean()
    if limits["parse"] is not None:
        return _Converted(limits["parse"])
    if kind.startswith("int"):
        return _Whole(limits["least"], limits["most"])
    if kind.startswith("float"):
        return _Number(limits["least"], limits["most"])
    kinds = {"Path": _path, "tuple[tuple": pair, "tuple": _entries}
    return _Converted(next((kinds[start] for start in kinds if kind.startswith(start)), str))


@contextlib.contextmanager
def _expecting(kind: str) -> Iterator[None]:
    """Names the expected kind in the error about a text of another kind."""
    try:
        yield
    except ValueError:
        raise ValueError(f"must be {kind}") from None


class _Boolean(absl_flags.BooleanParser):
    def parse(self, argument: Any) -> Any:
        with _expecting("true or false"):
            return super().parse(argument)


class _Whole(absl_flags.IntegerParser):
    def convert(self, argument: Any) -> Any:
        with _expecting("a whole number"):
            return super().convert(argument)


class _Number(absl_flags.FloatParser):
    def convert(self, argument: Any) -> Any:
        with _expecting("a number"):
            if math.isfinite(value := super().convert(argument)):
                return value
            raise ValueError


def _path(text: str) -> Path:
    if not text or text.startswith("--"):
        raise ValueError("must be a path")
    return Path(os.path.expanduser(text))


def split_list(text: str) -> tuple[str, ...]:
    """Returns the entries of a flag's list: separated by commas, quoted as in a CSV if needed.

    The text `"Smith, A.",bot` has two entries.
    """
    try:
        (entries,) = csv.reader([text], skipinitialspace=True, strict=True) if text else ([""],)
    except (csv.Error, ValueError):  # a quotation mark within an entry
        entries = text.split(",")
    return tuple(entry.strip() for entry in entries)


def _entries(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry for entry in split_list(text) if entry))


def pair(text: str) -> tuple[str, Any]:
    """Returns the name and the value of `name=value`; ValueError for any other text."""
    name, sign, value = (side.strip() for side in text.partition("="))
    if not sign or not re.fullmatch(r"(\w+\.)?[A-Za-z]\w*", name):
        raise ValueError("must be name=value")
    return name, parse_value(value)


def from_values(kind: type[Values], values: Mapping[str, Any]) -> Values:
    """Returns flags from values of Python; texts are parsed as on a command line.

    None stands for the default.

    Raises:
        UsageError: an unknown name, or a value that cannot be used.
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    converted = {}
    for name, value in values.items():
        if name not in fields:
            raise UsageError(f"--{name}: no such flag")
        if value is None:
            continue
        try:
            converted[name] = _convert(fields[name], value)
        except ValueError as error:
            raise UsageError(f"--{name}: {error}, received {value!r}") from None
    return kind(**converted)


def _convert(field: dataclasses.Field[Any], value: Any) -> Any:
    kind = str(field.type)
    if isinstance(value, list | tuple) and kind.startswith("tuple"):
        return tuple(value) if "float" in kind else tuple(map(str, value))
    if isinstance(value, bool):
        fits = kind.startswith("bool")
    elif isinstance(value, int | float):
        fits = "int" in kind or "float" in kind
    else:
        fits = isinstance(value, str | Path)
    if not fits:
        raise ValueError(f"must be {' or '.join(_choices(field)) or f'a value of type {kind}'}")
    return _parser(field).parse(value if isinstance(value, bool) else str(value))


def _choices(field: dataclasses.Field[Any]) -> tuple[str, ...]:
    """Returns the accepted words: those declared, or those of a `Literal`."""
    return tuple(field.metadata["choices"]) or tuple(re.findall(r"'(\w+)'", str(field.type)))


def _name(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata.get("name") or field.name)


def _meaning(field: dataclasses.Field[Any]) -> str:
    default, text = field.default, str(field.metadata["help"])
    if choices := _choices(field):
        text = f"<{'|'.join(choices)}>: {text}"
    if default is dataclasses.MISSING:
        return f"{text} Required."
    if default is None or default == () or isinstance(default, bool) or "Default:" in text:
        return text
    return f"{text} Default: {default}."
