"""The benchmark of consensus' rule, on what is small enough for a test."""

from __future__ import annotations

import pytest

from benchmarks import consensus


def test_the_rule_of_the_others_by_hand() -> None:
    # Without a, y is best on b (.9 > .8); without b, x is best on a and so applied to b.
    seen = {
        "a": {"gain": 1.0, "rules": {"x": 0.7, "y": 0.6}},
        "b": {"gain": 1.0, "rules": {"x": 0.8, "y": 0.9}},
    }
    assert consensus.left_out(seen) == {"a": ("y", 0.6), "b": ("x", 0.8)}
    # Two rules alike: the mean of what both get.
    seen["b"]["rules"]["x"] = 0.9
    assert consensus.left_out(seen)["a"] == ("x and 1 alike", pytest.approx(0.65))
