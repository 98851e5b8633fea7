"""Anno-Reg as an estimator."""

from __future__ import annotations

import numpy as np
import pytest

from neucrowd_tf.crowd_layers import AnnoReg

SMALL = {
    "base": {"hidden_units": (16,), "dropout": 0.2},
    "epochs": 25,
    "batch_size": 40,
    "learning_rate": 1e-2,
}


@pytest.fixture(scope="module")
def fitted(crowd):
    features, _, annotations = crowd
    return AnnoReg(**{**SMALL, "epochs": 60, "learning_rate": 3e-2}).fit(features, annotations)


@pytest.mark.slow
def test_matrices_explain_the_answers(fitted, crowd):
    features, truth, _ = crowd
    assert (fitted.predict(features) == truth).mean() > 0.95
    np.testing.assert_allclose(fitted.confusion_matrices_.sum(axis=2), 1.0, atol=1e-5)
    expected = np.einsum("nt,rtc->nrc", fitted.predict_proba(features), fitted.confusion_matrices_)
    np.testing.assert_allclose(fitted.predict_annotators(features), expected, atol=1e-5)
    assert fitted.confusion_matrices_[0, 0].argmax() == 1, "annotator 0 swaps the first two classes"


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


def test_column_softmax_learns(crowd):
    features, truth, annotations = crowd
    model = AnnoReg(normalisation="column", **SMALL).fit(
        features, annotations.select(annotations.annotators > 0)
    )
    assert (model.predict(features) == truth).mean() > 0.9
    np.testing.assert_allclose(model.confusion_matrices_.sum(axis=2), 1.0, atol=1e-5)
