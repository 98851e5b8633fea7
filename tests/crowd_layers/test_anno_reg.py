"""Anno-Reg as an estimator."""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf.methods.anno_reg import AnnoReg

SMALL = {
    "base": {"hidden_units": (16,), "dropout": 0.2},
    "epochs": 25,
    "batch_size": 40,
    "learning_rate": 1e-2,
}


@pytest.mark.slow
def test_trace_weight_is_in_the_loss(crowd):
    features, _, annotations = crowd
    strong = AnnoReg(**{**SMALL, "epochs": 8}, trace_weight=5.0).fit(features, annotations)
    free = AnnoReg(**{**SMALL, "epochs": 8}, trace_weight=0.0).fit(features, annotations)
    assert (
        np.trace(strong.confusion_matrices_.mean(axis=0))
        < np.trace(free.confusion_matrices_.mean(axis=0)) - 0.1
    )
    with pytest.raises(ValueError, match="trace_weight: expected a number from 0"):
        AnnoReg(trace_weight=-1.0).fit(features, annotations)
