"""Tries inputs, in this process or several, and records what became of them."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import time
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

from tests.torture.judge import prepare, tried
from tests.torture.oracle import Input
from tests.torture.record import Record


def drawn(seed: int) -> Iterator[Input]:
    """Yields inputs of every kind, over and over with further draws."""
    from tests.torture import folders, labels, mishaps, others, slips, tables, variants

    for number in count(seed * 1_000_000):
        yield from labels.inputs(number)
        yield from variants.inputs(number)
        yield from tables.inputs(number)
        yield from slips.inputs(number)
        if number % 4 == 0:
            yield from folders.inputs(number)
            yield from mishaps.inputs(number)
            yield from others.inputs(number)


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Which inputs: of the kinds with `only` in their name each `step`-th, from number `first` of
    those that `seed` draws, `size` of them.
    """

    size: int
    seed: int = 0
    first: int = 0
    step: int = 1
    only: str = ""


def _numbered(wanted: Wanted) -> Iterator[tuple[int, Input]]:
    inputs = islice(enumerate(drawn(wanted.seed)), wanted.first, None)
    fitting = (item for item in inputs if wanted.only in item[1].kind)
    yield from islice(fitting, 0, wanted.size * wanted.step, wanted.step)


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


def _work(wanted: Wanted, done: set[int], part: int, parts: int, queue: Any) -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    prepare()
    try:
        for place, (number, given) in enumerate(_numbered(wanted)):
            if place % parts == part and number not in done:
                queue.put(_outcome(wanted.seed, number, given))
    finally:
        queue.put(None)


def try_inputs(wanted: Wanted, record: Record, workers: int = 2) -> None:
    """Records the outcome of each input that is not there, tried in processes of their own."""
    done = record.tried(wanted.seed)
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [
        context.Process(target=_work, args=(wanted, done, part, workers, queue))
        for part in range(workers)
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
