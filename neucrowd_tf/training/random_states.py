"""A fit leaves the random states of the process as they were."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

_lock = threading.Lock()
_inside = 0
_earlier: tuple[Any, ...] = ()


@contextlib.contextmanager
def random_states_stay() -> Iterator[None]:
    """Within, Keras draws from Python's random state and from its own, which stay as they were.

    Each layer without a seed draws one from Python's, whose state is the whole process's: the first
    thread that comes in keeps it, and the last one that leaves gives it back. Keras' own is a
    thread's.
    """
    global _inside, _earlier
    with _lock:
        _inside += 1
        if _inside == 1:
            _earlier = random.getstate()
    private = sys.modules.get("neucrowd_tf.nn.keras_private")  # not loaded for linear models
    try:
        with private.global_seeds_stay() if private else contextlib.nullcontext():
            yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                random.setstate(_earlier)
