"""The commands, two files each: flags, and what is read and written.

The second is imported when the flags have been parsed, so that help and errors come at once.
"""

from __future__ import annotations

import importlib

from neucrowd_tf.cli.command_line import run
from neucrowd_tf.declare.flag_parsing import parse
from neucrowd_tf.declare.types import Texts
from neucrowd_tf.io.roles import RUNNING
from neucrowd_tf.io.schema import TableOptions

LABEL_COMMANDS = ("aggregate", "convert", "gold", "merge", "predict", "relabel", "report")


def flags_of(name: str) -> type[TableOptions]:
    """Returns a command's declaration of flags: the class `Aggregate` of `aggregate_flags.py`."""
    module = importlib.import_module(f"{__name__}.{name}_flags")
    kind: type[TableOptions] = getattr(module, name.capitalize())
    return kind


def call(name: str, argv: Texts) -> int:
    """Runs a command; returns the exit code.

    Args:
        name: the command's, which is also its module's. `run(flags)` there returns notes for
            standard error.
        argv: its flags.
    """
    RUNNING.set((name, *argv))

    def command() -> list[str]:
        flags = parse(flags_of(name), argv, f"neucrowd {name}")
        notes: list[str] = importlib.import_module(f"{__name__}.{name}").run(flags)
        return notes

    return run(command)
