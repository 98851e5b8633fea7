"""Runs in worker processes: what dies there costs its run, and no other.

A run is a task, picklable and self-contained: `runner.make_run` of a `runner.Work`. What makes it
is an executor, anything with `submit(function, argument)` that returns a
`concurrent.futures.Future`: `Here` in this process, `Processes` in several, and so may a cluster's
client (Dask's, say) be.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol

from neucrowd_tf.harness import plugins, process
from neucrowd_tf.io.quiet import quiet

# Then a new process takes over, so that memory that TensorFlow keeps (2 to 3 MB a run) does not add
# up.
RUNS_PER_WORKER = 60


class WorkerDied(RuntimeError):
    """The process that made a run ended without an answer."""


class Executor(Protocol):
    """What makes tasks; `width` is how many at once."""

    width: int

    def submit(self, function: Callable[[Any], Any], task: Any, /) -> Future[Any]:
        """Starts a task."""

    def close(self) -> None:
        """Ends what is at work."""


class Here:
    """Makes each task in this process, before `submit` returns."""

    width = 1

    def submit(self, function: Callable[[Any], Any], task: Any, /) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(task))
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        pass


def _begin(modules: Sequence[str]) -> None:
    """Readies a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends its workers
    os.dup2(2, 1)  # whatever prints, it is not the command's result
    threading.Thread(target=_end_with_the_command, daemon=True).start()
    quiet()
    process.plain_warnings()
    plugins.register(modules)


def _end_with_the_command() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(0)  # no one waits for the run that is being made


class _Worker:
    """One process that makes one task after another."""

    def __init__(self, modules: Sequence[str]) -> None:
        self.runs = 0
        self.executor = ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), _begin, (tuple(modules),)
        )
        try:
            pid = self.executor.submit(os.getpid).result()
        except BrokenProcessPool:
            raise WorkerDied("its process could not begin") from None
        children = multiprocessing.active_children()
        self.process = next((child for child in children if child.pid == pid), None)

    def make(self, function: Callable[[Any], Any], task: Any) -> Any:
        self.runs += 1
        try:
            return self.executor.submit(function, task).result()
        except BrokenProcessPool:
            raise WorkerDied(f"its process {self._end()}") from None

    def _end(self) -> str:
        code = None
        if self.process is not None:
            self.process.join()
            code = self.process.exitcode
        if code is not None and code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def stop(self) -> None:
        """Ends the process, at once when it is at work."""
        if self.process is not None:
            self.process.kill()
        self.executor.shutdown(wait=False, cancel_futures=True)


class Processes:
    """As many worker processes as jobs; a thread of this process waits for each."""

    def __init__(self, width: int, modules: Sequence[str]) -> None:
        self.width, self.modules = width, tuple(modules)
        self._threads = ThreadPoolExecutor(width)
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, function: Callable[[Any], Any], task: Any, /) -> Future[Any]:
        return self._threads.submit(self._make, function, task)

    def _make(self, function: Callable[[Any], Any], task: Any) -> Any:
        with self._lock:
            if self._closed:
                raise InterruptedError
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker(self.modules)
            with self._lock:
                self._all.add(worker)
                closed = self._closed
            if closed:  # meanwhile
                worker.stop()
                raise InterruptedError
        try:
            answer = worker.make(function, task)
        except WorkerDied:
            self._drop(worker)
            raise
        except BaseException:
            self._keep(worker)
            raise
        self._keep(worker)
        return answer

    def _keep(self, worker: _Worker) -> None:
        if worker.runs >= RUNS_PER_WORKER:
            self._drop(worker)
        else:
            with self._lock:
                self._idle.append(worker)

    def _drop(self, worker: _Worker) -> None:
        with self._lock:
            self._all.discard(worker)
        worker.stop()

    def close(self) -> None:
        """Ends all workers."""
        with self._lock:
            self._closed = True
            workers = list(self._all)
        for worker in workers:
            worker.stop()
        self._threads.shutdown(wait=True, cancel_futures=True)
