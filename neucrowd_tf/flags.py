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
import dataclasses
import difflib
import inspect
import json
import os
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from absl import flags as absl_flags

from neucrowd_tf.errors import UsageError

Values = TypeVar("Values")
COLUMN, WIDTH = 26, 96  # of the help text: where the meanings begin, and its width
LISTED = 60  # choices of fewer characters stand beside the flag's name
_HELP = ("--help", "-help", "-h", "--helpfull", "--helpshort")
_PLACEHOLDERS = {
    "int": "N",
    "float": "X",
    "Path": "PATH",
    "tuple[tuple": "NAME=VALUE",
    "tuple[str": "A,B",
}


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

    The field's annotation is the flag's type: bool, int, float, str, Path, `tuple[str, ...]`
    (separated by commas) or `tuple[tuple[str, Any], ...]` (name=value, may be repeated).

    Args:
        default: the value without the flag; a flag without a default is required.
        help: what it means: one or two sentences.
        least: the smallest accepted number.
        most: the largest accepted number.
        choices: the accepted words; empty for any text.
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
    values = absl_flags.FlagValues()
    fields = {_name(field): field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name, field in fields.items():
        repeated = str(field.type).startswith("tuple[tuple")
        make: Any = absl_flags.MultiFlag if repeated else absl_flags.Flag
        values[name] = make(
            _Parser(field), None, name, None, "", boolean=str(field.type).startswith("bool")
        )
    _check_flag_files(argv)
    try:
        _, *rest = values([command, *argv])
    except absl_flags.UnrecognizedFlagError as error:
        close = difflib.get_close_matches(error.flagname, fields, n=1)
        hint = f"Did you mean --{close[0]}?" if close else "--help lists the flags."
        raise UsageError(f"--{error.flagname}: no such flag. {hint}") from None
    except UnicodeDecodeError:
        raise UsageError("--flagfile: not text in UTF-8. Save the file as UTF-8.") from None
    except (absl_flags.Error, ValueError) as error:
        raise UsageError(" ".join(str(error).removeprefix("flag ").split())) from None
    if rest:
        raise UsageError(f"{rest[0]!r} is not a flag. Write --name=value; --help lists the flags.")
    chosen = {field.name: values[name].value for name, field in fields.items()}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    for name, field in fields.items():
        if field.name not in chosen and field.default is dataclasses.MISSING:
            raise UsageError(f"--{name} is missing: {field.metadata['help']}")
    return kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in chosen.items()})


def help_text(kind: type, command: str) -> str:
    """Returns a command's help: its description and each flag with its meaning and default."""
    lines = [f"usage: {command} --flag=value ...", "", inspect.cleandoc(kind.__doc__ or "")]
    shown: type = object
    for owner, field in _by_class(kind):
        if owner is not shown:
            heading = "Flags" if owner is kind else str(owner.__doc__).splitlines()[0].rstrip(".")
            lines += ["", f"{heading}:"]
            shown = owner
        head = f"  {_usage(field)}"
        body = textwrap.wrap(_meaning(field), WIDTH - COLUMN, break_on_hyphens=False)
        if len(head) > COLUMN - 2:
            lines.append(head)
            head = ""
        lines += [f"{head:{COLUMN}}{body[0]}", *(" " * COLUMN + line for line in body[1:])]
    return "\n".join(
        [*lines, f"  {'--flagfile=PATH':{COLUMN - 2}}File of further flags, one per line."]
    )


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


