"""Importing TensorFlow without its start-up notes on stderr."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import sys
import tempfile
from collections.abc import Iterator

_NOTE = re.compile(
    rb"I\d{4} |WARNING: All log messages before absl|E\d{4} .*failed call to cuInit|To enable the"
    rb" following instructions"
)


def quiet() -> None:
    """Keeps TensorFlow's start-up notes off stderr; has to be called before it is imported."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


@contextlib.contextmanager
def without_notes() -> Iterator[None]:
    """Removes TensorFlow's start-up notes from stderr; other lines are still written.

    TensorFlow's C++ code writes the notes before any setting of the log level has an effect.
    """
    try:
        sys.stderr.flush()
        original = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    with tempfile.TemporaryFile() as caught:
        os.dup2(caught.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(original, 2)
            caught.seek(0)
            lines = [
                line for line in caught.read().splitlines(keepends=True) if not _NOTE.match(line)
            ]
            os.write(original, b"".join(lines))
            os.close(original)


def import_tensorflow() -> None:
    """Imports TensorFlow and Keras and looks for devices, without notes; for a command's process.

    Garbage collection skips the imported objects: looking through a million of them would take much
    of a small run's time.
    """
    first = "tensorflow" not in sys.modules
    quiet()
    gc.disable()
    try:
        with without_notes():
            import keras  # noqa: F401
            import tensorflow as tf

            tf.config.list_physical_devices()
    finally:
        gc.enable()
    if first:
        gc.freeze()
        gc.set_threshold(100_000, 20, 20)
