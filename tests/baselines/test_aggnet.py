"""AggNet: a fit. Its E-step and M-step are tested with aggregation.crowd_and_classifier."""

from __future__ import annotations

import numpy as np

from baselines.aggnet import AggNet
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.errors import UsageError
from tests.cases import raises
from tests.crowds import blobs


def test_a_fit_learns_the_classes_and_who_errs() -> None:
    # The last annotator guesses.
    x, dense, truth = blobs(90, 3, annotators=4, right=[0.85, 0.85, 0.85, 0.0])
    small = {"base": {"hidden_units": (16,), "dropout": 0.0}, "learning_rate": 1e-2}
    model = AggNet(**small, batch_size=30, rounds=2, epochs=15)
    model.fit(x, Annotations.from_dense(dense))
    assert model.score(x, truth) > 0.85 and np.mean(model.labels_ == truth) > 0.85
    right = np.diagonal(model.confusion_matrices_, axis1=1, axis2=2).mean(axis=1)
    assert right[3] < right[:3].min() - 0.2
    np.testing.assert_allclose(model.probas_.sum(axis=1), 1.0)
    raises(UsageError, "rounds", AggNet(rounds=0).fit, x, Annotations.from_dense(dense))
