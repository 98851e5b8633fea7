"""Several runs at once, each in a worker process; one bar for all of them.

A worker is this module started as a program. It reads one line of JSON a run from its standard
input and answers each with one on its standard output. A worker that dies costs the run it was at,
and no other.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import IO, Any

from neucrowd_tf.errors import DataError, UsageError
from neucrowd_tf.harness.execute import Outcome
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.harness.results import FAILED
from neucrowd_tf.harness.run_config import Task
from neucrowd_tf.harness.run_folder import RunKey

RUNS_PER_WORKER = (
    20  # then a new process takes over, so that memory that TensorFlow keeps does not add up
)
_CANNOT_GO_ON = "cannot_go_on"


# --------------------------------------------------------------------- the command's side


class Worker:
    """A process that makes one run after another."""

    def __init__(self, options: Options, rooms: Sequence[str]) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "neucrowd_tf.harness.jobs", *rooms],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.runs = 0
        self._send(options.to_json())

    def _send(self, line: str) -> None:
        if self.process.stdin is not None:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def make(self, task: Task, only_complete: bool, options: Options) -> dict[str, Any]:
        """Returns the worker's answer; the options may differ from run to run.

        Raises:
            EOFError: it died.
        """
        self.runs += 1
        try:
            self._send(
                json.dumps(
                    {
                        "key": vars(task.key),
                        "hparams": task.hparams,
                        "only_complete": only_complete,
                        "options": options.to_json(),
                    }
                )
            )
            answer = self.process.stdout.readline() if self.process.stdout is not None else ""
        except BrokenPipeError:
            answer = ""
        if not answer:
            code = self.process.wait()
            raise EOFError(
                f"its process was ended by {signal.Signals(-code).name}"
                if code < 0
                else f"its process ended with exit code {code}"
            )
        found: dict[str, Any] = json.loads(answer)
        return found

    def stop(self) -> None:
        """Ends the process, at once when it is at work."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


class Pool:
    """As many workers as jobs; a thread of this process waits for each."""

    def __init__(self, options: Options, rooms: Sequence[str]) -> None:
        self.options, self.rooms = options, rooms
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._lock = threading.Lock()
        self._closed = False

    def make(self, task: Task, only_complete: bool, options: Options | None = None) -> Outcome:
        """Makes one run in an idle worker, or a new one; by default with the pool's options."""
        with self._lock:
            if self._closed:
                raise InterruptedError
            worker = self._idle.pop() if self._idle else Worker(self.options, self.rooms)
            self._all.add(worker)
        try:
            answer = worker.make(task, only_complete, options or self.options)
        except EOFError as error:
            self._drop(worker)
            return Outcome(FAILED, reason=str(error))
        if worker.runs >= RUNS_PER_WORKER:
            self._drop(worker)
        else:
            with self._lock:
                self._idle.append(worker)
        if _CANNOT_GO_ON in answer:
            raise UsageError(answer[_CANNOT_GO_ON])
        return Outcome(**answer)

    def _drop(self, worker: Worker) -> None:
        worker.stop()
        with self._lock:
            self._all.discard(worker)

    def close(self) -> None:
        """Ends all workers."""
        with self._lock:
            self._closed = True
            workers = list(self._all)
        for worker in workers:
            worker.stop()


class Bar:
    """How many runs are done, on a terminal; nothing elsewhere."""

    WIDTH = 30

    def __init__(self, total: int, stream: IO[str]) -> None:
        self.total, self.stream, self.start = total, stream, time.monotonic()
        self.shown = stream.isatty()

    def draw(self, done: int) -> None:
        if self.shown:
            filled = self.WIDTH * done // self.total
            left = (
                (time.monotonic() - self.start) / done * (self.total - done)
                if done
                else float("nan")
            )
            rest = "" if not done else f"  about {left:.0f} s left"
            self.stream.write(
                f"\r[{'=' * filled}{' ' * (self.WIDTH - filled)}] {done}/{self.total}"
                f" runs{rest}\x1b[K"
            )
            self.stream.flush()

    def clear(self) -> None:
        if self.shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


def run_jobs(
    options: Options, todo: Sequence[tuple[Task, bool]], rooms: Sequence[str]
) -> Iterator[tuple[Task, Outcome]]:
    """Makes runs in `options.jobs` processes at once and yields each as it ends.

    Args:
        todo: runs, and whether only what a finished one lacks is wanted.
        rooms: modules that a worker imports to know all methods and datasets.

    Raises:
        UsageError: a worker found that no run can go on (flags, data or the output folder).
    """
    bar = Bar(len(todo), sys.stderr)
    pool = Pool(options, rooms)
    threads = ThreadPoolExecutor(min(options.jobs, len(todo)))
    try:
        futures = {
            threads.submit(pool.make, task, only_complete): task for task, only_complete in todo
        }
        bar.draw(0)
        for done, future in enumerate(as_completed(futures), 1):
            bar.clear()
            yield futures[future], future.result()
            bar.draw(done)
    finally:
        bar.clear()
        pool.close()
        threads.shutdown(wait=True, cancel_futures=True)


# --------------------------------------------------------------------- the worker's side


def _lines(into: queue.Queue[str]) -> None:
    for line in sys.stdin:
        into.put(line)
    os._exit(0)  # the command is gone: no one waits for the run that is being made


def work(rooms: Sequence[str]) -> None:
    """Reads runs and answers them until standard input ends."""
    from neucrowd_tf.harness import process, runner
    from neucrowd_tf.harness import rooms as registers
    from neucrowd_tf.harness.cli import plain_warnings

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints, it is not an answer
    process.quiet()
    plain_warnings()
    lines: queue.Queue[str] = queue.Queue()
    first = sys.stdin.readline().rstrip("\n")
    threading.Thread(target=_lines, args=(lines,), daemon=True).start()
    registers.register(rooms)
    options, data = first, runner.Data(Options.from_json(first))
    while True:
        item = json.loads(lines.get())
        if item["options"] != options:
            options, data = item["options"], runner.Data(Options.from_json(item["options"]))
        task = Task(RunKey(**item["key"]), item["hparams"], progress=False)
        try:
            strategy = process.start(data.options)
            outcome = runner.make_run(task, data.options, data, strategy, item["only_complete"])
            answer: dict[str, Any] = vars(outcome)
        except (DataError, UsageError, OSError) as error:
            answer = {_CANNOT_GO_ON: " ".join(str(error).split())}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is the command's business, which ends its workers
    work(sys.argv[1:])
