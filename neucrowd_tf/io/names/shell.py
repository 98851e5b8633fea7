"""Names within flags as a shell takes them, for messages that say which flag is the way out."""

from __future__ import annotations

import shlex
from typing import Any

from neucrowd_tf.io.names.ids import as_list
from neucrowd_tf.io.names.spelling import has_unseen


def quoted(text: str) -> str:
    r"""Returns a text as a shell takes it that can be copied from a message: characters that cannot
    be seen there, and spaces that would become one, are escaped as Bash and Zsh have it
    (`$'\u200b'`).
    """
    if text.isprintable() and not has_unseen(text) and "  " not in text:
        return shlex.quote(text)
    return f"$'{''.join(map(_escaped, text))}'"


def _escaped(sign: str) -> str:
    if sign in "'\\":
        return f"\\{sign}"
    if sign.isprintable() and sign != " " and not has_unseen(sign):
        return sign
    return f"\\u{ord(sign):04x}" if ord(sign) < 1 << 16 else f"\\U{ord(sign):08x}"


def flag(name: str, value: Any) -> str:
    """Returns a flag with a value."""
    return f"--{name}={quoted(str(value))}"


def ignore(column: Any) -> str:
    """Returns the flag that leaves a column out."""
    return flag("ignore_columns", as_list([str(column)]))
