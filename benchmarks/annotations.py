"""Speed and memory of turning many labels into `Annotations` and vote counts, from arrays, from
CSV, and of splitting rows.

    python -m benchmarks.annotations [--json] [--annotations=10000000] [--seed=0]

Each case runs in a process of its own, on one core: `cpu_seconds` is what `seconds` would be on an
idle machine. `peak_memory_mb` is that whole process's, the input arrays (three int64 columns)
included. With --json one JSON object goes to stdout and the table goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from neucrowd_tf.annotations import Annotations

CASES = ("arrays", "text_arrays", "csv", "text_csv", "rows")
LABELS_EACH, CLASSES = 5, 5


def columns(total: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns tasks, workers and labels `[total]` int64 in random order, five labels a task, none
    twice.
    """
    generator = np.random.default_rng(seed)
    tasks, annotators = max(total // LABELS_EACH, 1), max(total // 500, 10)
    cell = generator.permutation(tasks * LABELS_EACH)[:total]
    task, turn = np.divmod(cell, LABELS_EACH)
    worker = (task * 7919 + turn * 37) % annotators
    return task, worker, generator.integers(CLASSES, size=total)


def measure(case: str, total: int, seed: int, folder: Path) -> dict[str, float]:
    """Runs one case in this process and returns its seconds and the process's peak memory."""
    path = folder / f"{case}.csv"
    if case in ("csv", "text_csv"):
        start = time.perf_counter(), time.process_time()
        annotations = Annotations.from_csv(path)
    else:
        tasks, workers, labels = columns(total, seed)
        if case == "text_arrays":
            workers = np.array(
                [f"w{number}" for number in range(int(workers.max()) + 1)], dtype=object
            )[workers]
        start = time.perf_counter(), time.process_time()
        annotations = Annotations.from_arrays(tasks, workers, labels)
        if case == "rows":
            half = np.random.default_rng(seed).permutation(annotations.num_instances)[
                : annotations.num_instances // 2
            ]
            start = time.perf_counter(), time.process_time()
            annotations = annotations[half]
    counts = annotations.vote_counts()
    seconds, cpu_seconds = time.perf_counter() - start[0], time.process_time() - start[1]
    if counts.sum() != annotations.num_annotations:
        raise RuntimeError(
            f"{case}: {counts.sum()} votes for {annotations.num_annotations} annotations"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
        "peak_memory_mb": round(peak, 1),
    }


def write_csv(case: str, total: int, seed: int, folder: Path) -> None:
    """Writes the CSV of a case: whole numbers, or ids that are text."""
    tasks, workers, labels = columns(total, seed)
    frame = pd.DataFrame({"task": tasks, "worker": workers, "label": labels})
    if case == "text_csv":
        frame["worker"] = "w" + frame["worker"].astype(str)
    frame.to_csv(folder / f"{case}.csv", index=False)


def run(total: int, seed: int) -> dict[str, float]:
    """Runs every case in a process of its own and returns all figures by name."""
    figures: dict[str, float] = {"annotations": total}
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            flags = [
                f"--case={case}",
                f"--annotations={total}",
                f"--seed={seed}",
                f"--folder={folder}",
            ]
            command = [sys.executable, "-m", "benchmarks.annotations", *flags]
            if case in (
                "csv",
                "text_csv",
            ):  # written elsewhere too: a child's peak memory begins at its parent's
                subprocess.run([*command, "--write"], check=True)
            found = json.loads(
                subprocess.run(command, check=True, capture_output=True, text=True).stdout
            )
            figures.update({f"{case}_{name}": value for name, value in found.items()})
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    parser.add_argument("--annotations", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", choices=CASES, help="one case, in this process")
    parser.add_argument("--folder", default=".", help="where a case's CSV lies")
    parser.add_argument(
        "--write", action="store_true", help="write the case's CSV instead of measuring"
    )
    flags = parser.parse_args()
    if flags.write:
        write_csv(flags.case, flags.annotations, flags.seed, Path(flags.folder))
        return
    if flags.case:
        print(json.dumps(measure(flags.case, flags.annotations, flags.seed, Path(flags.folder))))
        return
    figures = run(flags.annotations, flags.seed)
    table = sys.stderr if flags.json else sys.stdout
    print(f"{flags.annotations:,} annotations to Annotations and vote counts", file=table)
    for case in CASES:
        seconds, cpu, peak = (
            figures[f"{case}_{name}"] for name in ("seconds", "cpu_seconds", "peak_memory_mb")
        )
        print(f"{case:12} {seconds:8.2f} s {cpu:8.2f} s CPU {peak:8.0f} MB", file=table)
    if flags.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
