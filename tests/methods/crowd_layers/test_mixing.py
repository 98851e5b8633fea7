"""Mixup's draws, and what it mixes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.methods.crowd_layers.common.mixing import mixed, mixing_draws
from tests.crowds import array_of


def test_mixing():
    shares, partners = mixing_draws(tf.constant([3, 4]), 1000, 2.0)
    assert sorted(np.asarray(partners).tolist()) == list(range(1000))
    # Beta(2, 2): mean 1/2, variance 1/20.
    assert np.mean(shares) == pytest.approx(0.5, abs=0.03)
    assert np.var(shares) == pytest.approx(0.05, abs=0.01)
    assert_array_equal(shares, mixing_draws(tf.constant([3, 4]), 1000, 2.0)[0])
    assert not np.array_equal(shares, mixing_draws(tf.constant([3, 5]), 1000, 2.0)[0])
    values = array_of("0.0 4.0; 8.0 0.0", np.float32)
    # .25 * (0, 4) + .75 * (8, 0), and the second with itself.
    result = mixed(values, tf.constant([0.25, 0.5]), tf.constant([1, 1]))
    assert_allclose(result, array_of("6.0 1.0; 8.0 0.0"))
