"""Pages on labels show what their commands print and write."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from neucrowd_tf.__main__ import main
from tests.test_documents import ROOT, tables

PAIR = re.compile(r"^```bash\n(.*?)^```\n\n(?:```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["certainty.md", "relabelling.md"])
def test_the_page_shows_the_output(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    blocks = PAIR.findall((ROOT / "docs" / "howto" / name).read_text(encoding="utf-8"))
    assert sum(bool(output) for _, output in blocks) >= 4
    for command, output in blocks:
        if not command.startswith("neucrowd "):
            subprocess.run(["bash", "-euo", "pipefail", "-c", command], check=True, timeout=60)
            continue
        assert main(shlex.split(command)[1:]) == 0
        lines = capsys.readouterr().err.splitlines()
        assert set(output.splitlines()) <= set(lines)


@pytest.mark.parametrize("name", ["README.md", "docs/tutorials/labels_only.md"])
def test_each_shown_line_is_printed_or_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = (ROOT / name).read_text(encoding="utf-8").split("\n## Train a model")[0]
    commands = re.findall(r"^neucrowd (?:report|aggregate|relabel) .*$", text, re.MULTILINE)
    shown = "".join(re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert commands and shown
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0
    output = capsys.readouterr()
    files = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob("*.csv"))
    lines = {*output.err.splitlines(), *output.out.splitlines(), *files.splitlines()}
    assert {line.removeprefix("labels.csv    ") for line in shown.splitlines()} <= lines


def test_the_page_on_certainty_is_short() -> None:
    text = (ROOT / "docs" / "howto" / "certainty.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1300
