"""Importing TensorFlow without its start-up notes on stderr."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from typing import Any

from neucrowd_tf.errors import FOR_NETWORKS, MissingPackageError


def quiet() -> None:
    """Keeps TensorFlow's start-up notes off stderr; has to be called before it is imported."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


@contextlib.contextmanager
def without_stderr() -> Iterator[None]:
    """Drops what is written to stderr in the block; an exception still says what went wrong.

    TensorFlow's C++ code writes notes before any setting of the log level has an effect.
    """
    sys.stderr.flush()
    original = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
        sys.stderr.flush()
    finally:
        os.dup2(original, 2)
        os.close(original)


def import_tensorflow() -> tuple[Any, Any]:
    """Returns TensorFlow and Keras, imported without notes by a command's process.

    Garbage collection skips the imported objects: looking through a million of them would take much
    of a small run's time.

    Raises:
        MissingPackageError: TensorFlow is not installed.
    """
    first, collects = "tensorflow" not in sys.modules, gc.isenabled()
    quiet()
    gc.disable()
    try:
        with without_stderr():
            import keras
            import tensorflow as tf

            tf.config.list_physical_devices()
    except ModuleNotFoundError as error:
        if error.name in FOR_NETWORKS:
            raise MissingPackageError("this command", error.name) from None
        raise
    finally:
        if collects:
            gc.enable()
    if first:
        gc.freeze()
        gc.set_threshold(100_000, 20, 20)
    return tf, keras
