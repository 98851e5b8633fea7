"""Keras parts that stand on their own: encoders, similarities and losses."""

import keras

from neucrowd_tf.errors import UsageError

if keras.backend.backend() != "tensorflow":
    raise UsageError(
        f"Keras' backend is {keras.backend.backend()!r}, and networks of neucrowd_tf need"
        " TensorFlow's. Set KERAS_BACKEND=tensorflow before keras is imported."
    )
