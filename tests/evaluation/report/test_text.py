"""Names and numbers as they are shown."""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf.evaluation.report.text import number, percent, printable, shown
from tests.cases import cases


def test_names_are_printable_short_and_never_empty() -> None:
    assert printable("a\x00b\u202ec\ud800") == "a\ufffdb\ufffdc\ufffd"
    assert printable("naïve 猫") == "naïve 猫"
    assert shown("") == "(empty)"
    assert shown(np.int64(7)) == "7"
    long = shown("start" + "x" * 10_000 + "end")
    assert len(long) == 48 and "…" in long
    assert long.startswith("start") and long.endswith("end")
    assert len(shown("x" * 49)) == 48
    assert shown("x" * 48) == "x" * 48


@pytest.mark.parametrize(
    ("value", "text"),
    cases("""
[1234, "1,234"], [0.12345, "0.123"], [-0.5, "−0.500"], [-0.0004, "0.000"], [-1234.5, "−1,234.5"],
[374.35, "374.4"], [NaN, "–"], [true, "yes"]
"""),
)
def test_numbers(value, text: str) -> None:
    assert number(value) == text and number(np.float32(1)) == "1.000"


def test_percent() -> None:
    assert percent(0.875) == "87.5%"
    assert percent(float("nan")) == "–"
