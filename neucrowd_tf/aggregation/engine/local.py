"""The engine of one machine: threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

from neucrowd_tf.aggregation.engine.records import in_order

Item = TypeVar("Item")
Result = TypeVar("Result")


class Local:
    """Threads over parts: NumPy, SciPy and Arrow release the interpreter's lock while they work."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._threads = ThreadPoolExecutor(self.workers)
        # A product's last digits may depend on the number of BLAS threads.
        self._limits = threadpool_limits(1, user_api="blas")

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yields `function(item)` of each item, in their order."""
        return in_order(lambda item: self._threads.submit(function, item), items, self.workers)

    def close(self) -> None:
        """Ends the threads."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._limits.restore_original_limits()
