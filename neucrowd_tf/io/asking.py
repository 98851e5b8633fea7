"""Questions about a table's roles: the problem, and commands that may answer it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path

from neucrowd_tf.declare.picking import starting_with
from neucrowd_tf.declare.types import Texts
from neucrowd_tf.io.checks import Rejection, error
from neucrowd_tf.names import among, without

# The arguments of the command that reads tables, which a proposal repeats; the command sets them.
RUNNING: ContextVar[tuple[str, ...]] = ContextVar("RUNNING", default=())
WORDS = {"task": "item", "worker": "annotator", "label": "label"}
ORDER = ("header", "task_column", "worker_column", "label_column")
# Flags by name, with the texts that a user types.
Proposal = Mapping[str, str]


class Asked(Rejection):
    """What a table leaves open.

    Attributes:
        proposals: what may answer it, the likely ones first. Each is read before it is printed.
        alternatives: further ones by what they are for, printed if they can be read.
        open_roles: roles that the user has to fill in if no proposal can be read.
        known: flags of missing roles whose columns are likely; the command with open roles has
            them.
    """

    def __init__(
        self,
        check: str,
        path: Path,
        words: Mapping[str, str],
        proposals: Sequence[Proposal] = (),
        alternatives: Mapping[str, Proposal] | None = None,
        open_roles: Texts = (),
        known: Proposal | None = None,
        flags: Proposal | None = None,
        advice: Texts = (),
        otherwise: Texts = (),
    ) -> None:
        """Asks.

        Args:
            check: the check's id.
            path: the file.
            words: of the check's message.
            proposals: see the class.
            alternatives: see the class.
            open_roles: see the class.
            known: see the class.
            flags: those of roles that the user has given.
            advice: further lines.
            otherwise: lines that are printed if no proposal can be read.
        """
        self.path = path
        self.words = words
        self.flags = dict(flags or {})
        self.proposals = proposals
        self.alternatives = dict(alternatives or {})
        self.open_roles = open_roles
        self.known = dict(known or {})
        self.advice = advice
        self.otherwise = otherwise
        super().__init__(check, str(error(check, path, advice="", **words)))

    def answered(self, complete: Callable[[Proposal], Proposal | None]) -> Rejection:
        """Returns the error with the proposals that can be read.

        Args:
            complete: returns a proposal with what it still lacks, or None if it cannot be read.
        """
        whole = next(filter(None, map(complete, self.proposals)), None)
        lines = [*self.otherwise]
        if whole is not None:
            lines = [f"  {self._command(whole)}"]
        elif self.open_roles:
            flags = dict(self.known)
            for role in self.open_roles:
                flags[f"{role}_column"] = WORDS[role].upper()
            capitals = ", ".join(map(WORDS.__getitem__, self.open_roles)).upper()
            lines = [f"Fill in {capitals}: {self._command(flags)}"]
        for purpose, proposal in self.alternatives.items():
            if proposal != whole and complete(proposal) is not None:
                lines.append(f"{purpose}: {' '.join(_typed(proposal))}")
        advice = "\n".join(["", *lines, *self.advice])
        return error(self.check, self.path, advice=advice, **self.words)

    def _command(self, proposal: Proposal) -> str:
        return command_line(self.path, _typed({**self.flags, **proposal}))


def _typed(proposal: Proposal) -> list[str]:
    """Returns flags as they are typed; that of the header and those of roles come first."""
    names = [*among(ORDER, proposal), *without(proposal, ORDER)]
    return [f"--{name}={shlex.quote(proposal[name])}" for name in names]


def as_list(names: Texts) -> str:
    """Returns names as a flag takes them, see `flags.split_list`."""
    quoted = []
    for name in names:
        if "," in name or name.startswith('"'):
            name = '"{}"'.format(name.replace('"', '""'))
        quoted.append(name)
    return ",".join(quoted)


def command_line(path: Path, flags: Texts) -> str:
    """Returns the command that is running with further flags, or `neucrowd aggregate` with them."""
    typed: Texts = RUNNING.get()
    if str(path) not in "\n".join(typed):
        typed = ["aggregate", f"--annotations={path}"]
    names = tuple(text.partition("=")[0] + "=" for text in flags)
    rest = without(typed, starting_with(typed, names))
    return " ".join(["neucrowd", *map(shlex.quote, rest), *flags])
