"""Runs on the workers of a Dask scheduler, which see the command's folders under its paths.

A worker that dies gives its run to another, which goes on from the last checkpoint.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from neucrowd_tf.errors import UsageError
from neucrowd_tf.harness import pool


class Cluster(pool.Executor):
    """A scheduler's workers.

    Args:
        scheduler: its address, `tcp://host:port`.
        modules: what workers import to know all methods and datasets.

    Raises:
        UsageError: Dask is not installed, no scheduler answers, or its workers have several
            threads, which would share one TensorFlow.
    """

    def __init__(self, scheduler: str, modules: Sequence[str]) -> None:
        try:
            from neucrowd_tf.aggregation.engine.dask import connect
        except ModuleNotFoundError as error:
            raise UsageError(
                f"--scheduler: expected {error.name}, which is not installed: pip install"
                " 'neucrowd-tf[dask]'"
            ) from None
        self.client = connect(scheduler)
        threads = self.client.nthreads()
        if max(threads.values()) > 1:
            self.client.close()
            raise UsageError(
                f"--scheduler={scheduler}: expected workers of one thread (dask worker --nthreads"
                f" 1), received one of {max(threads.values())}"
            )
        super().__init__(len(threads))
        self.place = os.getcwd(), tuple(sys.path), tuple(modules)

    def _make(self, function: Callable[[Any], Any], task: Any) -> Any:
        """Sends a task; one that has a method `again` is what that returns after a death."""
        import distributed

        try:
            return self.client.submit(_make, self.place, function, task, pure=False).result()
        except distributed.KilledWorker as error:
            raise pool.WorkerDied(
                f"so many workers died while they made it: {error.allowed_failures + 1}"
            ) from None

    def close(self) -> None:
        """Leaves the scheduler, whose workers drop what this command sent."""
        self.client.close()
        super().close()


# The command's working directory, its path for modules, and what to import.
Place = tuple[str, tuple[str, ...], tuple[str, ...]]


@functools.cache
def _begin(place: Place) -> None:
    """Readies a worker for a command, once."""
    folder, path, modules = place
    sys.path += [entry for entry in path if entry not in sys.path and Path(entry).exists()]
    pool.ready(modules)
    try:
        os.chdir(folder)
    except OSError:
        raise UsageError(
            f"--scheduler: expected workers that see the folder {folder}, received one that does"
            " not"
        ) from None


def _make(place: Place, function: Callable[[Any], Any], task: Any) -> Any:
    """Makes a task on a worker."""
    _begin(place)
    if _deaths() and hasattr(task, "again"):
        task = task.again()
    return function(task)


def _deaths() -> int:
    """Returns how many workers died that had the task which is at work here."""
    import distributed

    worker = distributed.get_worker()
    key = worker.get_current_task()
    with distributed.worker_client(separate_thread=False) as client:
        return int(client.run_on_scheduler(_count_deaths, key=key))


def _count_deaths(key: str, dask_scheduler: Any) -> int:
    return int(dask_scheduler.tasks[key].suspicious)
