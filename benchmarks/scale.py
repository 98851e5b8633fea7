"""Truth inference out of core: Parquet to labels in Parquet, at growing sizes, each in a process of
its own.

    python -m benchmarks.scale [--sizes=1e6,1e7] [--workers=1,2] [--json]
        [--method=dawid_skene] [--iterations=10] [--drawn=DIR]

Processor seconds are reported with those of the clock, for busy machines. --drawn keeps the crowds
in a folder for the next time.

Simulated crowds of five classes and ten labels a task, in a row group for each half a million rows.
`growth` is the largest size's seconds over the smallest's, divided by the ratio of the sizes, both
with the most workers and without the time to load Python's modules; `speedup` is of the most
workers over the fewest at the largest size.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.timing import Clock, arguments, peak_memory_mb, show
from neucrowd_tf.io.files.atomic import atomic_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLASSES, LABELS_EACH = 5, 10
BLOCK = 500_000  # rows that are drawn at a time
FILE = 100_000_000  # rows of a file
ANNOTATORS = 100_000  # at most; small crowds have one for each hundred labels


def write_crowd(folder: Path, annotations: int, annotators: int, seed: int = 0) -> None:
    """Writes a simulated crowd in the order of time, in files of `FILE` rows, those that are not
    there yet: a task's labels lie in one row group, tasks in random order with ids that are not in
    sequence.
    """
    folder.mkdir(parents=True, exist_ok=True)
    skills = np.random.default_rng([seed, annotations]).normal(0.7, 0.15, annotators)
    skill = np.clip(skills, 0.25, 0.98).astype(np.float32)
    schema = pa.schema({"task": pa.int64(), "worker": pa.int64(), "label": pa.int8()})
    for number, begin in enumerate(range(0, annotations, FILE)):
        path = folder / f"part-{number:03d}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng([seed, annotations, number])
        end = min(begin + FILE, annotations)
        with atomic_path(path) as temporary, pq.ParquetWriter(temporary, schema) as writer:
            for first in range(begin, end, BLOCK):
                rows = _block(rng, first, min(BLOCK, end - first), annotations, skill)
                writer.write_table(pa.table(rows, schema=schema))
        print(f"{path}: {end:,} rows", file=sys.stderr, flush=True)


def _block(
    rng: np.random.Generator, first: int, size: int, annotations: int, skill: NDArray[np.float32]
) -> list[NDArray[Any]]:
    """Returns the tasks, annotators and labels of some rows."""
    tasks, annotators = size // LABELS_EACH, len(skill)
    truth = rng.integers(0, CLASSES, tasks, dtype=np.int8)
    task, position = np.divmod(rng.permutation(tasks * LABELS_EACH), LABELS_EACH)
    start = rng.integers(0, annotators, tasks)
    worker = (start[task] + position * (annotators // LABELS_EACH)) % annotators
    wrong = rng.random(len(task), dtype=np.float32) > skill[worker]
    shift = rng.integers(1, CLASSES, len(task), dtype=np.int8) * wrong
    ids = (first // LABELS_EACH + task) * 7919 % (annotations * 16 + 1)
    return [ids, worker, ((truth[task] + shift) % CLASSES).astype(np.int8)]


def measure(
    options: argparse.Namespace, source: Path, output: Path, workers: int
) -> dict[str, Any]:
    """Fits in this process, and returns seconds and memory."""
    from neucrowd_tf.aggregation.engine.fit import Request, fit
    from neucrowd_tf.aggregation.engine.local import Local

    clocks: list[float] = []

    def report(line: str) -> None:
        print(f"    {line}", file=sys.stderr, flush=True)
        if line.startswith("iteration"):
            clocks.append(time.process_time())

    request = Request(source, options.method, output, options.iterations, 0.0, report=report)
    engine = Local(workers)
    with Clock() as clock:
        outcome = fit(request, engine)
    engine.close()
    spent = outcome["seconds"]
    return {
        "workers": workers,
        "annotations": outcome["num_annotations"],
        "seconds": round(clock.seconds, 2),
        "seconds_per_iteration": round(spent["iterate"] / outcome["n_iter"], 3),
        "read_seconds": round(spent["read"], 2),
        "write_seconds": round(spent["write"], 2),
        "peak_memory_mb": round(peak_memory_mb()),
        "cpu_seconds_per_iteration": round((clocks[-1] - clocks[0]) / max(len(clocks) - 1, 1), 3),
        "cpu_seconds": round(clock.cpu_seconds, 2),
        "digest": digest(output),
    }


def digest(output: Path) -> str:
    """Returns a digest of all labels and of the parameters."""
    outcome = hashlib.sha256()
    for section in sorted((output / "labels").glob("*.parquet")):
        table = pq.read_table(section)
        for column in table.columns[:3]:
            outcome.update(column.to_numpy().tobytes())
    with np.load(output / "parameters.npz") as arrays:
        for name in sorted(arrays.files):
            outcome.update(arrays[name].tobytes())
    return outcome.hexdigest()


def main() -> None:
    """Measures every size with every number of workers, each in a process of its own."""
    options = arguments(
        __doc__, sizes="1e6,1e7", workers="1,2", drawn=None, method="dawid_skene", iterations=10
    )
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in (int(float(text)) for text in options.sizes.split(",")):
            source = (options.drawn or Path(folder)) / str(size)
            write_crowd(source, size, min(ANNOTATORS, max(size // 100, LABELS_EACH)))
            for workers in map(int, options.workers.split(",")):
                output = Path(folder) / "out"
                with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
                    fit = process.submit(measure, options, source, output, workers)
                    rows.append(fit.result())
                shutil.rmtree(output)
                print(rows[-1], file=sys.stderr, flush=True)
            if options.drawn is None:
                shutil.rmtree(source)
    result = summary(rows)
    show(options, result, str({key: result[key] for key in result if key != "runs"}))


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the largest size's figures with the most workers, growth and speedup."""
    at = {(row["annotations"], row["workers"]): row for row in rows}
    sizes, workers = zip(*at, strict=True)
    largest, smallest, most, fewest = max(sizes), min(sizes), max(workers), min(workers)
    best = at[largest, most]
    result = {key: best[key] for key in ("seconds", "seconds_per_iteration", "peak_memory_mb")}
    ratio = best["seconds"] / at[smallest, most]["seconds"]
    result["growth"] = round(ratio / (largest / smallest), 3)
    result["speedup"] = round(at[largest, fewest]["seconds"] / best["seconds"], 3)
    result["annotations"], result["workers"] = largest, most
    result["same_results"] = all(
        len({row["digest"] for row in rows if row["annotations"] == size}) == 1
        for size in {row["annotations"] for row in rows}
    )
    result["runs"] = rows
    return result


if __name__ == "__main__":
    main()
