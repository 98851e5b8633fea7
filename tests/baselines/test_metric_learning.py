"""The metric-learning baselines: every objective learns, each takes its labels from where it says,
and their steps by hand.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose, assert_array_equal

import baselines  # noqa: F401
from baselines.metric_learning import MetricLearning
from baselines.metric_models import BatchModel
from baselines.relation_net import RelationModel
from neucrowd_tf.aggregation import DawidSkene
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import IdentitiesError
from neucrowd_tf.nn.embedding_networks import build_encoder
from neucrowd_tf.nn.losses import semihard_triplet_loss, triplet_center_loss
from neucrowd_tf.saving.loading import load
from neucrowd_tf.training.networks import DenseEncoder
from tests.crowds import QUICK_EMBEDDING as QUICK
from tests.crowds import Crowd, array_of, blobs

OBJECTIVES = ["contrastive", "triplet", "triplet_semi", "lifted", "center", "relation_net"]


def crowd_data(classes: int, rows: int = 90) -> Crowd:
    x, dense, truth = blobs(rows, classes, width=6, right=[0.95, 0.9, 0.3, 0.3, 0.3])
    return x, Annotations.from_dense(dense, num_classes=classes), truth


def test_every_objective_takes_every_source_of_labels() -> None:
    for objective in OBJECTIVES:
        for suffix, labels in (("", "mv"), ("_ds", "ds"), ("_glad", "glad")):
            method = registry.method(objective + suffix)
            created = method.make()
            assert (created.objective, created.labels, method.requires_identities) == (
                objective,
                labels,
                labels != "mv",
            )


def test_labels_are_the_aggregators() -> None:
    x, crowd, truth = crowd_data(3)
    fitted = registry.method("triplet_ds").make(**QUICK).fit(x, crowd)
    assert_array_equal(fitted.train_labels_, DawidSkene().fit(crowd).labels_)
    plain = registry.method("triplet").make(**QUICK).fit(x, crowd)
    assert np.mean(fitted.train_labels_ == truth) > np.mean(plain.train_labels_ == truth)
    again = registry.method("triplet_ds").make(**QUICK).fit(x, crowd)
    assert_array_equal(again.predict_proba(x), fitted.predict_proba(x))
    with pytest.raises(IdentitiesError):
        registry.method("triplet_glad").make(**QUICK).fit(
            x, Annotations.from_votes(crowd.vote_counts())
        )


def small_encoder(hidden: int = 4, width: int = 6):
    return build_encoder(DenseEncoder(hidden_units=(hidden,), dropout=0.0, l2=0.0), width, seed=3)


def test_batch_step_is_the_public_loss() -> None:
    x, crowd, _ = crowd_data(3)
    labels, encoder = crowd.vote_counts().argmax(axis=1), small_encoder()
    rows = np.stack([np.flatnonzero(labels == c)[:5] for c in range(3)], axis=1)
    semi, center = (
        BatchModel(encoder, x, labels, loss=loss, centers=centers, seed=0)
        for loss, centers in ((semihard_triplet_loss, 0), (triplet_center_loss, 3))
    )
    expected = np.mean(semihard_triplet_loss(labels[rows.ravel()], encoder(x[rows.ravel()])))
    result = float(np.mean(semi.batch_losses(tf.constant(rows))))
    assert result == pytest.approx(expected, rel=1e-5)
    assert center.batch_losses(tf.constant(rows)).shape == (15,)
    # The centers are trained.
    assert [v.shape for v in center.trainable_variables].count((3, 4)) == 1


def test_relation_scores_by_hand() -> None:
    # A relation network without hidden weights: the score is sigmoid of (prototype . u + query .
    # v). Support of class 0: (1, 0) and (3, 0), mean (2, 0); of class 1: (0, 1) and (0, 1). With u
    # = (1, 0), v = (0, -1), through relu of one unit: query (0, 1): class 0: relu(2 - 1) = 1; class
    # 1: relu(0 - 1) = 0; scores sigmoid(1) and sigmoid(0).
    model = RelationModel(
        small_encoder(2, 2), np.zeros((4, 2), np.float32), shots=2, units=1, seed=0
    )
    model.relation.set_weights(
        [array_of("1.0; 0.0; 0.0; -1.0"), np.zeros(1), np.ones((1, 1)), np.zeros(1)]
    )
    support = tf.constant([[[1.0, 0.0], [0.0, 1.0]], [[3.0, 0.0], [0.0, 1.0]]])
    assert_allclose(
        model.scores(support, tf.constant([[0.0, 1.0]])), [[1 / (1 + np.exp(-1)), 0.5]], rtol=1e-5
    )


def test_unit_length_and_saving(tmp_path) -> None:
    x, crowd, _ = crowd_data(2)
    fitted = MetricLearning("lifted", normalise=True, **QUICK).fit(x, crowd)
    assert_allclose(np.linalg.norm(fitted.transform(x), axis=1), 1.0, atol=1e-5)
    fitted.save(tmp_path / "lifted")
    assert_array_equal(load(tmp_path / "lifted").predict_proba(x), fitted.predict_proba(x))


def test_a_class_with_one_instance() -> None:
    x, crowd, truth = crowd_data(2, 30)
    dense = crowd.to_dense()
    dense[0] = 2
    for objective in ("contrastive", "center", "relation_net"):
        fitted = MetricLearning(objective, **{**QUICK, "epochs": 1}).fit(
            x, Annotations.from_dense(dense), (x, truth)
        )
        assert np.isfinite(fitted.predict_proba(x)).all()
