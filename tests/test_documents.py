"""The commands of README.md, BUILD.md and docs/ run as they are, and print the output that follows.

A fence's info string may have marks: `ci` and `slow` (runs with the tests of that mark),
`file=NAME` (the block is a file), `near=0.02` (decimal numbers of the output may differ by this
much) and, last, `no-test: REASON`. A `text` block right after a block is its output: each of its
lines is printed, with any text for `...`. Python and the library's commands run in this process
(importing TensorFlow takes five seconds), other lines and slow blocks in a shell.
"""

from __future__ import annotations

import functools
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

from neucrowd_tf.__main__ import main
from neucrowd_tf.cli.runs import process, run_command

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"^```(\w+)?([^\n]*)\n(.*?)^```\n(?:\n```(?:text)?\n(.*?)^```)?", re.MULTILINE | re.DOTALL
)
SHELL, PYTHON = ("bash", "sh"), ("python",)
DECIMAL = re.compile(r"-?\d+\.\d+")
# A command of the library, and the exit code that it is said to have.
COMMAND = re.compile(
    r"(?:neucrowd (?P<command>(?:report|aggregate|relabel|convert|gold|merge|predict|--dataset=)"
    r"[^|&;<>\\$`]*?)|python run_experiment\.py (?P<run>[^|&;<>\\$`]*?))"
    r"(?: \|\| test \$\? = (?P<code>\d))?"
)


class Block(NamedTuple):
    """A block that runs: its language is "file NAME" for a file."""

    line: int
    language: str
    text: str
    marks: list[str]
    shown: str = ""
    near: float = 0.0


