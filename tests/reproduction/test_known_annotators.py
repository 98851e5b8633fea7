"""The ceiling of crowd methods: matrices and posterior by hand, and what they are worth."""

from __future__ import annotations

import numpy as np

from neucrowd_tf.annotations import Annotations
from neucrowd_tf.datasets import CrowdDataset, Split
from reproduction.known_annotators import confusion_matrices, figures, posterior


def test_matrices_and_posterior_by_hand() -> None:
    # Annotator 0 is right on 0 and 1; annotator 1 says 0 always. With half an answer more in each
    # cell: [[1.5, .5], [.5, 1.5]] / 2 and [[1.5, .5], [1.5, .5]] / 2.
    crowd = Annotations.from_dense(np.array([[0, 0], [1, 0]]), num_classes=2)
    matrices = confusion_matrices(crowd, np.array([0, 1]))
    np.testing.assert_allclose(matrices[0], [[0.75, 0.25], [0.25, 0.75]])
    np.testing.assert_allclose(matrices[1], [[0.75, 0.25], [0.75, 0.25]])
    # The second says nothing; the first's odds are 3 to 1.
    np.testing.assert_allclose(posterior(crowd, matrices), [[0.75, 0.25], [0.25, 0.75]])


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
