"""Max-MIG: the information gain, the aggregator, and a fit."""

from __future__ import annotations

import numpy as np
from numpy.random import default_rng
from numpy.testing import assert_allclose

from baselines.max_mig import MaxMIG
from baselines.max_mig_model import Aggregator, information_gain_loss
from neucrowd_tf.annotations import Annotations
from tests.crowds import array_of, blobs, one_hot, softmax

RNG = default_rng(0)


def test_loss_is_its_formula() -> None:
    first, second = (RNG.dirichlet(np.ones(3), size=5).astype(np.float32) for _ in range(2))
    prior = np.float32([0.2, 0.5, 0.3])
    t = np.einsum("ic,jc,c->ij", first, second, 1 / prior)
    same = np.eye(5, dtype=bool)
    expected = t[~same].mean() - 1 - np.log(t[same]).mean()
    assert_allclose(information_gain_loss(first, second, prior), expected, rtol=1e-5)


def test_a_batch_of_one_is_finite() -> None:
    assert np.isfinite(
        information_gain_loss(np.float32([[1, 0]]), np.float32([[0, 1]]), np.float32([0.5, 0.5]))
    )


def test_aggregator_is_its_formula() -> None:
    aggregator = Aggregator(3, 2)
    weight, bias = RNG.normal(size=(3, 2, 2)), RNG.normal(size=2)
    aggregator.weight.assign(weight)
    aggregator.bias.assign(bias)
    labels = array_of("0 1 -1; -1 -1 -1; 1 1 0")
    expected = softmax(bias + np.einsum("irl,rcl->ic", one_hot(labels, 2), weight))
    assert_allclose(aggregator(labels), expected, rtol=1e-5)


def test_both_networks_learn_the_classes() -> None:
    x, dense, truth = blobs(60, 3, annotators=4, missing=0.4)
    model = MaxMIG(
        base={"hidden_units": (16,), "dropout": 0.0}, learning_rate=1e-2, batch_size=20, epochs=30
    ).fit(x, Annotations.from_dense(dense))
    assert model.score(x, truth) > 0.85
    assert np.mean(model.labels_ == truth) > 0.8
    assert_allclose(model.confusion_matrices_.sum(axis=2), 1.0, rtol=1e-5)
    assert np.diagonal(model.confusion_matrices_, axis1=1, axis2=2).mean() > 0.5