def documents() -> list[Path]:
    return [ROOT / "README.md", ROOT / "BUILD.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    result = []
    for match in BLOCK.finditer(text):
        language, info, body, shown = match.groups()
        marks, untested, _ = info.partition("no-test")
        named = dict(mark.split("=", 1) for mark in marks.split() if "=" in mark)
        if untested or not (language in (*SHELL, *PYTHON) or "file" in named):
            continue
        result.append(
            Block(
                text.count("\n", 0, match.start()) + 1,
                f"file {named['file']}" if "file" in named else language,
                body,
                [mark for mark in marks.split() if mark in ("ci", "slow")],
                shown or "",
                float(named.get("near", 0)),
            )
        )
    return result


def parameters() -> Iterator[Any]:
    """Yields each block as a test; a document's blocks run in order, in one folder, in one
    process."""
    for path in documents():
        name = str(path.relative_to(ROOT))
        for block in blocks(path):
            marks = [pytest.mark.xdist_group(f"documents {name}")]
            marks += [getattr(pytest.mark, mark) for mark in block.marks]
            yield pytest.param(name, block, id=f"{name}:{block.line}", marks=marks)


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


@pytest.mark.usefixtures("inferred_once")
@pytest.mark.parametrize(("document", "block"), parameters())
def test_block(
    document: str,
    block: Block,
    folders: dict[str, Path],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = folders[document]
    language, body = block.language, block.text
    if "=DATA" in body and not (folder / "DATA").exists():
        (folder / "DATA").symlink_to(request.getfixturevalue("data_dir"))
    if "ENCODER" in body and not (folder / "ENCODER").exists():
        small_encoder(folder)
    monkeypatch.setenv("NEUCROWD_CACHE", str(folder / "cache"))
    for other in blocks(ROOT / document):  # whichever marks are run alone
        if other.language.startswith("file "):
            (folder / other.language.removeprefix("file ")).write_text(other.text, encoding="utf-8")
    if language.startswith("file "):
        (folder / language.removeprefix("file ")).write_text(body, encoding="utf-8")
        assert body.count("\n") < 60, "an example that a page shows in full has fewer than 60 lines"
        return
    monkeypatch.chdir(folder)
    if language in PYTHON:
        names: dict[str, Any] = {"__name__": "__main__"}
        fits = fits_of(monkeypatch)
        exec(compile(body, document, "exec"), names)
        compare(block, "".join(capfd.readouterr()))
        for kind, model in fits.items():
            save_and_load(model, folder / f"saved-{block.line}-{kind}")
        return
    # Fewer candidates than a user's run tries: a quarter of a minute for a whole one.
    body = body.replace("--method=auto ", "--method=auto --hparam budget=10 ")
    printed = ""
    quick = "slow" not in block.marks
    for here, lines in groupby(body.splitlines(), lambda line: bool(COMMAND.fullmatch(line))):
        if here and quick:
            for line in lines:
                in_process(line, monkeypatch)
            printed += "".join(capfd.readouterr())
        else:
            printed += in_shell("\n".join(lines), folder)
    compare(block, printed)


def fits_of(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Returns a dict that will have the last fit of each class that a page shows."""
    from neucrowd_tf.training.estimator import CrowdEstimator

    fits: dict[str, Any] = {}
    running: list[Any] = []
    fit = CrowdEstimator.fit

    @functools.wraps(fit)
    def remembered(self, *arguments, **options):
        running.append(self)
        try:
            fit(self, *arguments, **options)
        finally:
            running.pop()
        if not running:  # no part of another fit
            fits[type(self).__name__] = self
        return self

    monkeypatch.setattr(CrowdEstimator, "fit", remembered)
    return fits


def save_and_load(model, folder: Path) -> None:
    """Checks that a fit predicts the same after `save` and `load`."""
    import neucrowd_tf

    model.save(folder)
    loaded = neucrowd_tf.load(folder)
    shape = model.feature_shape_
    features: Any = default_rng(0).random((3, *shape)).astype(np.float32)
    if model.takes_texts and not shape:
        features = np.array(["good", "a bad text", "none"])
    elif model.feature_names_in_ is not None:
        features = pd.DataFrame(features, columns=model.feature_names_in_)
    expected = model.predict_proba(features)
    np.testing.assert_allclose(loaded.predict_proba(features), expected, atol=1e-6)


def in_shell(body: str, folder: Path) -> str:
    """Runs lines in a shell and returns what they print."""
    environment = {
        **os.environ,
        "PATH": f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder),
    }
    environment.pop("MAKEFLAGS", None)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", body],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, f"{body}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout + done.stderr


def compare(block: Block, output: str) -> None:
    """Checks that each shown line is one of the output's."""
    print(output)
    lines = [" ".join(line.split()) for line in output.splitlines()]
    for shown in block.shown.splitlines():
        parts = DECIMAL.split(" ".join(shown.split()))
        numbers = [float(number) for number in DECIMAL.findall(shown)]
        if not block.near:
            parts, numbers = [" ".join(shown.split())], []
        pattern = f"({DECIMAL.pattern})".join(
            re.escape(piece).replace(r"\.\.\.", ".*") for piece in parts
        )
        matches = [match for line in lines if (match := re.fullmatch(pattern, line))]
        assert any(
            np.allclose(np.array(match.groups(), dtype=float), numbers, rtol=0, atol=block.near)
            for match in matches
        ), f"not printed: {shown}\nbut: {output[-4000:]}"


def small_encoder(folder: Path) -> None:
    """Writes a sentence encoder with a random vector for each word of the example texts."""
    from tests.encoders.test_sentences import make_encoder

    words = sorted(set(re.findall(r"\w+", (folder / "texts.csv").read_text(encoding="utf-8"))))
    vocabulary = {word: code for code, word in enumerate(["[UNK]", *words])}
    table = default_rng(0).normal(size=(len(vocabulary), 8))
    make_encoder(folder / "ENCODER", table, vocabulary)


def in_process(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a command of the library here: a process would import as much anew as this one has.

    TensorFlow's threads, which cannot change any more, are one as those of a run.
    """
    monkeypatch.setattr(process, "start", lambda options: None)
    if "method=auto" in line:  # what it prints depends on the seconds that it takes
        monkeypatch.setattr("neucrowd_tf.methods.auto.search.Clock.left", math.inf)
    match = COMMAND.fullmatch(line)
    assert match is not None
    if match["run"] is not None:
        code = run_command.main(shlex.split(match["run"]), ("baselines", "data", "reproduction"))
    else:
        code = main(shlex.split(match["command"]))
    assert code == int(match["code"] or 0), line


def test_readme_has_its_commands() -> None:
    commands = [block.text for block in blocks(ROOT / "README.md") if block.language in SHELL]
    assert any("make run" in body for body in commands)
    assert any("run_experiment.py" in body for body in commands)


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_that_do_not_run_have_a_reason(path: Path) -> None:
    fences = re.findall(r"^```(\w+)([^\n]*)\n", path.read_text(encoding="utf-8"), re.MULTILINE)
    untested = [info for _, info in fences if "no-test" in info]
    assert all(re.search(r"no-test: \w+ \w+", info) for info in untested), untested


@pytest.mark.xdist_group("documents docs/tutorials/compare.md")
def test_the_comparison_has_the_figures_of_its_command(folders: dict[str, Path]) -> None:
    """After the block that makes the run."""
    document = "docs/tutorials/compare.md"
    created = pd.read_csv(folders[document] / "runs" / "compare" / "summary.csv").set_index(
        "method"
    )
    row = re.compile(
        r"^\| `(\w+)` \| ([\d.]+) \[[^]]*\] \| ([\d.]+) \[[^]]*\] \| (\S+)", re.MULTILINE
    )
    shown = {
        name: figures
        for name, *figures in row.findall((ROOT / document).read_text(encoding="utf-8"))
    }
    assert set(shown) == set(created.index)
    for name, (accuracy, auc, gain) in shown.items():
        mine = created.loc[name]
        assert [accuracy, auc] == [f"{mine.accuracy_mean:.3f}", f"{mine.auc_mean:.3f}"], name
        assert gain == (
            "–" if name == "mv_lr" else f"{mine.accuracy_minus_mv_lr:+.3f}".replace("-", "−")
        ), name


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
