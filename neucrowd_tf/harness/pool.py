"""What makes runs: this process, or several others, where what dies costs its run and no other.

A run is a task, picklable and self-contained: `runner.make_run` of a `Work`. A cluster's workers
(:mod:`neucrowd_tf.harness.cluster`) make them too.
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
from typing import Any

from neucrowd_tf.harness import plugins, process
from neucrowd_tf.io.quiet import quiet

# Then a new process takes over, so that memory that TensorFlow keeps (2 to 3 MB a run) does not add
# up.
RUNS_PER_WORKER = 60


class WorkerDied(RuntimeError):
    """The process that made a run ended without an answer."""


class Executor:
    """What makes tasks: `width` at once, for each of which a thread of this process waits."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._threads = ThreadPoolExecutor(width)

    def submit(self, function: Callable[[Any], Any], task: Any) -> Future[Any]:
        """Starts a task."""
        return self._threads.submit(self._make, function, task)

    def _make(self, function: Callable[[Any], Any], task: Any) -> Any:
        """Makes a task, in one of the threads."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends what is at work."""
        self._threads.shutdown(wait=True, cancel_futures=True)


class Here(Executor):
    """Makes each task in this process and thread, before `submit` returns."""

    def __init__(self) -> None:
        super().__init__(1)

    def submit(self, function: Callable[[Any], Any], task: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(task))
        except Exception as error:
            future.set_exception(error)
        return future


class Processes(Executor):
    """As many worker processes as jobs: each thread has one of its own."""

    def __init__(self, width: int, modules: Sequence[str]) -> None:
        super().__init__(width)
        self.modules = tuple(modules)
        self._thread = threading.local()
        self._workers: set[_Worker] = set()
        self._closed = False

    def _make(self, function: Callable[[Any], Any], task: Any) -> Any:
        worker = getattr(self._thread, "worker", None)
        if worker is None:
            worker = self._thread.worker = _Worker(self.modules)
            self._workers.add(worker)
        if self._closed:  # meanwhile
            worker.stop()
        try:
            return worker.make(function, task)
        finally:
            if worker.died or worker.runs >= RUNS_PER_WORKER:
                worker.stop()
                self._workers.discard(worker)
                self._thread.worker = None

    def close(self) -> None:
        """Ends all workers."""
        self._closed = True
        for worker in list(self._workers):
            worker.stop()
        super().close()


class _Worker:
    """One process that makes one task after another."""

    def __init__(self, modules: Sequence[str]) -> None:
        self.runs, self.died = 0, False
        self.executor = ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), _begin, (modules,)
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
            self.died = True
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


def _begin(modules: Sequence[str]) -> None:
    """Readies a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends its workers
    os.dup2(2, 1)  # whatever prints, it is not the command's result
    threading.Thread(target=_end_with_the_command, daemon=True).start()
    ready(modules)


def _end_with_the_command() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(0)  # no one waits for the run that is being made


def ready(modules: Sequence[str]) -> None:
    """Readies a process for runs: how it speaks, and which methods and datasets it knows."""
    quiet()
    process.plain_warnings()
    plugins.register(modules)
