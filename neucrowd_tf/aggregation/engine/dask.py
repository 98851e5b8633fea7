"""The engine of several processes or machines: Dask workers that share the folders."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import dask
import distributed
import pyarrow as pa
from distributed.scheduler import NoValidWorkerError, NoWorkerError
from threadpoolctl import threadpool_limits

from neucrowd_tf.aggregation.engine.local import in_order
from neucrowd_tf.errors import UsageError

Item = TypeVar("Item")
Result = TypeVar("Result")

# After so many deaths of workers that computed a part, the part is given up.
DEATHS = 10
# On a busy machine a restarted worker needs more than the half minute in which Dask expects its
# connection. Without a limit on the wait for workers, parts would wait for ever.
PATIENCE = {
    "distributed.comm.timeouts.connect": "120s",
    "distributed.scheduler.no-workers-timeout": "300s",
}
# Parts under way for each thread: the next begins while the last one's sums travel.
AHEAD = 2


class Dask:
    """Workers of a Dask scheduler, or processes on this machine.

    If a worker dies, another one does its work.

    Args:
        scheduler: address, `tcp://host:port`; None starts a scheduler and workers on this machine.
        workers: number of workers to start, without `scheduler`.

    Raises:
        UsageError: no scheduler answers, or it has no worker.
    """

    def __init__(self, scheduler: str | None = None, workers: int = 2) -> None:
        if scheduler is None:
            with dask.config.set(PATIENCE):
                self.client = distributed.Client(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    memory_limit=0,
                    set_as_default=False,
                    # The scheduler would copy the sums of many annotators, which are large.
                    direct_to_workers=True,
                )
        else:
            self.client = connect(scheduler)
        self.client.run_on_scheduler(_allow_deaths)

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yields `function(item)` of each item, in their order.

        Raises:
            UsageError: all workers are gone, and none came back.
        """
        width = max(sum(self.client.nthreads().values()), 1)
        submit = functools.partial(self.client.submit, _one_thread, function, pure=False)
        try:
            yield from in_order(submit, items, AHEAD * width)
        except (NoWorkerError, NoValidWorkerError) as error:  # either, by what Dask notices first
            raise UsageError(
                f"--engine=dask: no worker came in {error.timeout:.0f} s after the last one was"
                " lost. Start workers, then run the same command with --resume."
            ) from None

    def close(self) -> None:
        """Leaves the scheduler; ends the workers that were started here."""
        self.client.close()


def connect(scheduler: str) -> distributed.Client:
    """Returns a client of a scheduler that has workers; only the scheduler has to reach these.

    Raises:
        UsageError: none answers, or it has no worker.
    """
    try:
        client = distributed.Client(scheduler, set_as_default=False, timeout=10)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--scheduler={scheduler}: no Dask scheduler answers ({error or type(error).__name__})."
            " Pass its address, as in tcp://host:8786."
        ) from None
    try:
        client.wait_for_workers(1, timeout=60)
    except TimeoutError:
        client.close()
        raise UsageError(
            f"--scheduler={scheduler}: no worker came in a minute. Start workers."
        ) from None
    return client


def _allow_deaths(dask_scheduler: Any) -> None:
    dask_scheduler.allowed_failures = DEATHS


@functools.cache
def _limit_threads() -> None:
    threadpool_limits(1, user_api="blas")
    pa.set_cpu_count(1)


def _one_thread(function: Callable[[Item], Result], item: Item) -> Result:
    """Calls a function with one BLAS thread, so that products are the same on every worker."""
    _limit_threads()
    return function(item)
