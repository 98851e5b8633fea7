import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from neucrowd_tf.nn.embedding_networks import make_optimizer
from neucrowd_tf.nn.optimizers import FusedAdam
from tests.crowds import array_of


def test_the_first_step_is_the_learning_rate_in_the_gradients_direction():
    # m = .1 g and v = .001 g^2, over 1 - .9 and 1 - .999: g / |g| times the rate.
    variable = keras.Variable(array_of("1.0 1.0 1.0", np.float32))
    optimizer = make_optimizer("adam", 0.25)
    optimizer.apply([tf.constant([4.0, -0.5, 0.0])], [variable])
    assert_allclose(variable.numpy(), [0.75, 1.25, 1.0], atol=1e-5)
    assert isinstance(optimizer, FusedAdam)


def stepped(optimizer, start):
    variables = [keras.Variable(value) for value in start]
    optimizer.build(variables)
    step = tf.function(lambda *gradients: optimizer.apply(list(gradients), variables))
    draw = default_rng(4)
    for _ in range(20):
        step(*(tf.constant(draw.normal(size=value.shape), tf.float32) for value in start))
    return [variable.numpy() for variable in (*variables, *optimizer.variables)]


def test_it_steps_as_keras_adam_does():
    rng = default_rng(3)
    start = [rng.normal(size=shape).astype(np.float32) for shape in ((4, 3), (5,))]
    result, wanted = (stepped(kind(0.01), start) for kind in (FusedAdam, keras.optimizers.Adam))
    for mine, theirs in zip(result, wanted, strict=True):
        assert_allclose(mine, theirs, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("amsgrad", [False, True])
def test_sparse_gradients_and_amsgrad_are_left_to_keras(amsgrad):
    ends = []
    for kind in (FusedAdam, keras.optimizers.Adam):
        variable = keras.Variable(np.ones((3, 2), np.float32))
        optimizer = kind(0.1, amsgrad=amsgrad)
        sparse = tf.IndexedSlices(tf.constant([[1.0, -2.0]]), tf.constant([1]), (3, 2))
        gradient = tf.convert_to_tensor(sparse) if amsgrad else sparse
        optimizer.apply([gradient], [variable])
        ends.append(variable.numpy())
    assert_array_equal(*ends)
