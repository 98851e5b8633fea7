"""Fits leave no graphs behind: with those, memory grows."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.timing import simulated
from neucrowd_tf import Annotations
from neucrowd_tf.cli.runs import plugins
from neucrowd_tf.declare import registry
from reproduction.smoke import tiny_arguments
from tests.crowds import graphs

PARTS = 6


def methods() -> list[str]:
    """Returns a method for each class of estimators."""
    names: dict[Any, str] = {}
    for method in sorted(registry.methods(), key=lambda m: (len(m.defaults), len(m.name), m.name)):
        names.setdefault(method.factory, method.name)
    return sorted(names.values())


def graphs_after_fits(name: str) -> list[int]:
    """Returns how many graphs there are after each of three fits of a method."""
    method = registry.method(name)
    features, truth, crowd = simulated(80, 6, 5, classes=2)
    if method.uses_truth:
        crowd = Annotations.from_dense(truth[:, None], num_classes=2)
    counts = []
    for seed in range(3):
        estimator = method.make(**tiny_arguments(method), seed=seed)
        estimator.fit(features, crowd)
        estimator.predict(features)
        del estimator
        counts.append(graphs())
    return counts


@pytest.mark.parametrize("piece", range(PARTS))
def test_fits_keep_no_graphs(piece: int) -> None:
    plugins.register(("baselines", "data"))
    growing = {}
    for name in methods()[piece::PARTS]:
        _, second, third = graphs_after_fits(name)  # the first fit makes what all of them share
        if third > second:
            growing[name] = (second, third)
    assert not growing, "graphs after the second and the third fit"
