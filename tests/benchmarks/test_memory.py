"""Fits leave no graphs behind: with those, memory grows."""

from __future__ import annotations

from itertools import islice

import pytest

from benchmarks.memory import fits_of, graphs, methods
from neucrowd_tf.harness import plugins

PARTS = 6


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(PARTS))
def test_fits_keep_no_graphs(piece: int) -> None:
    plugins.register(("baselines", "data"))
    growing = {}
    for name in methods()[piece::PARTS]:
        # The first fit makes what all of them share.
        second, third = (graphs() for _ in islice(fits_of(name), 1, 3))
        if third > second:
            growing[name] = (second, third)
    assert not growing, "graphs after the second and the third fit"
