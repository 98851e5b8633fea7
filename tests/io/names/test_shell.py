"""Flags that messages name can be copied into a shell."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from pathlib import Path

import pytest
from neucrowd_tf.io.features.table import read_features

from neucrowd_tf.errors import DataError, one_line
from neucrowd_tf.io.names.missing import missing_flag
from neucrowd_tf.io.names.shell import flag, ignore, quoted
from neucrowd_tf.io.tables.format import TableFormat

ODD = (
    *("x", "Unnamed: 0.1", "it's", "a  b", "$HOME `x` \\ !", "\u200b", "\ufffd", "a\tb\n'"),
    *("\xa0", "\U0001f469\u200d\U0001f680", "\U000e0041", "*", "{}"),
)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_a_shell_gives_what_was_quoted() -> None:
    for text in ODD:
        said = one_line(ValueError(quoted(text)))
        assert said == quoted(text)  # nothing in it is replaced in a message
        done = subprocess.run(
            ["bash", "-c", f"printf %s {said}"],
            env={"LC_ALL": "C.UTF-8"},
            capture_output=True,
            check=True,
        )
        assert done.stdout.decode() == text


def test_flags() -> None:
    assert flag("task_column", "Task ID") == "--task_column='Task ID'"
    assert ignore("age") == "--ignore_columns=age"
    assert ignore("a, b") == "--ignore_columns='\"a, b\"'"
    assert missing_flag(("NA",), "\u200b") == r"--missing=$'NA,\u200b'"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Unnamed: 0.1", "--ignore_columns='Unnamed: 0.1' leaves it out"),
        ("is gold", "--ignore_columns='is gold' leaves it out"),
        ("row number", "--ignore_columns='row number' leaves it out"),
        ("item\u200b id", r"--ignore_columns=$'item\u200b\u0020id' leaves it out"),
        ("seen at", "--ignore_columns='seen at' leaves the column out"),
    ],
)
def test_a_columns_name_is_quoted(name: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    cells = ["x" if name == "seen at" else str(row) for row in range(30)]
    rows = [f"t{row},{cell},{row % 7 / 10}" for row, cell in enumerate(cells)]
    path.write_text("\n".join([f"task,{name},y1", *rows]) + "\n", encoding="utf-8")
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            read_features(path)
            lines = [str(warning.message) for warning in raised]
        except DataError as error:
            lines = [str(error)]
    assert said in "\n".join(lines)
    ignored = TableFormat.of(ignore_columns=name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_features(path, ignored)[1].shape == (30, 1)
