"""Majority vote (and other aggregators) followed by logistic regression."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import baselines  # noqa: F401
from neucrowd_tf.aggregation import Aggregator, DawidSkene, Glad, MajorityVote
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import IdentitiesError
from neucrowd_tf.methods.two_stage.labels_first import TwoStageClassifier
from tests.crowds import Crowd, blobs


def crowd_data(classes: int = 2, rows: int = 80) -> Crowd:
    x, dense, truth = blobs(rows, classes, apart=2.0, missing=0.3)
    return x, Annotations.from_dense(dense, num_classes=classes), truth


@pytest.mark.parametrize("classes", [2, 3])
def test_equals_the_two_steps_by_hand(classes: int) -> None:
    x, crowd, _ = crowd_data(classes)
    fitted = TwoStageClassifier(MajorityVote(ties="first"), seed=1, Cs=(0.1,)).fit(x, crowd)
    labels = np.array(
        [np.bincount(row[row >= 0], minlength=classes).argmax() for row in crowd.to_dense()]
    )
    scaler = StandardScaler().fit(x)
    plain = LogisticRegression(C=0.1).fit(scaler.transform(x), labels)
    assert_allclose(fitted.predict_proba(x), plain.predict_proba(scaler.transform(x)), atol=1e-5)


@pytest.mark.parametrize(("name", "aggregator"), [("ds_lr", DawidSkene()), ("glad_lr", Glad())])
def test_other_aggregators(name: str, aggregator: Aggregator) -> None:
    x, crowd, truth = crowd_data(3)
    fitted = registry.method(name).make(seed=0).fit(x, crowd)
    assert_array_equal(fitted.labels_, aggregator.fit(crowd).labels_)
    fixed = TwoStageClassifier(aggregator).fit(x, crowd)
    assert_array_equal(fixed.predict_proba(x), fitted.predict_proba(x))
    assert fitted.confusion_matrices_.shape == (5, 3, 3)
    assert np.mean(fitted.predict(x) == truth) > 0.8
    with pytest.raises(IdentitiesError, match="no identities"):
        registry.method(name).make(seed=0).fit(x, Annotations.from_votes(crowd.vote_counts()))


def test_votes_alone_suffice_and_equal_identities() -> None:
    x, crowd, _ = crowd_data()
    votes = Annotations.from_votes(crowd.vote_counts())
    assert_array_equal(
        TwoStageClassifier().fit(x, votes).predict_proba(x),
        TwoStageClassifier().fit(x, crowd).predict_proba(x),
    )
    assert TwoStageClassifier().fit(x, votes).confusion_matrices_ is None


def test_soft_labels_of_a_unanimous_crowd_are_hard_labels() -> None:
    x, _, truth = crowd_data()
    crowd = Annotations.from_dense(np.repeat(truth[:, None], 3, axis=1))
    soft = TwoStageClassifier(labels="soft", Cs=(1.0,)).fit(x, crowd).predict_proba(x)
    assert_allclose(soft, TwoStageClassifier(Cs=(1.0,)).fit(x, crowd).predict_proba(x), atol=1e-6)


def test_exported_layers_agree_where_classes_are_separable() -> None:
    x, crowd, truth = crowd_data(3)
    far = 1e5 + np.concatenate([x, 100 * np.eye(3)[truth]], axis=1).reshape(80, 2, 4)
    images = far.astype(np.float32)  # whose mean is much larger than its scale
    fitted = TwoStageClassifier(Cs=(1e4,)).fit(images, crowd)
    model = fitted.inference_model()
    assert {layer.compute_dtype for layer in model.layers} == {"float32"}
    noise = default_rng(1).normal(size=images.shape).astype(np.float32)
    for rows, tolerance in ((images, 1e-5), (images + noise, 1e-5), (images + 100 * noise, 1e-4)):
        served = np.asarray(model(rows)["probabilities"])
        assert_allclose(served, fitted.predict_proba(rows), atol=tolerance)
