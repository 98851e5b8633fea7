"""Tries inputs, in this process or several, and records what became of them."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

from tests.torture.base import Input
from tests.torture.judge import prepare, tried
from tests.torture.record import Record


def drawn(seed: int) -> Iterator[Input]:
    """Yields inputs of every kind, over and over with further draws."""
    from tests.torture import folders, labels, tables, variants

    for number in count(seed * 1_000_000):
        yield from labels.inputs(number)
        yield from variants.inputs(number)
        yield from tables.inputs(number)
        if number % 4 == 0:
            yield from folders.inputs(number)


def _numbered(
    seed: int, first: int, size: int, only: str, step: int = 1
) -> Iterator[tuple[int, Input]]:
    inputs = islice(enumerate(drawn(seed)), first, None)
    fitting = (item for item in inputs if only in item[1].kind)
    yield from islice(fitting, 0, size * step, step)


def _outcome(seed: int, number: int, given: Input) -> dict[str, Any]:
    began = time.monotonic()
    outcome, note = tried(given)
    seconds = round(time.monotonic() - began, 2)
    return {
        "input": [seed, number],
        "kind": given.kind,
        "outcome": outcome,
        "note": note,
        "seconds": seconds,
    }


def _work(
    seed: int, first: int, size: int, only: str, done: set[int], part: int, parts: int, queue: Any
) -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    prepare()
    try:
        for place, (number, given) in enumerate(_numbered(seed, first, size, only)):
            if place % parts == part and number not in done:
                queue.put(_outcome(seed, number, given))
    finally:
        queue.put(None)


def try_inputs(
    size: int,
    seed: int,
    workers: int = 2,
    only: str = "",
    *,
    first: int = 0,
    record: Record,
    step: int = 1,
) -> None:
    """Records the outcome of each input from the first on that is not there.

    Args:
        size: how many inputs.
        seed: draws them.
        workers: how many processes; 0 tries them in this one.
        only: the kinds with this in their name.
        first: the number of the first input.
        record: what is there, and what comes.
        step: takes each step-th input (in this process).
    """
    done = record.tried(seed)
    if not workers:
        for number, given in _numbered(seed, first, size, only, step):
            if number not in done:
                record.add(_outcome(seed, number, given))
        return
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [
        context.Process(target=_work, args=(seed, first, size, only, done, i, workers, queue))
        for i in range(workers)
    ]
    for process in processes:
        process.start()
    running = workers
    while running:
        item = queue.get()
        if item is None:
            running -= 1
        else:
            record.add(item)
    for process in processes:
        process.join()
        if process.exitcode:
            raise RuntimeError(f"a process of inputs ended with {process.exitcode}")
