"""The installed command, `neucrowd` (`python -m neucrowd_tf`): one of `COMMANDS` and its arguments.

What a command needs is imported when it is known which one: those that work on labels alone start
in half a second.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from importlib.metadata import version
from typing import NoReturn

from neucrowd_tf.io.command_line import PROBLEM, STDOUT, run, write_output
from neucrowd_tf.stopping import while_loading

RUN = "run"
# The module whose `main` is the command's, and what it does. `neucrowd X` is `python -m
# neucrowd_tf.X`, but for `run`.
COMMANDS = {
    "report": ("report.__main__", "a page on a crowd's labels: agreement, whom to trust, doubts"),
    "aggregate": ("aggregate", "one label a task from the labels of many annotators"),
    "relabel": ("relabel", "which tasks to label again, and whom to ask"),
    "convert": ("convert", "an annotation tool's export as annotations.csv"),
    RUN: ("harness.cli", "train and compare methods on a dataset or tables of one's own"),
    "predict": ("predict", "scores items with a model that a run has exported"),
}
EXAMPLES = """\
  neucrowd report --annotations=export.json --output=report.html
  neucrowd aggregate --annotations=export.json --output=labels.csv
  neucrowd relabel --annotations=export.json --budget=50 --output=relabel.csv
  neucrowd run --dataset=table --texts=texts.csv --annotations=export.json --method=auto --export
  neucrowd predict --model=runs/table/auto/seed-0/saved_model --texts=texts.csv --output=scores.csv
  neucrowd run --list"""


def overview() -> str:
    """Returns what `neucrowd --help` says."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(
        [
            "neucrowd COMMAND --flag=value ...",
            "",
            *lines,
            "",
            "`neucrowd COMMAND --help` lists its flags. --annotations takes CSV, JSON or an",
            "annotation tool's export as it is. Flags without a command are those of `run`.",
            "",
            EXAMPLES,
        ]
    )


def _say(text: str) -> int:
    """Prints a text; returns the exit code."""

    def shown() -> list[str]:
        write_output(STDOUT, f"{text}\n")
        return []

    return run(shown)


def main(argv: list[str]) -> int:
    """Runs what the arguments ask for; returns the exit code."""
    first = argv[0] if argv else "--help"
    if first == "--version":
        return _say(f"neucrowd {version('neucrowd-tf')}")
    if first in ("--help", "-h", "-help", "help"):
        return _say(overview())
    if not first.startswith("-") and first not in COMMANDS:
        close = difflib.get_close_matches(first, COMMANDS, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        names = ", ".join(COMMANDS)
        sys.stderr.write(f"error: expected flags or one of {names}, received {first!r}{hint}\n")
        return PROBLEM
    if first.startswith("-") or first == RUN:
        from neucrowd_tf.harness.cli import start

        sys.argv = [sys.argv[0], *argv[first == RUN :]]
        start(installed=True)
    module = importlib.import_module(f"neucrowd_tf.{COMMANDS[first][0]}")
    sys.argv = [f"neucrowd {first}", *argv[1:]]
    return int(module.main(argv[1:]))


def console_main() -> NoReturn:
    """The installed command."""
    while_loading()
    raise SystemExit(main(sys.argv[1:]))


if __name__ == "__main__":
    console_main()
