"""What a process sets once, and what each run starts with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from neucrowd_tf.errors import UsageError
from neucrowd_tf.harness import process
from neucrowd_tf.harness.flags import Options


@pytest.fixture
def mixed() -> Iterator[None]:
    import keras

    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    yield
    keras.config.set_dtype_policy(before)


@pytest.mark.slow
def test_a_run_starts_with_fresh_names_and_the_process_precision(mixed: None) -> None:
    import keras

    keras.layers.Dense(1), keras.layers.Dense(1)
    process.forget_networks()
    layer = keras.layers.Dense(1)
    assert layer.name == "dense"
    assert (layer.compute_dtype, layer.variable_dtype) == ("bfloat16", "float32")


def test_a_device_that_is_not_there() -> None:
    import tensorflow as tf

    with pytest.raises(UsageError, match="--device: expected one of this machine's"):
        process._choose_device(tf, Options(device="gpu:63"))
