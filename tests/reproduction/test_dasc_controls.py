"""The controls of DASC: how cells are counted, and a cap of an instance's cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.dasc.selection import Candidates
from reproduction.controls.dasc import ControlledDASC, capped


def test_candidates() -> None:
    # Five empty cells, of which one was taken: 3 and 2 generated, 2 and 2 remaining.
    crowd = Annotations([0], [0], [0], num_instances=3, num_annotators=2, num_classes=2)
    labels = np.array([[0, 0], [0, 1], [0, 1]])
    entropies = np.array([[0.1, 0.2], [0.3, 0.4], [0.6, 0.5]], np.float32)
    taken = np.array([[True, False], [True, False], [False, False]])
    counts = {}
    for options in ({}, {"counted": "remaining"}, {"per_instance": 1}):
        model = ControlledDASC(**options)  # type: ignore[arg-type]
        rng = np.random.default_rng(0)
        result = model._candidates(labels, entropies, crowd, taken, rng)
        counts[str(options)] = result.generated.tolist(), result.cells.tolist()
    every = [1, 3, 4, 5]
    assert list(counts.values()) == [([3, 2], every), ([2, 2], every), ([3, 2], [1, 3, 5])]


def test_cap_keeps_the_most_confident_of_each_instance() -> None:
    rng = np.random.default_rng(1)
    cells = np.sort(rng.permutation(40)[:25])
    entropies = rng.random(25).astype(np.float32)
    result = capped(Candidates(cells, np.zeros(25, int), entropies, np.array([25])), 2, 5, rng)
    expected: list[Any] = []
    for instance in range(8):
        members = [k for k in range(25) if cells[k] // 5 == instance]
        expected += sorted(members, key=lambda k: entropies[k])[:2]
    np.testing.assert_array_equal(result.cells, cells[np.sort(expected)])
    np.testing.assert_array_equal(result.entropies, entropies[np.sort(expected)])
