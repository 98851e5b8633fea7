"""CrowdAR's reliability: its formula, and by hand."""

from __future__ import annotations

import numpy as np
from numpy.random import default_rng

from neucrowd_tf.methods.crowd_layers.crowdar import ReliabilityHead
from tests.crowds import array_of, randomised, softmax

RNG = default_rng(0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_reliability_is_its_formula_and_by_hand():
    p, h = softmax(RNG.normal(size=(4, 3))), RNG.normal(size=(4, 2))
    inputs = [p.astype(np.float32), h.astype(np.float32)]
    head = ReliabilityHead(2, hidden_units=5)
    head(inputs)
    randomised(head)
    rows, who = array_of("0 3 3"), array_of("1 0 1")
    result = head.reliability(inputs, rows, who)
    layers = (head.hidden, head.difficulty, head.score)
    (w1, b1), (w2, b2), (w3, b3) = (layer.get_weights() for layer in layers)
    difficulty = sigmoid(sigmoid(h[rows] @ w1 + b1) @ w2 + b2)
    expertise = sigmoid(np.asarray(head.expertise)[who, 0])
    above = (expertise - difficulty) * p[rows]
    np.testing.assert_allclose(result, sigmoid(above @ w3 + b3)[:, 0], rtol=1e-4)
    for weight in head.weights:
        weight.assign(np.zeros(weight.shape))
    # Expertise and difficulty are both sigmoid(0): the score is 0 and the reliability 1/2.
    np.testing.assert_allclose(head.reliability(inputs, rows, who), 0.5, atol=1e-6)
    assert float(head.score.kernel.constraint(array_of("-1.0"))[0]) == 0.0
