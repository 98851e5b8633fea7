"""What an engine is, and the engine of one machine: threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from neucrowd_tf.aggregation.blas import enter_one_thread, leave_one_thread

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Maps functions over parts, on threads or on other machines."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yields `function(item)` of each item, in their order."""

    def close(self) -> None:
        """Ends its threads or processes."""


def in_order(submit: Callable[[Item], Any], items: Iterable[Item], ahead: int) -> Iterator[Any]:
    """Yields the result of each item, in their order; at most `ahead` futures wait meanwhile.

    So memory does not grow with the number of items.
    """
    waiting: deque[Any] = deque()
    try:
        for item in items:
            waiting.append(submit(item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


class Local:
    """Threads over parts: NumPy, SciPy and Arrow release the interpreter's lock while they work."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._threads = ThreadPoolExecutor(self.workers)
        # A product's last digits may depend on the number of BLAS threads.
        enter_one_thread()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yields `function(item)` of each item, in their order."""
        return in_order(lambda item: self._threads.submit(function, item), items, self.workers)

    def close(self) -> None:
        """Ends the threads."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        leave_one_thread()
