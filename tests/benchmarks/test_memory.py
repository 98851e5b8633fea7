"""Fits leave no graphs behind: with those, memory grows."""

from __future__ import annotations

from itertools import islice

import pytest

from benchmarks.memory import fits_of, graphs
from tests.torture.kills import families

PARTS = 6


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_fits_keep_no_graphs(part: int) -> None:
    growing = {}
    for name in families()[part::PARTS]:
        kept = [graphs() for _ in islice(fits_of(name), 4)]
        if kept[-1] > kept[1]:
            growing[name] = kept
    assert not growing, "graphs after each fit"
