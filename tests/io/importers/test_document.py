"""The outputs that docs/howto/importers.md shows are those of its commands."""

from __future__ import annotations

import itertools
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from neucrowd_tf.__main__ import console_main
from tests.test_documents import BLOCK, ROOT, blocks, tables

PAGE = ROOT / "docs" / "howto" / "importers.md"


def examples() -> list[tuple[str, str]]:
    """Returns the commands that are run, each with the block of output behind it."""
    matches = [match.groups() for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
    pairs = itertools.pairwise(matches)
    return [
        (command, output)
        for (language, marks, command), (after, _, output) in pairs
        if language == "bash" and after is None and "no-test" not in marks
    ]


def test_outputs_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    for _, kind, text, _ in blocks(PAGE):
        if kind.startswith("file "):
            (tmp_path / kind.removeprefix("file ")).write_text(text, encoding="utf-8")
    assert len(examples()) > 4
    for command, output in examples():
        for line in command.splitlines():
            if line.startswith("neucrowd "):
                monkeypatch.setattr(sys, "argv", shlex.split(line.partition(" ||")[0]))
                with pytest.raises(SystemExit):
                    console_main()
            else:
                print(subprocess.run(shlex.split(line), capture_output=True, text=True).stdout)
        shown = "".join(capfd.readouterr())
        for line in output.splitlines():
            assert line in shown, f"{command}: {shown}"
