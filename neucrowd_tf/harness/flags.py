"""What a command line says, as one checked value; the flags themselves are in
:mod:`neucrowd_tf.harness.options`, what they cannot be together in
:mod:`neucrowd_tf.harness.flag_rules`.
"""

from __future__ import annotations

import ast
import codecs
import contextlib
import difflib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import flags

from neucrowd_tf.errors import UsageError
from neucrowd_tf.harness.flag_rules import check
from neucrowd_tf.harness.options import NAME_LISTS, NAMES, PAIRS, PATHS, Options

__all__ = ["NAMES", "Options", "check", "parse", "parse_value"]


def parse_value(text: str) -> Any:
    """Returns a hyper-parameter's value: a literal of JSON or Python where it is one, else the
    text.
    """
    for reader in (json.loads, ast.literal_eval):
        # What is nested too deeply, or has thousands of digits, is no literal either.
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            if _is_plain(value := reader(text)):
                return value
    return text


def _is_plain(value: Any) -> bool:
    """Whether config.json can hold a value: no bytes, sets or complex numbers."""
    if isinstance(value, dict):
        return all(map(_is_plain, (*value, *value.values())))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, (str, int, float, type(None)))


def _has_half(value: Any) -> bool:
    """Whether a text in a value holds half a surrogate pair, which UTF-8 does not have."""
    if isinstance(value, dict):
        return any(map(_has_half, (*value, *value.values())))
    if isinstance(value, (list, tuple)):
        return any(map(_has_half, value))
    return isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value)


def _named_values(flag: str, items: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    values: dict[str, Any] = {}
    for item in items:
        name, sign, value = item.partition("=")
        if not sign or not re.fullmatch(r"(\w+\.)?[A-Za-z]\w*", name.strip()):
            raise UsageError(f"--{flag}: expected name=value, received {item!r}")
        values[name.strip()] = parse_value(value.strip())
        if _has_half(values[name.strip()]):
            raise UsageError(
                f"--{flag}: expected text in UTF-8, received half a character: {item!a}"
            )
    return tuple(values.items())


def _path(flag: str, text: str | None) -> Path | None:
    if text == "":
        raise UsageError(f"--{flag}: expected a path, received nothing")
    if text is not None and text.startswith("--"):  # the next flag, as `--output_dir --resume`
        raise UsageError(f"--{flag}: expected a path, received {text!r}; ./{text} is one")
    if text is not None and "\0" in text:
        raise UsageError(f"--{flag}: expected a path, received one with a NUL in it, {text!r}")
    if _has_half(text):
        raise UsageError(f"--{flag}: expected a path in UTF-8, received {text!a}")
    return None if text is None else Path(os.path.expanduser(text))


# What absl says of a flag, and what this project expects of it.
_VALUE = r"flag --(?P<flag>\w+)=(?P<given>.*?): "
_ABSL = (
    (_VALUE + r"(?P<value>.*) is not (?P<kind>an? .*)", "{kind}, received {value}"),
    (_VALUE + "value should be one of <(?P<names>.*)>", "one of {names}, received {given!r}"),
    (_VALUE + "invalid literal for int.*: (?P<value>.*)", "a whole number, received {value}"),
    (_VALUE + "could not convert string to float: (?P<value>.*)", "a number, received {value}"),
    (_VALUE + "Exceeds the limit.*", "a whole number, received one of thousands of digits"),
    (_VALUE + "Unable to parse the value .*", "names separated by commas, received {given!r}"),
    (_VALUE + r"\('Non-boolean argument .*\)", "true or false, received {given!r}"),
    (r"Missing value for flag --(?P<flag>\w+)", "a value, received none"),
    (r"--?(?P<flag>no\w+)=(?P<given>.*) does not take an argument", "no value, received {given!r}"),
)


def _one_line(error: Exception) -> str:
    """Returns absl's message on one line, with the closest flag where the name is unknown."""
    text = " ".join(str(error).split())
    unknown = re.search(r"Unknown command line flag '([^']+)'", text)
    if unknown:
        close = difflib.get_close_matches(unknown[1], NAMES, n=1)
        hint = f"; did you mean --{close[0]}?" if close else ""
        return f"--{unknown[1]}: expected a flag of this command, received an unknown one{hint}"
    for pattern, expected in _ABSL:
        if found := re.fullmatch(pattern, text):
            return f"--{found['flag']}: expected {expected.format(**found.groupdict())}"
    return text


def parse(argv: Sequence[str], values: flags.FlagValues = flags.FLAGS) -> Options:
    """Returns what a command line (its first item is the program) says.

    Raises:
        UsageError: one line that names the flag, what was expected and what was received.
    """
    for item in argv:  # absl would wait for a pipe
        name, _, path = item.lstrip("-").partition("=")
        file = Path(os.path.expanduser(path))
        if name == "flagfile" and path and not (file.is_file() and os.access(file, os.R_OK)):
            raise UsageError(
                f"--flagfile: expected a file of flags that can be read, received {path!r}"
            )
        if name == "flagfile" and path and file.read_bytes().startswith(codecs.BOM_UTF8):
            raise UsageError(
                f"--flagfile: expected text without a byte order mark, received {path!r} with one;"
                " save it as plain UTF-8"
            )
    try:
        rest = values(list(argv))
    except UnicodeDecodeError:
        raise UsageError("--flagfile: expected text in UTF-8, received other bytes") from None
    except (flags.Error, ValueError) as error:
        raise UsageError(_one_line(error)) from None
    except OSError as error:
        if error.filename is None:  # of stdout, on which --help is shown
            raise
        raise UsageError(f"--flagfile: {error.strerror}: {error.filename}") from None
    if len(rest) > 1:
        raise UsageError(f"expected flags only, received {rest[1]!r}")
    given = {name: values[name].value for name in NAMES}
    for name in NAME_LISTS:
        given[name] = tuple(dict.fromkeys(item.strip() for item in given[name] if item.strip()))
    for name in PAIRS:
        given[name] = _named_values(name, given[name] or [])
    for name in ("weights", "target", "gold"):
        if given[name] is not None:
            given[name] = os.path.expanduser(given[name])
            others = (item for item in given["hparam"] if item[0] != name)
            given["hparam"] = (*others, (name, given[name]))
    given |= {name: _path(name, given[name]) for name in PATHS}
    try:
        return check(Options(**given))
    except OSError as error:  # a path that is too long, say
        received = f"{error.filename or 'one'} ({error.strerror or error})"
        raise UsageError(f"expected paths that can be looked up, received {received}") from None
