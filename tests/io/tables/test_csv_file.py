"""A CSV as a file: errors name it, and the column that is missing."""

from __future__ import annotations

import pathlib

import pytest

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.tables.csv_file import read_csv
from neucrowd_tf.io.tables.headers import require_columns


def test_read_csv_errors_name_the_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.csv"
    for content, message in (
        (b"", r"a\.csv: expected a header and rows, received an empty file"),
        (b"a,b\n1,2\n1,2,3\n", r"a\.csv: expected a CSV, received .*line 3"),
        (b"a,b\n\xff,2\n", r"a\.csv: expected text in UTF-8"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=message) as caught:
            read_csv(path)
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match=r"b\.csv: no such file"):
        read_csv(tmp_path / "b.csv")
    with pytest.raises(DataError, match=r"expected a CSV file, received a folder"):
        read_csv(tmp_path)


def test_require_columns() -> None:
    require_columns("a.csv", ["x", "y"], ["y"])
    hint = r"\('lable' comes close: rename it if it is that\)"
    with pytest.raises(
        DataError,
        match=rf"^a\.csv: expected a column 'label', received columns 'task', 'lable' {hint}$",
    ):
        require_columns("a.csv", ["task", "lable"], ["task", "label"])
    with pytest.raises(DataError, match=r"received columns '0', .*'7', \.\.\.$"):
        require_columns("a.csv", [str(number) for number in range(20)], ["task"])
