"""The installed command `neucrowd` (`python -m neucrowd_tf`), which runs one of `COMMANDS`.

The module of a command is imported when it is called: those for labels alone start quickly.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import NoReturn

from neucrowd_tf.cli.signals import end_at_signals

if __name__ == "__main__":
    end_at_signals()  # also while the rest loads

from neucrowd_tf.cli.command_line import PROBLEM, run, say
from neucrowd_tf.cli.commands import call
from neucrowd_tf.names import did_you_mean

RUN = "run"
# What each command does.
COMMANDS = {
    "report": "write an HTML page on a crowd's labels: agreement, annotators, items to check",
    "aggregate": "infer one label per item from the labels of many annotators",
    "relabel": "list the labels to collect next: items, annotators and reasons",
    "merge": "add the new labels to the table of labels",
    "gold": "draw items that are worth a gold label",
    "convert": "write an annotation tool's export as annotations.csv",
    RUN: "train and compare methods on a dataset or your own tables",
    "predict": "score items with a model that a run has exported",
}
HELP = """\
`neucrowd COMMAND --help` lists its flags. --annotations takes CSV, JSON or an
annotation tool's export as it is. Flags without a command are those of `run`."""


def overview() -> str:
    """Returns the text of `neucrowd --help`."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {text}" for name, text in COMMANDS.items()]
    return "\n".join(["neucrowd COMMAND --flag=value ...", "", *lines, "", HELP])


def main(argv: list[str]) -> int:
    """Runs the command that the arguments name; returns the exit code."""
    if argv:
        first = argv[0]
    else:
        first = "--help"
    if first == "--version":
        return run(lambda: say(f"neucrowd {version('neucrowd-tf')}"))
    if first == "help" and len(argv) > 1:  # help COMMAND is COMMAND --help
        first = argv[1]
        argv = [argv[1], "--help"]
    if first in ("--help", "-h", "-help", "help"):
        return run(lambda: say(overview()))
    if not first.startswith("-") and first not in COMMANDS:
        hint = did_you_mean(first, COMMANDS)
        text = f"no command {first!r}. {hint} Commands: {', '.join(COMMANDS)}."
        sys.stderr.write(f"error: {' '.join(text.split())}\n")
        return PROBLEM
    if first.startswith("-") or first == RUN:
        from neucrowd_tf.cli.runs.run_command import main as run_main

        return run_main(argv[first == RUN :])
    return call(first, argv[1:])


def console_main() -> NoReturn:
    """The installed command."""
    end_at_signals()
    raise SystemExit(main(sys.argv[1:]))


if __name__ == "__main__":
    console_main()
