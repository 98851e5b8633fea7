"""A command's parser says what it expected of an option, and what it received."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.command_line import Parser, check_outputs


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
