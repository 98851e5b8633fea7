"""The benchmarks of peers and of consensus' rule, on what is small enough for a test."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks import consensus, peers


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


def test_copies_copy_one_labeller() -> None:
    data = consensus.simulated("copies", 0, 50)
    crowd = data.annotations
    dense = crowd.to_dense()[:, 24:]
    for row in dense:
        assert len(set(row[row >= 0])) <= 1
    assert (crowd.to_dense() == consensus.simulated("copies", 0, 50).annotations.to_dense()).all()


def test_page_of_peers_names_what_is_missing(tmp_path: Path) -> None:
    rows = [
        peers._row("CF", "glad", "here", 0.5, 1.0, 0.5),
        peers._row("CF", "glad", "here", 0.7, 3.0, 1.5),
        peers._row("CF", "glad", "crowd-kit", 0.6, 9.0, 8.0),
    ]
    text = peers.page(peers.summary(rows), ["maml"], argparse.Namespace(threads=1))
    assert "Not installed: maml." in text
    assert "| CF | glad | here | 0.6000 | 2.000 | 1.000 | 2 |" in text
    assert text.index("here") < text.index("crowd-kit |")
