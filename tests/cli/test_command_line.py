"""How commands end, where their output goes, and the JSON files of runs."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neucrowd_tf.aggregation.families import named_models
from neucrowd_tf.cli.command_line import check_outputs, run, say, write_outputs
from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.io.run_files import Config, ExportedNames, Metrics, input_digest
from tests.cases import raises

Printed = pytest.CaptureFixture[str]

FULL_DISK = "error: No space left on device; free some and start again: standard output\n"


def test_outputs_are_not_inputs(tmp_path: Path) -> None:
    file, link, folder = tmp_path / "a.csv", tmp_path / "link.csv", tmp_path / "export"
    file.write_text("x")
    link.symlink_to("a.csv")
    (folder / "inner").mkdir(parents=True)

    def check(output: Path, more: Path | None = None, source: Path = file) -> None:
        check_outputs({"--output": output, "--more": more}, {"--labels": source, "--gold": None})

    check(tmp_path / "b.csv", tmp_path / "c.csv")
    check(Path("-"))
    for outputs in ((Path("-"), Path("-")), (tmp_path / "b.csv", tmp_path / "." / "b.csv")):
        raises(UsageError, r"--more=.*: --output writes to the same place", check, *outputs)
    for output in (file, link, tmp_path / "." / "a.csv"):
        raises(UsageError, r"would overwrite --labels=", check, output)
    for output in (folder / "new.json", folder / "inner" / ".." / "new.json"):
        raises(UsageError, r"would overwrite --labels=", check, output, source=folder)
    with pytest.raises(UsageError, match="would overwrite"):
        check_outputs({"--output": folder}, {"--labels": folder / "a.parquet"})


def test_models_are_annotators() -> None:
    assert named_models(("Smith, A.", "7"), ["Smith, A.", 7]) == ("Smith, A.", "7")
    assert named_models(("g-*", "g-?"), ["g-2", "g-*", "g-10"]) == ("g-*", "g-2")
    assert named_models(("g-*",), ["g-2", "ann", "g-10"]) == ("g-2", "g-10")
    raises(UsageError, "no annotator is named 'bot'", named_models, ("bot",), ["ann"])


def test_how_a_command_ends(capsys: Printed) -> None:
    def warned() -> list[str]:
        warnings.warn("two\nlines", stacklevel=1)
        return ["a note"]

    def library() -> list[str]:
        return [str("a/\udce9.csv".encode())]

    def large() -> list[str]:
        return np.zeros((1 << 20, 1 << 28)).tolist()

    for command, code, error in (
        (warned, 0, "warning: two lines\na note\n"),
        (lambda: 1, 1, ""),
        (library, 2, "error: 'a/\\udce9.csv': not UTF-8. Rename the file.\n"),
        (large, 2, "error: out of memory. Unable to allocate"),
    ):  # fmt: skip
        assert run(command) == code
        assert capsys.readouterr().err.startswith(error)


def test_several_files_are_written_or_none(tmp_path: Path, capsys: Printed) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "a.csv").write_text("before")
    texts = {tmp_path / "a.csv": "a", Path("-"): "shown", tmp_path / "file" / "b.csv": "b"}
    raises(OSError, "folder", write_outputs, texts)
    assert (tmp_path / "a.csv").read_text() == "before" and not capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "file"]
    del texts[tmp_path / "file" / "b.csv"]
    write_outputs(texts)
    assert (tmp_path / "a.csv").read_text() == "a" and capsys.readouterr().out == "shown"


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_full_disk_behind_stdout_is_named(
    size: int, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written() -> list[str]:
        write_outputs({Path("-"): "x" * size})
        return []

    for command in (lambda: [sys.stdout.write("x")][:0], written):
        with open("/dev/full", "w") as full, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", full)
            assert run(command) == 2
        assert capsys.readouterr().err == FULL_DISK


def test_closed_streams(tmp_path: Path, repository: Path) -> None:
    (tmp_path / "a.csv").write_text("task,worker,label\n1,a,x\n1,b,y\n2,a,y\n")
    command = f"{sys.executable} -m neucrowd_tf aggregate --annotations={tmp_path}/a.csv"
    for more, code, out, error in (
        (f"--output={tmp_path}/o.csv >&-", 0, "", "long table"),
        (">&-", 2, "", "error: Bad file descriptor: standard output\n"),
        ("--help >&-", 2, "", "error: Bad file descriptor: standard output\n"),
        ("2>&-", 0, "task,label,probability", ""),
        ("--seed=x 2>&-", 2, "", ""),
    ):
        line = f"{command} {more}"
        done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=repository)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False)
        assert done.stdout.startswith(out) and error in done.stderr
        assert bool(done.stdout) == bool(out) and bool(done.stderr) == bool(error)


def test_output_is_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    def printed() -> int:
        say("/tmp/\udce9.csv")
        return 0

    def written() -> int:
        write_outputs({Path("-"): "task\nü\n"})
        return 0

    for command, text in ((printed, b"/tmp/\\udce9.csv\n"), (written, "task\nü\n".encode())):
        with monkeypatch.context() as patch:
            stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
            patch.setattr(sys, "stdout", stream)
            assert run(command) == 0
            assert stream.buffer.getvalue() == text


# ----------------------------------------------------------------- JSON files of runs


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (Config.read, "{", "Remove the folder"),
        (Config.read, "[]", "not an object"),
        (Config.read, '{"settings": 3}', "settings: missing or of another type"),
        (Config.read, '{"settings": {}, "parameters": []}', "parameters: missing or of another"),
        (Metrics.read, "{}", "test: missing or of another type. Remove it"),
        (Metrics.read, '{"test": {}, "timings": []}', "timings: missing"),
        (ExportedNames.read, '{"classes": [1], "features": {}}', "features: .*Export the model"),
    ],
)
def test_damaged_json_says_what_to_do(
    read: Callable[[Path], object], content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(DataError, match=message) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


def test_records_keep_other_fields(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    content = {"test": {"auc": 0.5}, "timings": {}, "of a later version": [1]}
    path.write_text(json.dumps(content))
    metrics = Metrics.read(path)
    assert (metrics.content, metrics.test, metrics.timings) == (content, {"auc": 0.5}, {})


def test_only_images_count_in_a_folder_of_images(tmp_path: Path) -> None:
    (tmp_path / "b.PNG").write_bytes(b"b")
    before, other = input_digest("images", tmp_path), input_digest("annotations", tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / ".hidden.png").write_text("x")
    assert input_digest("images", tmp_path) == before
    assert input_digest("annotations", tmp_path) != other  # an export may consist of any files
    (tmp_path / "a.png").write_bytes(b"a")
    assert input_digest("images", tmp_path) != before


def test_marks_that_rearrange_a_line_do_not_reach_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Any]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("item,annotator,label\nt1,u\u202e1,a\u202eb\nt1,u2,c\n", encoding="utf-8")
    printed = cli("convert", [f"--input={path}"])
    assert "a\ufffdb (1)" in printed.err and "\u202e" not in printed.err
    assert "u\u202e1,a\u202eb\n" in printed.out  # a file or a program that reads it gets the bytes
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", shown)
    write_outputs({Path("-"): "a,b\u202e\n"})
    assert shown.getvalue() == "a,b\ufffd\n"
