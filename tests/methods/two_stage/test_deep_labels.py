"""Two stages with a network: what it is trained on, and gold labels as what they are."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.aggregation import DawidSkene
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import UsageError
from neucrowd_tf.methods.crowd_layers.common.model import TargetModel
from neucrowd_tf.methods.two_stage.deep_labels import DeepLabels
from tests.crowds import array_of, blobs

SMALL = {
    "base": {"hidden_units": (16,), "dropout": 0.0},
    "epochs": 15,
    "batch_size": 30,
    "learning_rate": 1e-2,
}


@pytest.fixture(scope="module")
def crowd():
    features, dense, truth = blobs(90, 3, width=4, apart=4.0)
    return features, truth, Annotations.from_dense(dense, num_classes=3)


@pytest.mark.parametrize(("aggregator", "labels"), [("mv", "hard"), ("ds", "soft")])
def test_learns(crowd, aggregator, labels):
    features, truth, annotations = crowd
    model = DeepLabels(aggregator, labels=labels, **SMALL).fit(features, annotations)
    assert (model.predict(features) == truth).mean() > 0.95
    assert model.network is None, "the compiled network is not kept"


def test_loss_by_hand():
    classifier = keras.Sequential(
        [keras.Input((1,)), keras.layers.Dense(2, activation="softmax", kernel_initializer="zeros")]
    )
    model = TargetModel(classifier, np.ones((3, 1), np.float32), 2)
    model.set_targets(array_of("1.0 0.0; 0.5 0.5; 0.0 1.0"))
    total, size = model.batch_loss(np.array([0, 1]), np.ones((2, 1), np.float32))
    # Zero weights say (1/2, 1/2), so each instance costs ln 2 whatever its target.
    assert float(total) == pytest.approx(2 * np.log(2), rel=1e-6) and float(size) == 2.0


def test_targets_are_the_aggregators(crowd):
    features, _, annotations = crowd
    model = DeepLabels("ds", labels="soft", **{**SMALL, "epochs": 1})
    with model.reused():
        model.fit(features, annotations)
        targets = model.network.model._targets.numpy()
    assert_allclose(targets, DawidSkene().fit(annotations).probas_, atol=1e-6)
    assert_allclose(model.confusion_matrices_.sum(axis=2), 1.0, atol=1e-6)


def test_gold_labels_are_flagged(crowd):
    features, truth, _ = crowd
    entry = registry.method("gold_dl")
    assert entry.uses_truth
    assert {m.name for m in registry.methods() if m.uses_truth} == {"gold_dl", "gold_lr"}
    assert_array_equal(entry.make(**SMALL).fit(features, truth[:, None]).labels_, truth)
    for name in ("gold_dl", "gold_lr"):
        with pytest.raises(UsageError, match="true labels as those of one annotator, received 3 a"):
            registry.method(name).make().fit(features, np.repeat(truth[:, None], 3, axis=1))
