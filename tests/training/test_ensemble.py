"""Averages of several fits."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from neucrowd_tf import CrowdLayer, Ensemble, load
from neucrowd_tf.annotations.votes import scale_of
from neucrowd_tf.methods.auto import Auto
from tests.crowds import blobs

SMALL = {"base": {"hidden_units": (8,)}, "epochs": 4, "batch_size": 32}


@pytest.fixture(scope="module")
def crowd():
    return blobs(90, 3, apart=3.0, annotators=4)[:2]


@pytest.fixture(scope="module")
def fitted(crowd):
    return Ensemble(CrowdLayer(**SMALL), size=2, seed=5).fit(*crowd)


def test_mean_of_separate_fits(fitted, crowd):
    features, dense = crowd
    alone = [
        CrowdLayer(**SMALL, seed=seed).fit(features, dense).predict_proba(features)
        for seed in (5, 5 + 104_729)
    ]
    assert_allclose(fitted.predict_proba(features), np.mean(alone, axis=0), atol=1e-6)
    assert_allclose(fitted.predict_annotators(features).sum(axis=2), 1.0, atol=1e-5)
    assert fitted.confusion_matrices_.shape == (4, 3, 3)


def test_one_model_is_exported_and_saved(fitted, crowd, tmp_path):
    expected = fitted.predict_proba(crowd[0])
    answers = fitted.inference_model()(crowd[0])["probabilities"]
    assert_allclose(answers, expected, atol=1e-5)
    fitted.save(tmp_path / "saved")
    assert_allclose(load(tmp_path / "saved").predict_proba(crowd[0]), expected, atol=1e-6)
    assert clone(fitted).size == 2


def test_ordered_classes_stay_ordered():
    assert scale_of(Ensemble(Auto(scale="ordinal"))) == "ordinal"
    assert scale_of(Ensemble(CrowdLayer())) == "nominal"
