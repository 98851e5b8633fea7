"""Runs the single-file examples on the papers' data: results/examples.csv.

python -m reproduction.examples rll neucrowd iced dasc crowding --data_dir=DATA

A row is a seed. Rows that stand in the file already are kept, so a stopped command continues.
"""

from __future__ import annotations

import argparse
import csv
import importlib
from itertools import product
from pathlib import Path

FOLDERS = {"rll": "hotel", "neucrowd": "hotel", "iced": "usps"}
FOLDERS |= {"dasc": "labelme", "crowding": "labelme"}
FIRST_SEED = 30_000
COLUMNS = ["paper", "dataset", "seed", "accuracy"]


def accuracy(paper: str, data_dir: Path, seed: int) -> float:
    """Returns the test accuracy of a paper's example."""
    example = importlib.import_module(f"examples.{paper}")
    folder = data_dir / FOLDERS[paper]
    data = example.load(folder, seed) if paper == "iced" else example.load(folder)
    return float(example.run(data, seed)[0])


def main() -> None:
    """Appends a row for each paper and seed that has none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("papers", nargs="+", choices=FOLDERS)
    parser.add_argument("--data_dir", type=Path, required=True, help="folder of the datasets")
    parser.add_argument("--seeds", type=int, default=10, help="how many, from 30000")
    parser.add_argument("--output", type=Path, default=Path("results/examples.csv"))
    options = parser.parse_args()
    text = options.output.read_text("utf-8") if options.output.exists() else ""
    done = {(row["paper"], int(row["seed"])) for row in csv.DictReader(text.splitlines())}
    with open(options.output, "a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not done:
            writer.writerow(COLUMNS)
        seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
        for paper, seed in product(options.papers, seeds):
            if (paper, seed) not in done:
                value = accuracy(paper, options.data_dir, seed)
                writer.writerow([paper, FOLDERS[paper], seed, f"{value:.6f}"])
                file.flush()


if __name__ == "__main__":
    main()
