"""Predictions of every method in the smoke suite, compared with those that are stored.

    python -m tests.digests runs/smoke            # after `make smoke`, which does this
    python -m tests.digests runs/smoke --exact    # to the byte, on the machine that stored them
    python -m tests.digests runs/smoke --write    # store them anew

Processors differ in last bits, so `make smoke` allows a tolerance. What is resumed or saved is
compared with the unbroken fit, to the byte, by tests/test_common.py.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

STORED = Path(__file__).with_name("digests.json")
ROWS = 6  # whose probabilities are stored
APART = 0.02  # how far these may lie from the stored ones on another processor
OTHERS = 6  # of the test instances: how many may have another class there
Digest = Mapping[str, Any]


def digest(run: Path) -> Digest:
    """Returns what is stored of a finished run's predictions.csv."""
    text = (run / "predictions.csv").read_text(encoding="utf-8")
    for title in ("true_label", "likely_label"):  # the stored hashes have another header
        text = text.replace(f"task,{title},", "task,label,", 1)
    header, *rows = csv.reader(text.splitlines())
    classes = [name.removeprefix("p_") for name in header[3:]]
    return {
        "predictions": hashlib.sha256(text.encode()).hexdigest()[:12],
        "labels": "".join(str(classes.index(row[2])) for row in rows),
        "last": [round(float(row[-1]), 4) for row in rows[:ROWS]],
    }


def digests(root: Path) -> dict[str, Digest]:
    """Returns the digests of a smoke suite's finished runs by method."""
    runs = sorted(root.glob("runs/smoke/*/*/seed-*/metrics.json"))
    return {path.parts[-3]: digest(path.parent) for path in runs}


def differences(stored: Mapping[str, Digest], made: Mapping[str, Digest], exact: bool) -> list[str]:
    """Returns a line for each method whose predictions are not the stored ones."""
    lines = [f"{name}: no finished run" for name in stored if name not in made]
    lines += [f"{name}: not stored; see --write" for name in made if name not in stored]
    for name in sorted(stored.keys() & made.keys()):
        old, new = stored[name], made[name]
        if exact:
            lines += [f"{name}: other bytes"] * (old["predictions"] != new["predictions"])
            continue
        apart = max(abs(p - q) for p, q in zip(old["last"], new["last"], strict=True))
        others = sum(p != q for p, q in zip(old["labels"], new["labels"], strict=True))
        if apart > APART or others > OTHERS:
            lines.append(f"{name}: {others} other classes, probabilities up to {apart:.4f} apart")
    return lines


def main() -> int:
    """Compares or stores; returns the exit code."""
    parser = argparse.ArgumentParser(description="Compares a smoke suite with stored predictions.")
    parser.add_argument("folder", type=Path, help="the suite's --output_dir")
    parser.add_argument("--exact", action="store_true", help="compare bytes")
    parser.add_argument("--write", action="store_true", help="store these predictions")
    parser.add_argument("--methods", default="", help="comma-separated; all by default")
    options = parser.parse_args()
    made = digests(options.folder)
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    chosen = options.methods.split(",") if options.methods else []
    if options.write:
        if chosen:
            made = stored | {name: made[name] for name in chosen}
        lines = (f'"{name}": {json.dumps(each)}' for name, each in sorted(made.items()))
        STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return 0
    if chosen:
        stored, made = ({n: x for n, x in each.items() if n in chosen} for each in (stored, made))
    lines = differences(stored, made, options.exact)
    print("\n".join(lines) or f"{len(made)} methods: the stored predictions")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
