"""Networks need TensorFlow as Keras' backend."""

from __future__ import annotations

import importlib

import keras
import pytest

from neucrowd_tf import nn
from neucrowd_tf.errors import UsageError


def test_another_backend_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(UsageError, match=r"backend is 'jax'.*Set KERAS_BACKEND=tensorflow before"):
        importlib.reload(nn)
