"""Tries inputs in processes of their own, and counts."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import count, islice

from tests.torture.base import Input
from tests.torture.judge import OUTCOMES, prepare, tried

BAD = ("accepted wrong", "refused wrongly", "traceback", "hang")


def drawn(seed: int) -> Iterator[Input]:
    """Yields inputs of every kind, over and over with further draws."""
    from tests.torture import folders, labels, tables

    for number in count(seed * 1_000_000):
        yield from labels.inputs(number)
        yield from tables.inputs(number)
        if number % 4 == 0:
            yield from folders.inputs(number)


def _work(seed: int, worker: int, workers: int, size: int, only: str) -> list[tuple[str, ...]]:
    found = []
    for number, given in enumerate(islice(drawn(seed), size)):
        if number % workers == worker and only in given.kind:
            found.append((given.kind, *tried(given)))
    return found


def _begin() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    prepare()


def try_inputs(size: int, seed: int, workers: int = 2, only: str = "") -> list[tuple[str, ...]]:
    """Returns kind, outcome and note of each input."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, _begin) as pool:
        parts = pool.starmap(_work, [(seed, i, workers, size, only) for i in range(workers)])
    return [item for part in parts for item in part]


def table(found: list[tuple[str, ...]], show: int) -> list[str]:
    """Returns the counts, and the first bad ones of each kind."""
    totals = Counter(outcome for _, outcome, _ in found)
    lines = [f"inputs tried: {len(found)}"]
    lines += [f"  {name}: {totals[name]}" for name in OUTCOMES]
    bad: dict[tuple[str, str], list[str]] = defaultdict(list)
    for kind, outcome, note in found:
        if outcome in BAD:
            bad[kind, outcome].append(note)
    for (kind, outcome), notes in sorted(bad.items()):
        lines.append(f"- {kind}: {len(notes)} {outcome}")
        lines += [f"    {note}" for note in notes[:show]]
    return lines
