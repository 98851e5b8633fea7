"""Speed and memory of turning many labels into `Annotations` and vote counts, from arrays, from
CSV, and of splitting rows.

    python -m benchmarks.annotations [--json] [--annotations=10000000] [--seed=0]

Each case runs in a process of its own, on one core: `cpu_seconds` is what `seconds` would be on an
idle machine. `peak_memory_mb` is that whole process's, the input arrays (three int64 columns)
included. With --json one JSON object goes to stdout and the table goes to stderr.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.timing import Clock, flags, peak_memory_mb
from neucrowd_tf.annotations import Annotations

CASES = ("arrays", "text_arrays", "csv", "text_csv", "rows")
CSVS = ("csv", "text_csv")
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
    given = columns(total, seed) if case not in CSVS else ()
    if case == "text_arrays":
        names = [f"w{number}" for number in range(int(given[1].max()) + 1)]
        given = given[0], np.array(names, dtype=object)[given[1]], given[2]
    if case == "rows":
        whole = Annotations.from_arrays(*given)
        half = np.random.default_rng(seed).permutation(whole.num_instances)
        half = half[: whole.num_instances // 2]
    with Clock() as clock:
        if case in CSVS:
            annotations = Annotations.from_csv(folder / f"{case}.csv")
        else:
            annotations = whole[half] if case == "rows" else Annotations.from_arrays(*given)
        counts = annotations.vote_counts()
    if counts.sum() != annotations.num_annotations:
        raise RuntimeError(
            f"{case}: {counts.sum()} votes for {annotations.num_annotations} annotations"
        )
    return {
        "seconds": round(clock.seconds, 3),
        "cpu_seconds": round(clock.cpu_seconds, 3),
        "peak_memory_mb": round(peak_memory_mb(), 1),
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
            command = [sys.executable, "-m", "benchmarks.annotations", f"--case={case}"]
            command += [f"--annotations={total}", f"--seed={seed}", f"--folder={folder}"]
            if case in CSVS:  # written elsewhere too: a child's peak begins at its parent's
                subprocess.run([*command, "--write"], check=True)
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout)
            figures.update({f"{case}_{name}": value for name, value in found.items()})
    return figures


def main() -> None:
    parser = flags(__doc__)
    parser.add_argument("--annotations", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", choices=CASES, help="one case, in this process")
    parser.add_argument("--folder", default=".", help="where a case's CSV lies")
    writes = "write the case's CSV instead of measuring"
    parser.add_argument("--write", action="store_true", help=writes)
    given = parser.parse_args()
    if given.write:
        write_csv(given.case, given.annotations, given.seed, Path(given.folder))
        return
    if given.case:
        print(json.dumps(measure(given.case, given.annotations, given.seed, Path(given.folder))))
        return
    figures = run(given.annotations, given.seed)
    table = sys.stderr if given.json else sys.stdout
    print(f"{given.annotations:,} annotations to Annotations and vote counts", file=table)
    for case in CASES:
        seconds, cpu, peak = (
            figures[f"{case}_{name}"] for name in ("seconds", "cpu_seconds", "peak_memory_mb")
        )
        print(f"{case:12} {seconds:8.2f} s {cpu:8.2f} s CPU {peak:8.0f} MB", file=table)
    if given.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
