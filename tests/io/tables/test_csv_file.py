"""A CSV as a file: errors name it, and the column that is missing."""

from __future__ import annotations

import pathlib

import pytest
from neucrowd_tf.io.features.table import read_features
from neucrowd_tf.io.features.texts import read_texts

from neucrowd_tf.errors import DataError
from neucrowd_tf.io.labels.layouts import read_labels
from neucrowd_tf.io.tables import csv_file
from neucrowd_tf.io.tables.csv_file import CsvFile, read_csv
from neucrowd_tf.io.tables.format import TableFormat
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


@pytest.mark.parametrize("ids", ["1 2", "3 1", "a b"])
@pytest.mark.parametrize("blank", ["", "\n", " \n"])
def test_rows_with_one_field_more_than_the_header(
    tmp_path: pathlib.Path, ids: str, blank: str
) -> None:
    rows = [f"{task},2.5,0.1,7\n" for task in ids.split()]
    for name, header, read in (
        ("features", "task,f0,f1", lambda path: read_features(path)),
        ("texts", "task,text,x", lambda path: read_texts(path)),
        ("truth", "task,label,x", lambda path: CsvFile.open(path).table()),
        ("long", "task,worker,label", lambda path: read_labels(path)),
        ("long", "task,worker,label,x", lambda path: read_labels(path)),
        ("wide", "task,anna,ben", lambda path: read_labels(path)),
        ("votes", "task,votes_a,votes_b", lambda path: read_labels(path)),
        ("matrix", "anna,ben,chris", lambda path: read_labels(path)),
    ):
        path = tmp_path / f"{name}.csv"
        more = ",1" * (header.count(",") - 2)
        path.write_text(f"{header}\n{blank}{''.join(r.strip() + more + chr(10) for r in rows)}")
        with pytest.raises(DataError, match=r"line \d: expected \d fields in each row"):
            read(path)


def test_old_macs_line_ends_with_tabs_and_commas(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.csv"
    for end in ("\r", "\r\n", "\n"):
        path.write_bytes(end.join(["task\ttext", "1\tgood, or not", '2\t"well, no"', ""]).encode())
        csv = CsvFile.open(path)
        assert csv.separator == "\t" and csv.header == ["task", "text"]
        assert csv.table()["text"].tolist() == ["good, or not", "well, no"]


@pytest.mark.parametrize("start", ["sep=;\n", '"sep=;"\r\n', "\ufeffsep=;\r\n", "SEP=;\n", ""])
def test_excels_line_that_says_the_separator(tmp_path: pathlib.Path, start: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        f"{start}task;worker;label\n1;a;yes\n1;b;no\n2;a;no\n2;b;\n", "utf-8", newline=""
    )
    layout = TableFormat(separator=";", missing=("",))
    assert len(read_labels(path, layout=layout).triples[0]) == 3  # type: ignore[index]
    with pytest.raises(DataError, match="line 5, column 'label'" if start else "separator"):
        read_labels(path)


def test_a_line_without_an_end_is_refused_before_it_is_looked_through(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_file, "LONGEST_LINE", 40)
    path = tmp_path / "a.csv"
    for end in ("\n", "\r", "\r\n"):
        rows = ["task,worker,label", *(f"t{i},w,{'xy'[i % 2] * 30}" for i in range(9))]
        path.write_text(end.join(rows))
        assert len(CsvFile.open(path).content) > 300
    path.write_text("\n".join([*rows, f"t9,w,{'x' * 60}"]))
    with pytest.raises(DataError, match=r"a\.csv: line 11: expected at most 0 MB in a line"):
        CsvFile.open(path)
