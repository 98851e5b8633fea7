"""Names and numbers as they are shown."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from neucrowd_tf.report.text import (
    LONGEST_NAME,
    csv_link,
    number,
    percent,
    printable,
    shown,
    tooltip,
)


def test_names_are_printable_short_and_never_empty() -> None:
    assert printable("a\x00b\u202ec\ud800") == "a\ufffdb\ufffdc\ufffd"
    assert printable("naïve 猫") == "naïve 猫"
    assert shown("") == "(empty)"
    assert shown(np.int64(7)) == "7"
    long = shown("start" + "x" * 10_000 + "end")
    assert len(long) == LONGEST_NAME and "…" in long
    assert long.startswith("start") and long.endswith("end")
    assert len(shown("x" * (LONGEST_NAME + 1))) == LONGEST_NAME
    assert shown("x" * LONGEST_NAME) == "x" * LONGEST_NAME


def test_a_tooltip_has_more_of_a_name_that_was_cut_and_is_bounded() -> None:
    assert tooltip("short") == ""
    assert tooltip("x" * 60).startswith("x" * 60)
    assert len(tooltip("x" * 10_000)) < 400 and "10,000 characters" in tooltip("x" * 10_000)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((1234, "1,234"), (0.12345, "0.123"), (-0.5, "−0.500"), (-0.0004, "0.000")),
        *((-1234.5, "−1,234.5"), (374.35, "374.4"), (float("nan"), "–"), (True, "yes")),
        (np.float32(1), "1.000"),
    ],
)
def test_numbers(value: object, text: str) -> None:
    assert number(value) == text


def test_percent() -> None:
    assert percent(0.875) == "87.5%"
    assert percent(float("nan")) == "–"


def test_a_link_holds_the_csv() -> None:
    head, _, body = csv_link("a,b\n1,ü\n").partition(",")
    assert head == "data:text/csv;charset=utf-8;base64"
    assert base64.b64decode(body).decode() == "a,b\n1,ü\n"
