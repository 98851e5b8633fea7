"""What malformed inputs are made from: sound tables, and what writes files."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Rows = list[list[str]]


def text_of(rows: Iterable[Sequence[str]], separator: str = ",", end: str = "\n") -> str:
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator, lineterminator=end).writerows(rows)
    return stream.getvalue()


@dataclasses.dataclass
class Sound:
    """Sound tables: 24 tasks, 5 annotators, two or three classes, two informative features."""

    tasks: list[str]
    workers: list[str]
    classes: list[str]
    truth: list[int]
    triples: Rows
    features: Rows

    @property
    def long(self) -> Rows:
        return [["task", "worker", "label"], *self.triples]

    @property
    def table(self) -> Rows:
        return [["task", "x", "y"], *self.features]

    @property
    def wide(self) -> Rows:
        given = {(task, worker): label for task, worker, label in self.triples}
        return [
            ["task", *self.workers],
            *([task, *(given.get((task, w), "") for w in self.workers)] for task in self.tasks),
        ]

    @property
    def truths(self) -> Rows:
        labels = [self.classes[code] for code in self.truth]
        return [["task", "label"], *map(list, zip(self.tasks, labels, strict=True))]


def sound(seed: int, classes: Sequence[str] | None = None, full: bool = False) -> Sound:
    """Returns sound tables drawn with a seed; `full` means that everybody labels everything."""
    rng = np.random.default_rng([seed, 0x70B7])
    names = list(classes or [("no", "yes"), ("0", "1"), ("a", "b", "c"), ("1", "2", "3")][seed % 4])
    tasks = [f"t{i}" if seed % 3 else f"{i + 100}" for i in range(24)]
    workers = [f"w{j}" if seed % 2 else f"ann {chr(65 + j)}" for j in range(5)]
    truth = [i % len(names) for i in range(24)]
    triples = []
    for task, code in zip(tasks, truth, strict=True):
        for j in range(5) if full else sorted(rng.choice(5, 4, replace=False)):
            given = code if rng.random() < 0.85 else int(rng.integers(len(names)))
            triples.append([task, workers[j], names[given]])
    angle = 2 * np.pi * np.array(truth) / len(names)
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(0, 0.3, (24, 2))
    features = [[t, f"{a:.6f}", f"{b:.6f}"] for t, (a, b) in zip(tasks, x, strict=True)]
    return Sound(tasks, workers, names, truth, triples, features)


def copied(rows: Rows) -> Rows:
    return [list(row) for row in rows]


def some(rows: Rows, rng: np.random.Generator, count: int, column: int) -> list[int]:
    """Returns rows below the header whose cell is filled."""
    filled = [i for i in range(1, len(rows)) if rows[i][column]]
    return sorted(rng.choice(filled, min(count, len(filled)), replace=False).tolist())


def put(name: str, content: Any) -> Callable[[Path], None]:
    """Returns what writes one file: rows, text or bytes."""

    def write(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            text = content if isinstance(content, str) else text_of(content)
            path.write_bytes(text.encode("utf-8", "surrogatepass"))

    return write


def both(*writers: Callable[[Path], None]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        for one in writers:
            one(folder)

    return write
