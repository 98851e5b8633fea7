"""A command's parser says what it expected of an option, and what it received."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.command_line import Parser, check_outputs, run, say, write_outputs


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--budget=x", "--file=f"], "--budget: expected a whole number, received 'x'"),
        (["--file"], "--file: expected a value, received none"),
        ([], "expected --file, received none"),
        (["--file=f", "--more=1"], r"expected options .*, received --more=1"),
        (["--file=f", "--kind=c"], r"--kind: expected one of .*a.*b.*, received 'c'"),
    ],
)
def test_errors(argv: list[str], message: str) -> None:
    parser = Parser(allow_abbrev=False)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--file", required=True)
    parser.add_argument("--kind", choices=("a", "b"))
    with pytest.raises(UsageError, match=f"^{message}$"):
        parser.parse_args(argv)


def test_no_output_takes_the_place_of_an_input(tmp_path: Path) -> None:
    file, link = tmp_path / "a.csv", tmp_path / "link.csv"
    file.write_text("x")
    link.symlink_to("a.csv")

    def check(output: Path, more: Path | None = None) -> None:
        given = argparse.Namespace(labels=file, output=output, more=more)
        check_outputs(given, ("output", "more"), ("labels",))

    check(tmp_path / "b.csv", tmp_path / "c.csv")
    check(Path("-"))
    with pytest.raises(UsageError, match="--more: expected another file than --output's"):
        check(Path("-"), Path("-"))
    for output in (file, link, tmp_path / "." / "a.csv"):
        with pytest.raises(UsageError, match="--output: expected another file than --labels's"):
            check(output)
    with pytest.raises(UsageError, match="--more: expected another file than --output's"):
        check(tmp_path / "b.csv", tmp_path / "b.csv")
    with pytest.raises(UsageError, match="--output: expected a file, received the folder"):
        check(tmp_path)
    for name in ("x" * 300, "a\0b"):
        with pytest.raises(UsageError, match="--output: expected a path that can be looked up"):
            check(tmp_path / name)


def test_no_output_lies_in_a_folder_that_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    (folder / "inner").mkdir(parents=True)
    outside = tmp_path / "answer.json"
    outside.write_text("{}")
    (folder / "inner" / "link.json").symlink_to(outside)

    def check(output: Path, **more: Any) -> None:
        check_outputs(
            argparse.Namespace(labels=folder, output=output), ("output",), ("labels",), **more
        )

    check(tmp_path / "b.json")
    check(folder / "scores.csv", kinds=(".png",))
    for output in (folder / "inner" / "new.json", tmp_path / "export" / ".." / "export" / "x"):
        with pytest.raises(UsageError, match="expected a place outside of --labels's folder"):
            check(output)
    with pytest.raises(UsageError, match="expected a place outside of --labels's folder"):
        check(folder / "a.PNG", kinds=(".png",))
    with pytest.raises(UsageError, match="expected another file than those that --labels's folder"):
        check(outside)
    given = argparse.Namespace(labels=folder / "a.parquet", output=folder)
    with pytest.raises(UsageError, match="expected a folder without --labels's file"):
        check_outputs(given, ("output",), ("labels",), folders=True)


def test_no_output_takes_the_place_of_a_runs_files(tmp_path: Path) -> None:
    folder, labels = tmp_path / "seed-0", tmp_path / "labels.csv"
    (folder / "saved_model").mkdir(parents=True)
    config = {"settings": {"annotations": str(labels), "hparams": {"gold": "gold.csv"}}}
    (folder / "config.json").write_text(json.dumps({**config, "versions": {}}))

    def check(output: Path, from_run: Path | None = folder) -> None:
        check_outputs(argparse.Namespace(run=from_run, output=output), ("output",))

    for output in (folder / "report.html", folder / "mine.csv", tmp_path / "metrics.json"):
        check(output)
    for output, name in ((labels, "annotations"), (Path("gold.csv"), "gold")):
        check(output, None)
        with pytest.raises(UsageError, match=f"expected another file than the run's --{name}"):
            check(output)
    for name in ("config.json", "metrics.json", "predictions.csv", "saved_model/names.json"):
        for given in (folder, None):
            with pytest.raises(UsageError, match="another file than those of the run in"):
                check(folder / name, given)


def test_too_little_memory_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(lambda: np.zeros((1 << 20, 1 << 28)).tolist()) == 2
    assert "error: expected enough memory, received less (Unable" in capsys.readouterr().err


def test_what_a_command_says_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped(*hint: str) -> list[str]:
        raise KeyboardInterrupt(*hint)

    def told() -> list[str]:
        warnings.warn("two\nlines", stacklevel=1)
        return ["a note"]

    assert run(stopped) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert run(lambda: stopped("start again with --resume")) == 130
    assert capsys.readouterr().err == "interrupted: start again with --resume\n"
    assert run(told) == 0
    assert capsys.readouterr().err == "warning: two lines\na note\n"


@pytest.mark.parametrize("name", ["labels.csv.gz", "l.parquet", "a.npy", "A.XLSX"])
def test_plain_text_is_written_under_no_other_name(name: str, tmp_path: Path) -> None:
    given = argparse.Namespace(output=tmp_path / name)
    with pytest.raises(UsageError, match=r"expected a name as \w+\.csv, as plain text is written"):
        check_outputs(given, ("output",))
    check_outputs(given, ("output",), folders=True)


def test_several_files_are_written_or_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "a.csv").write_text("before")
    texts = {tmp_path / "a.csv": "a", Path("-"): "shown", tmp_path / "file" / "b.csv": "b"}
    with pytest.raises(OSError, match="expected a folder to write to"):
        write_outputs(texts)
    assert (tmp_path / "a.csv").read_text() == "before" and not capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "file"]
    del texts[tmp_path / "file" / "b.csv"]
    write_outputs(texts)
    assert (tmp_path / "a.csv").read_text() == "a" and capsys.readouterr().out == "shown"


def test_help_on_a_full_disk_is_a_line(repository: Path) -> None:
    commands = ["-m", "neucrowd_tf.aggregate"], ["-m", "neucrowd_tf"], ["run_experiment.py"]
    for command in commands:
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, *command, "--help"],
                cwd=repository,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 2
        assert done.stderr == (
            "error: No space left on device; free some and start again: standard output\n"
        )


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_full_disk_behind_stdout_is_named(
    size: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown() -> list[str]:
        sys.stdout.write("x")
        return []

    def written() -> list[str]:
        write_outputs({Path("-"): "x" * size})
        return []

    for command in (shown, written):
        with open("/dev/full", "w") as full, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", full)
            assert run(command) == 2
        error = "error: No space left on device; free some and start again: standard output\n"
        assert capsys.readouterr().err == error


def test_what_an_encoding_does_not_have_is_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def strict(encoding: str) -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")

    def told() -> list[str]:
        say("/tmp/\udce9.csv")
        return []

    def written() -> list[str]:
        write_outputs({Path("-"): "task\nü\n"})
        return []

    with monkeypatch.context() as patch:
        for encoding in ("utf-8", "ascii"):
            patch.setattr(sys, "stdout", strict(encoding))
            assert run(told) == 0
            assert sys.stdout.buffer.getvalue() == b"/tmp/?.csv\n"  # type: ignore[attr-defined]
        assert run(written) == 2
    expected = r"standard output: expected an encoding that has '\xfc', received ascii"
    assert expected in (error := capsys.readouterr().err) and error.count("\n") == 1

    def library() -> list[str]:
        return [str("a/\udce9.csv".encode())]

    assert run(library) == 2
    error = "error: expected text and paths in UTF-8, received 'a/\\udce9.csv'\n"
    assert capsys.readouterr().err == error
