"""Fits leave no graphs behind: with those, memory grows."""

from __future__ import annotations

from itertools import islice

import pytest

from benchmarks.memory import fits_of, graphs
from tests.torture.kills import families


@pytest.mark.slow
@pytest.mark.parametrize("name", families())
def test_fits_keep_no_graphs(name: str) -> None:
    kept = [graphs() for _ in islice(fits_of(name), 4)]
    assert kept[-1] <= kept[1], f"graphs after each fit: {kept}"
