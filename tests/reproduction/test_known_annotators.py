"""The ceiling of crowd methods: what confusion matrices that are known are worth."""

from __future__ import annotations

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from reproduction.known_annotators import figures


def test_known_adversaries_are_worth_much() -> None:
    # Three of five annotators always say the wrong class: votes mislead, matrices do not. (Small
    # weights do best on validation rows, so votes may end near chance.)
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=300)
    features = (rng.normal(size=(300, 4)) + 2 * truth[:, None]).astype(np.float32)
    dense = np.repeat(truth[:, None], 5, axis=1)
    dense[:, 2:] = 1 - dense[:, 2:]
    part = Split(features[:100], truth[:100], np.arange(100))
    crowd = Annotations.from_dense(dense, num_classes=2)
    data = CrowdDataset("d", features, crowd, truth=truth, validation=part, test=part)
    found = figures(data, crowd)
    assert found["majority vote"]["accuracy"] < 0.6 < 0.9 < found["known annotators"]["accuracy"]
    assert found["truth"]["accuracy"] >= found["known annotators"]["accuracy"] - 0.02
