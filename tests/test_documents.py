"""The commands of README.md, BUILD.md and docs/ run as they stand, except blocks marked `no-test`;
those marked `ci` or `slow` with the tests of that mark. Python runs in this process (importing
TensorFlow anew costs four seconds a block), commands in processes of their own.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from neucrowd_tf.__main__ import console_main

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w+)?([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Their commands run in test_certainty_pages.py, which compares the output too.
SHOWN = ("certainty.md", "relabelling.md")
SHELL, PYTHON = ("bash", "sh"), ("python",)
LIGHT = re.compile(r"neucrowd (report|aggregate|relabel|convert|gold|merge) [^|&;<>\\$`]*")


def documents() -> list[Path]:
    return [
        path
        for path in (ROOT / "README.md", ROOT / "BUILD.md", *sorted((ROOT / "docs").rglob("*.md")))
        if path.name not in SHOWN
    ]


def blocks(path: Path) -> list[tuple[int, str, str, list[str]]]:
    """Returns line, language, text and marks of each block that is to run; of one marked
    `file=NAME`, "file NAME" as its language.
    """
    text = path.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        language, marks, body = match.groups()
        name = next(
            (mark.removeprefix("file=") for mark in marks.split() if mark.startswith("file=")), None
        )
        if (language in (*SHELL, *PYTHON) or name) and "no-test" not in marks.split():
            found.append(
                (
                    text.count("\n", 0, match.start()) + 1,
                    language if name is None else f"file {name}",
                    body,
                    [mark for mark in marks.split() if mark in ("ci", "slow")],
                )
            )
    return found


def parameters() -> Iterator[Any]:
    """Yields each block as a test; a document's blocks run in order, in one folder, in one
    process."""
    for path in documents():
        name = str(path.relative_to(ROOT))
        for line, language, body, names in blocks(path):
            marks = [pytest.mark.xdist_group(f"documents {name}")]
            marks += [getattr(pytest.mark, mark) for mark in names]
            yield pytest.param(name, language, body, id=f"{name}:{line}", marks=marks)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder a document; see `checkout`."""
    return {
        str(path.relative_to(ROOT)): checkout(tmp_path_factory.mktemp(path.stem))
        for path in documents()
    }


def checkout(folder: Path) -> Path:
    """Makes a folder that looks like a checkout with an environment set up, in which commands leave
    their files.
    """
    for item in ROOT.iterdir():
        if not item.name.startswith(".") and item.name not in ("runs", "build", "dist"):
            (folder / item.name).symlink_to(item)
    scripts = folder / ".venv" / "bin"
    scripts.mkdir(parents=True)
    modules = {"python": "", "ruff": "-m ruff", "mypy": "-m mypy", "neucrowd": "-m neucrowd_tf"}
    for name, module in modules.items():
        (scripts / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (scripts / name).chmod(0o755)
    (folder / ".venv" / ".installed").touch()
    tables(folder)
    return folder


def tables(folder: Path) -> None:
    """Copies the example tables that the documents speak of.

    These are features.csv, texts.csv, annotations.csv, truth.csv, and export.json, the same labels
    as Label Studio exports them.
    """
    for path in (ROOT / "tests" / "tables").iterdir():
        shutil.copyfile(path, folder / path.name)


@pytest.mark.parametrize(("document", "language", "body"), parameters())
def test_block(
    document: str,
    language: str,
    body: str,
    folders: dict[str, Path],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = folders[document]
    if "=DATA" in body and not (folder / "DATA").exists():
        (folder / "DATA").symlink_to(request.getfixturevalue("data_dir"))
    for _, kind, text, _ in blocks(ROOT / document):  # whichever marks are run alone
        if kind.startswith("file "):
            (folder / kind.removeprefix("file ")).write_text(text, encoding="utf-8")
    if language.startswith("file "):
        (folder / language.removeprefix("file ")).write_text(body, encoding="utf-8")
        assert body.count("\n") < 60, "an example that a page shows in full has fewer than 60 lines"
        return
    monkeypatch.chdir(folder)
    if language in PYTHON:
        exec(compile(body, document, "exec"), {"__name__": "__main__"})
        return
    # Fewer candidates than a user's run tries: a quarter of a minute for a whole one.
    body = in_process(body, monkeypatch).replace(
        "--method=auto ", "--method=auto --hparam budget=10 "
    )
    environment = {
        **os.environ,
        "PATH": f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder),
    }
    environment.pop("MAKEFLAGS", None)
    command = ["bash", "-euo", "pipefail", "-c", body]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, f"{body}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def in_process(body: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the first lines, as far as they are commands of the library, here, and returns the rest:
    a process would import as much anew as this one has.
    """
    lines = body.splitlines(keepends=True)
    while lines and LIGHT.fullmatch(lines[0].strip()):
        monkeypatch.setattr(sys, "argv", shlex.split(lines.pop(0)))
        with pytest.raises(SystemExit) as ended:
            console_main()
        assert not ended.value.code
    return "".join(lines)


def test_the_page_of_flags_is_what_the_commands_declare() -> None:
    spec = importlib.util.spec_from_file_location("flags_page", ROOT / "docs" / "flags.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (ROOT / "docs" / "reference" / "flags.md").read_text(encoding="utf-8")
    assert text == module.page(), "run python docs/flags.py"


def test_readme_has_its_commands() -> None:
    commands = [body for _, language, body, _ in blocks(ROOT / "README.md") if language in SHELL]
    assert any("make run" in body for body in commands)
    assert any("run_experiment.py" in body for body in commands)


@pytest.mark.slow
@pytest.mark.xdist_group("documents README.md")
def test_readmes_table_is_what_its_command_makes(folders: dict[str, Path]) -> None:
    """After the block that makes runs/table."""
    made = pd.read_csv(folders["README.md"] / "runs" / "table" / "summary.csv").set_index("method")
    row = re.compile(
        r"^\| .*\(`(\w+)`\) \| ([\d.]+) ± [\d.]+ \| ([\d.]+) ± [\d.]+ \| (\S+)", re.MULTILINE
    )
    shown = {
        name: figures
        for name, *figures in row.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    }
    assert set(shown) == set(made.index)
    for name, (accuracy, auc, gain) in shown.items():
        mine = made.loc[name]
        assert [accuracy, auc] == [f"{mine.accuracy_mean:.3f}", f"{mine.auc_mean:.3f}"], name
        assert gain == (
            "–" if name == "mv_lr" else f"{mine.accuracy_minus_mv_lr:+.3f}".replace("-", "−")
        ), name


@pytest.mark.ci
def test_make_run_works_a_second_time(folders: dict[str, Path]) -> None:
    """In an environment of its own: the table comes from finished runs, and nothing is trained."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    folder = folders["README.md"]
    environment = {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"}
    done = subprocess.run(
        ["make", "run"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "neucrowd" in done.stdout
    assert "mv_lr" in done.stdout
    assert "TensorBoard" in done.stdout
    assert "SavedModel" in done.stdout


test_make_run_works_a_second_time = pytest.mark.xdist_group("documents README.md")(
    test_make_run_works_a_second_time
)
