"""Cells that survive a spreadsheet."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from numpy.random import default_rng

from neucrowd_tf.io.tables.writing import name_of, number_cell, text_cell, to_csv


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+cmd|' /C calc'!A0",
        "-2+3",
        "@SUM(A1)",
        "\tx",
        "\rx",
        "\n=1",
        "\uff1d1+1",
        "\uff201",
    ],
)
def test_formulas_are_quoted(text: str) -> None:
    assert text_cell(text) == f"'{text}"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("-5", "-5"),
        ("+1.5e3", "+1.5e3"),
        (-5, "-5"),
        (np.int64(-5), "-5"),
        ("a=b", "a=b"),
        (True, "True"),
    ],
)
def test_numbers_and_other_text_stay(value, cell: str) -> None:
    assert text_cell(value) == cell


def test_half_a_surrogate_pair_can_be_written() -> None:
    assert text_cell("\ud800=") == "?="
    text_cell("\ud800").encode("utf-8")


def test_numbers_survive_float32() -> None:
    """Nine significant digits are enough for every float32."""
    values = default_rng(0).random(1000).astype(np.float32)
    assert [np.float32(number_cell(float(value))) for value in values] == values.tolist()
    assert number_cell(None) == number_cell(float("nan")) == number_cell(np.inf) == ""
    assert number_cell(np.int32(7)) == "7"


def test_a_table_is_read_back() -> None:
    """Unquoted, a carriage return would end a row, and the next cell would be a formula."""
    text = to_csv(["x", "y"], [["a\r=1+1", "b"], ["c", "d\n"]])
    assert text == 'x,y\n"a\r=1+1",b\nc,"d\n"\n'
    rows = [['a "quoted" name', "line\nbreak"], ["comma, here", "ü"], ["a\r=1+1", "b"]]
    read = csv.reader(io.StringIO(to_csv(["x", "y"], rows), newline=""))
    assert list(read) == [["x", "y"], *rows]


def test_an_apostrophe_before_a_sign_is_escaped_too() -> None:
    names = ["=x", "'=x", "''=x", "'x", "x'", "+1", "'+1", "'"]
    cells = [text_cell(name) for name in names]
    assert cells == ["'=x", "''=x", "'''=x", "'x", "x'", "+1", "''+1", "'"]
    assert [name_of(cell, set(names)) for cell in cells] == names
    assert name_of("'=x", {"'=x"}) == "'=x" and name_of("=x", {"=x"}) == "=x"
