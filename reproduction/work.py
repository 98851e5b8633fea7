"""Makes the runs of many cases, as many at once as `--jobs` says, with one bar and one estimate for
all of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from neucrowd_tf.errors import DataError, UsageError, one_line
from neucrowd_tf.harness import process, runner
from neucrowd_tf.harness.execute import FATAL, Outcome
from neucrowd_tf.harness.flags import Options
from neucrowd_tf.harness.jobs import Bar, Pool
from neucrowd_tf.harness.results import FAILED
from neucrowd_tf.harness.run_config import Task

Report = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Work:
    """One run: the case's command, what to run, and whether only what a finished run lacks is to be
    made.
    """

    label: str
    options: Options
    task: Task
    only_complete: bool


def make_all(
    works: Sequence[Work], jobs: int, report: Report, rooms: Sequence[str]
) -> Iterator[tuple[Work, Outcome]]:
    """Makes runs, tells of each, and yields it as it ends; one that cannot be made is a failed one.

    Raises:
        OSError: no run can go on: the disk is full, or the folder cannot be written.
    """
    started, bar = time.monotonic(), Bar(len(works), sys.stderr)
    ended = _made_here(works) if jobs == 1 else _made_in_workers(works, jobs, rooms)
    bar.draw(0)
    with contextlib.closing(ended):
        for done, (work, outcome) in enumerate(ended, 1):
            bar.clear()
            minutes = (time.monotonic() - started) / done * (len(works) - done) / 60
            report(
                f"[{done}/{len(works)}, about {minutes:.0f} min left] {work.label}{work.task.key}:"
                f" {runner.describe(outcome)}"
            )
            yield work, outcome
            bar.draw(done)
    bar.clear()


def _made_here(works: Sequence[Work]) -> Generator[tuple[Work, Outcome], None, None]:
    data: runner.Data | None = None
    for work in works:
        strategy = process.start(work.options)
        if data is None or data.options != work.options:
            data = runner.Data(work.options)
        try:
            outcome = runner.make_run(work.task, work.options, data, strategy, work.only_complete)
        except (DataError, UsageError, OSError) as error:
            if isinstance(error, OSError) and error.errno in FATAL:
                raise
            outcome = Outcome(FAILED, reason=one_line(error))
        yield work, outcome


def _made_in_workers(
    works: Sequence[Work], jobs: int, rooms: Sequence[str]
) -> Generator[tuple[Work, Outcome], None, None]:
    pool = Pool(works[0].options, rooms)
    threads = ThreadPoolExecutor(min(jobs, len(works)))
    waiting: dict[Future[Outcome], Work] = {}
    try:
        for work in works:
            waiting[threads.submit(pool.make, work.task, work.only_complete, work.options)] = work
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                work = waiting.pop(future)
                try:
                    outcome = future.result()
                except UsageError as error:
                    outcome = Outcome(FAILED, reason=str(error))
                yield work, outcome
    finally:
        pool.close()
        threads.shutdown(wait=True, cancel_futures=True)


def failure_lines(work: Work, outcome: Outcome) -> list[str]:
    """Returns a line for a run that failed, nothing for one that did not."""
    found: list[Any] = [f"{work.label}{work.task.key}: {outcome.reason}"]
    return found if outcome.status == FAILED else []
