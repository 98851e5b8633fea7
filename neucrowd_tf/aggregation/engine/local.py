"""The engine of one machine: threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")


class Local:
    """Threads over parts: NumPy, SciPy and Arrow release the interpreter's lock while they work.

    The number of waiting results is bounded, so that memory does not grow with the number of parts.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._threads = ThreadPoolExecutor(self.workers)
        # A product's last digits may depend on the number of BLAS threads.
        self._limits = threadpool_limits(1, user_api="blas")

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yields `function(item)` of each item, in their order."""
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(self._threads.submit(function, item))
                if len(waiting) > self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """Ends the threads."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._limits.restore_original_limits()
