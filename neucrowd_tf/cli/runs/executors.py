"""Where runs are made besides this process: in other processes, or by Dask workers.

A run is a task that can be pickled: `runner.make_run` and a `Work`. A process that dies costs its
own run and no other.
"""

from __future__ import annotations

import functools
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from neucrowd_tf.cli.quiet import quiet
from neucrowd_tf.cli.runs import plugins, process
from neucrowd_tf.declare.types import Texts
from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.checks import install

# A new process begins after this many runs: TensorFlow keeps 2 to 3 MB per run.
RUNS_PER_PROCESS = 60


class WorkerDied(RuntimeError):
    """The process that made a run ended without a result."""


def died(error: Exception) -> bool:
    """Whether an error means that the processes that made a run ended without a result."""
    return isinstance(error, WorkerDied) or type(error).__name__ == "KilledWorker"  # Dask's


class Processes:
    """A number of processes; each has its own executor, so that its death breaks no other.

    Args:
        width: the number of processes.
        modules: what each process imports to register all methods and datasets.
    """

    def __init__(self, width: int, modules: Texts) -> None:
        self.width = width
        self._modules = tuple(modules)
        self._threads = ThreadPoolExecutor(width)
        self._of_thread = threading.local()
        self._closed = False

    def submit(self, function: Callable[[Any], Any], task: Any) -> Future[Any]:
        """Starts a task in the next free process."""
        return self._threads.submit(self._make, function, task)

    def _make(self, function: Callable[[Any], Any], task: Any) -> Any:
        local = self._of_thread
        if not hasattr(local, "executor"):
            start = (multiprocessing.get_context("spawn"), _begin, (self._modules,))
            local.executor = ProcessPoolExecutor(1, *start, max_tasks_per_child=RUNS_PER_PROCESS)
        try:
            if self._closed:
                raise WorkerDied("the command ended")
            return local.executor.submit(function, task).result()
        except BrokenProcessPool:
            del local.executor
            raise WorkerDied("its process was killed, or ran out of memory") from None

    def close(self) -> None:
        """Ends all processes, also those at work."""
        self._closed = True
        for child in multiprocessing.active_children():
            child.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)


def _begin(modules: Texts) -> None:
    """Prepares a new process for runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends its processes
    os.dup2(2, 1)  # only the command prints results
    threading.Thread(target=_end_with_the_command, daemon=True).start()
    ready(modules)


def _end_with_the_command() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(0)  # the result of the current run has no receiver


def ready(modules: Texts) -> None:
    """Sets up warnings and registers methods and datasets."""
    quiet()
    process.plain_warnings()
    plugins.register(modules)


class Cluster:
    """The workers of a Dask scheduler, which see the command's folders under the same paths.

    A task whose worker dies is sent to another worker: a run is sent as one that is resumed, and so
    it is continued from its last checkpoint.

    Args:
        scheduler: its address, `tcp://host:port`.
        modules: what workers import to register all methods and datasets.

    Raises:
        UsageError: Dask is not installed, no scheduler answers, or its workers have several
            threads, which would share one TensorFlow.
    """

    def __init__(self, scheduler: str, modules: Texts) -> None:
        try:
            from neucrowd_tf.aggregation.engine.dask import connect
        except ModuleNotFoundError as error:
            how = install("dask")
            raise UsageError(f"--scheduler: {error.name} is not installed. {how}") from None
        self._client = connect(scheduler)
        threads = self._client.nthreads()
        if max(threads.values()) > 1:
            self._client.close()
            raise UsageError(
                f"--scheduler={scheduler}: a worker has {max(threads.values())} threads. Start the"
                " workers with dask worker --nthreads 1."
            )
        self.width = len(threads)
        self._executor = self._client.get_executor(pure=False)
        self._place = os.getcwd(), tuple(sys.path), tuple(modules)

    def submit(self, function: Callable[[Any], Any], task: Any) -> Future[Any]:
        """Sends a task; if a worker dies, another one gets it."""
        return self._executor.submit(_make_there, self._place, function, task)

    def close(self) -> None:
        """Leaves the scheduler, whose workers drop the tasks of this command."""
        self._client.close()


# The command's working directory, its path for modules, and what to import.
Place = tuple[str, tuple[str, ...], tuple[str, ...]]


@functools.cache
def _begin_there(place: Place) -> None:
    """Prepares a Dask worker for a command, once."""
    folder, path, modules = place
    sys.path += [entry for entry in path if entry not in sys.path and Path(entry).exists()]
    ready(modules)
    try:
        os.chdir(folder)
    except OSError:
        raise UsageError(
            f"--scheduler: a worker does not see the folder {folder}. Workers need the command's"
            " folders."
        ) from None


def _make_there(place: Place, function: Callable[[Any], Any], task: Any) -> Any:
    """Makes a task on a Dask worker."""
    _begin_there(place)
    return function(task)
