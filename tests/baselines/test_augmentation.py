"""The other augmentations: what fills the empty cells, and that only those are filled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from baselines.augmentation import DL_CL_PRESETS, DLCLInG, DLCLSelf, completed
from baselines.crowd_gan_model import policy_loss
from baselines.graph_completion import GraphCompletion
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.declare import registry
from neucrowd_tf.methods.crowd_layers.doctor_net import DoctorNet
from tests.crowds import array_of, blobs, one_hot

RNG = default_rng(0)
X, DENSE, TRUTH = blobs(60, 3, annotators=4, missing=0.5)
CROWD = Annotations.from_dense(DENSE, num_classes=3)
SMALL: dict[str, Any] = {
    "base": {"hidden_units": (16,), "dropout": 0.0},
    "learning_rate": 1e-2,
    "batch_size": 20,
    "epochs": 12,
}


def check_completed(estimator) -> None:
    """Every cell has a label; those that people gave are what they were, the others are marked."""
    created = estimator.completed_
    assert len(created.labels) == DENSE.size
    assert_array_equal(created.observed().to_dense(), DENSE)
    assert created.generated.sum() == (DENSE < 0).sum()


def test_completed_by_hand() -> None:
    crowd = Annotations.from_dense(array_of("0 -1; -1 1"), num_classes=3)
    created = completed(crowd, array_of("2 2; 1 0"))
    assert_array_equal(created.to_dense(), array_of("0 2; 1 1"))
    assert_array_equal(created.observed().to_dense(), crowd.to_dense())


def test_self_completion_is_what_the_first_model_predicts() -> None:
    estimator = DLCLSelf(**SMALL).fit(X, CROWD)
    check_completed(estimator)
    first = estimator._dl_cl().fit(X, CROWD)
    filled = estimator.completed_.to_dense()
    assert_array_equal(filled[DENSE < 0], first.predict_annotators(X).argmax(axis=2)[DENSE < 0])
    assert estimator.score(X, TRUTH) > 0.8


def test_graph_scores_are_layers_of_mean_messages() -> None:
    graph = GraphCompletion(X, CROWD, units=4, edge_dropout=0.5, seed=0)
    remaining = (RNG.random(len(CROWD.labels)) < 0.7).astype(np.float32)
    instances, annotators = graph.embeddings(tf.constant(remaining))
    custom, others = X @ np.asarray(graph.from_features), np.asarray(graph.of_annotators)
    kept = one_hot(DENSE, 3)
    kept[CROWD.instances, CROWD.annotators, CROWD.labels] = remaining
    for result, nodes, sums, layer in (
        (
            instances,
            custom,
            np.einsum("nrc,rk,ckl->nl", kept, others, graph.to_instances),
            graph.instance_layer,
        ),
        (
            annotators,
            others,
            np.einsum("nrc,nk,ckl->rl", kept, custom, graph.to_annotators),
            graph.annotator_layer,
        ),
    ):
        received = kept.sum(axis=(2, 1 if nodes is custom else 0))[:, None]
        weights, bias = layer.get_weights()
        inputs = np.maximum(np.concatenate([nodes, sums / np.maximum(received, 1)], axis=1), 0)
        assert_allclose(result, inputs @ weights + bias, rtol=1e-4, atol=1e-5)


def test_policy_gradient_is_the_gradient_of_the_expected_reward() -> None:
    # d/dlogits of sum_y p(y) r(y) is p (r - E r); the mean over many draws of REINFORCE's gradient
    # comes near it.
    logits = tf.Variable(np.tile(np.float32([0.2, -0.4, 0.9]), (1, 20000, 1)))
    rewards = np.float32([1.0, 3.0, -2.0])
    labels = tf.cast(tf.random.stateless_categorical(logits[0, :1], 20000, [1, 2]), tf.int32)
    with tf.GradientTape() as tape:
        loss = policy_loss(logits, labels, tf.gather(rewards, labels))
    p = np.asarray(tf.nn.softmax(logits[0, 0]))
    assert_allclose(
        -np.asarray(tape.gradient(loss, logits)).sum(axis=(0, 1)),
        p * (rewards - p @ rewards),
        atol=0.03,
    )


def test_ing_trains_on_what_crowding_generates(monkeypatch: pytest.MonkeyPatch) -> None:
    from neucrowd_tf.methods.crowding import CrowdInG

    def fit(self: CrowdInG, data, run) -> None:
        self.trained_on_ = len(data.features)

    filled = np.where(DENSE < 0, 1, DENSE)
    monkeypatch.setattr(CrowdInG, "_fit", fit)
    monkeypatch.setattr(CrowdInG, "_predict_proba", lambda _, x: np.full((len(x), 2), 0.5))
    monkeypatch.setattr(
        CrowdInG,
        "generate",
        lambda self, features, annotations: completed(annotations, np.ones_like(DENSE)),
    )
    estimator = DLCLInG(**SMALL).fit(X, CROWD, (X[:20], TRUTH[:20]))
    check_completed(estimator)
    assert_array_equal(estimator.completed_.to_dense(), filled)


def test_doctors_vote_with_their_weights() -> None:
    estimator = DoctorNet(**SMALL, weight_epochs=5).fit(X, CROWD)
    answers = estimator.predict_annotators(X).argmax(axis=2)
    expected = np.stack(
        [[estimator.annotator_weights_[row == c].sum() for c in range(3)] for row in answers]
    )
    assert_allclose(estimator.predict_proba(X), expected, atol=1e-5)
    assert estimator.score(X, TRUTH) > 0.8


def test_presets_are_those_with_which_crowding_starts() -> None:
    for dataset, preset in DL_CL_PRESETS.items():
        crowding = registry.method("crowding").make(dataset=dataset)
        estimator = registry.method("dl_cl_self").make(dataset=dataset)
        assert estimator.epochs == crowding.pretrain_epochs
        assert estimator.batch_size == crowding.pretrain_batch
        assert (estimator.base, estimator.standardise) == (crowding.base, crowding.standardise)
        assert preset
        ing = registry.method("dl_cl_ing").make(dataset=dataset)
        assert ing.label_correlation == crowding.label_correlation