class _Parser(absl_flags.ArgumentParser):
    """Converts the text of one flag to its field's type."""

    def __init__(self, field: dataclasses.Field[Any]) -> None:
        self._kind, self._limits = str(field.type), field.metadata

    def parse(self, text: str) -> Any:  # type: ignore[override]
        kind, choices = self._kind, self._limits.get("choices")
        if kind.startswith("bool"):
            words = {"true": True, "1": True, "false": False, "0": False}
            return _expect(words.get(text.lower()), "true or false")
        if choices:
            return _expect(text if text in choices else None, " or ".join(choices))
        if convert := self._limits.get("parse"):
            return convert(text)
        if kind.startswith(("int", "float")):
            return self._number(text, float if kind.startswith("float") else int)
        if kind.startswith("tuple[tuple"):
            return pair(text)
        if kind.startswith("tuple"):
            return tuple(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))
        if kind.startswith("Path"):
            wrong = not text or "\0" in text or text.startswith("--")
            return _expect(None if wrong else Path(os.path.expanduser(text)), "a path")
        return text

    def _number(self, text: str, convert: type) -> Any:
        least, most = self._limits.get("least"), self._limits.get("most")
        bounds = [f"{word} {b}" for word, b in (("from", least), ("to", most)) if b is not None]
        value = None
        with contextlib.suppress(ValueError):
            number = convert(text)
            inside = (least is None or number >= least) and (most is None or number <= most)
            value = number if inside and abs(number) < float("inf") else None
        expected = "a number" if convert is float else "a whole number"
        return _expect(value, " ".join([expected, *bounds]))


def convert(field: dataclasses.Field[Any], value: Any) -> Any:
    """Returns a flag's value from its text or from a value of Python.

    Raises:
        ValueError: a text that cannot be the value, or another type.
    """
    kind, several = str(field.type), isinstance(value, (list, tuple))
    if isinstance(value, Path) or type(value) is int:
        if kind.startswith("Path" if isinstance(value, Path) else "int"):
            value = str(value)
    elif several and kind.startswith("tuple[str") and all(isinstance(x, str) for x in value):
        return tuple(value)
    _expect(value if isinstance(value, str) else None, f"a value of type {kind}")
    return _Parser(field).parse(value)


def _expect(value: Any, expected: str) -> Any:
    if value is None:
        raise ValueError(f"must be {expected}")
    return value


def pair(text: str) -> tuple[str, Any]:
    """Returns the name and the value of `name=value`; ValueError for any other text."""
    name, sign, rest = (side.strip() for side in text.partition("="))
    if not sign or not re.fullmatch(r"(\w+\.)?[A-Za-z]\w*", name):
        raise ValueError("must be name=value")
    value = parse_value(rest)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("must be text in UTF-8") from None
    return name, value


def _check_flag_files(argv: Sequence[str]) -> None:
    """Raises UsageError for a `--flagfile` that is not a readable file; absl waits for a pipe."""
    for item in argv:
        name, _, path = item.lstrip("-").partition("=")
        file = Path(os.path.expanduser(path))
        if name == "flagfile" and path and not (file.is_file() and os.access(file, os.R_OK)):
            raise UsageError(f"--flagfile={path}: not a file that can be read.")


def _name(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata.get("name") or field.name)


def _by_class(kind: type) -> Iterator[tuple[type, dataclasses.Field[Any]]]:
    """Yields the flags, the command's before those it shares, with the class that declares each."""
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for owner in kind.__mro__:
        for name in inspect.get_annotations(owner):
            if name in fields:
                yield owner, fields.pop(name)


def _usage(field: dataclasses.Field[Any]) -> str:
    kind, choices = str(field.type), field.metadata.get("choices")
    if kind.startswith("bool"):
        return f"--[no]{_name(field)}"
    value = next(
        (shown for start, shown in _PLACEHOLDERS.items() if kind.startswith(start)), "TEXT"
    )
    listed = "|".join(choices or ())
    return f"--{_name(field)}={listed if 0 < len(listed) < LISTED else value}"


def _meaning(field: dataclasses.Field[Any]) -> str:
    default, text = field.default, str(field.metadata.get("help", ""))
    choices = field.metadata.get("choices") or ()
    if len("|".join(choices)) >= LISTED:
        text = f"{text} One of {', '.join(choices)}."
    if default is dataclasses.MISSING:
        return f"{text} Required."
    if default is None or default == () or isinstance(default, bool) or "Default:" in text:
        return text
    return f"{text} Default: {default}."
