"""One thread for BLAS.

Threads that wait for each other cost more than they give in small matrices, and a product's last
digits may depend on their number.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from threadpoolctl import threadpool_limits

from neucrowd_tf.errors import one_at_a_time

_lock = threading.Lock()
_inside = 0
_limits: Any = None


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within, BLAS and OpenMP have one thread.

    The limit is the whole process's. So the first thread that comes in sets it, and the last one
    that leaves gives back what there was before. scikit-learn sets limits of its own, so both wait
    until no thread is within it. Nothing enters this within `one_at_a_time`.
    """
    enter_one_thread()
    try:
        yield
    finally:
        leave_one_thread()


def enter_one_thread() -> None:
    """Begins what `one_blas_thread` does, for objects that are closed later."""
    global _inside, _limits
    with _lock:
        _inside += 1
        if _inside == 1:
            with one_at_a_time():
                _limits = threadpool_limits(1)


def leave_one_thread() -> None:
    """Ends what `enter_one_thread` began."""
    global _inside
    with _lock:
        _inside -= 1
        if not _inside:
            with one_at_a_time():
                _limits.restore_original_limits()
