"""The comparison of labels by crowd and model together."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.crowd_and_model import COLUMNS, accuracies, markdown
from neucrowd_tf.annotations import Annotations


def test_accuracies_and_the_page() -> None:
    # Three annotators who are always right, and a model that is right about two of four.
    truth = np.array([0, 1, 0, 1])
    crowd = Annotations.from_dense(np.tile(truth[:, None], 3))
    probas = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.6, 0.4]])
    found = accuracies((crowd, truth, probas))
    assert found == pytest.approx([1.0, 0.5, 1.0, 1.0, 1.0, 1.0])
    table = dict(zip(COLUMNS, ([value] for value in found), strict=True))
    page = markdown({"a": table, "b": {name: [0.5, 0.7] for name in COLUMNS}}, 2)
    assert "| a | 1.000 | 0.500 | 1.000 |" in page
    # Of two draws .5 and .7 the mean is .6, and the interval .1 * 12.706 either way.
    assert "| b | 0.600 [-0.671, 1.871] |" in page
