"""Measures every goal of the certainty of labels, and learns the calibration.

    python -m benchmarks.certainty [--data_dir=D] [--outside=FOLDER] [--kept=FOLDER] [--parts=...]

Crowds are those of `benchmarks/crowds.csv`, which names the repository and commit of each file,
and LabelMe, Music and 4,000 images of CIFAR-10N. Each is also thinned to two and three labels per
item. `--outside` has a folder `<owner>/<name>` with the files of each repository. The crowds of
`<data_dir>/outside_truth` and the case `gold_minority` in `--cases` only check. `--kept` keeps
what is measured, so that a command that was stopped goes on; empty it if methods change.

Two parts have to be named. `calibrate` writes neucrowd_tf/certainty/recalibration.json, learned on
all crowds, and results/calibration.csv: each crowd's figures when its family is left out of the
learning. `grid` adds to results/people_and_models.csv what it lacks, by `--seeds` for each cell;
remove it if methods change.
The others print a table of figures and what is wanted, results/certainty.csv.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from benchmarks.certainty import goals
from benchmarks.certainty.calibration import calibrate
from benchmarks.certainty.crowds import fitted_crowds
from benchmarks.certainty.models import measure_grid
from benchmarks.timing import arguments, data_folder

RESULTS = Path(__file__).parents[2] / "results"
CALIBRATE = "calibrate"
GRID = "grid"


def main() -> None:
    """Runs the parts."""
    beside = data_folder().parent / "cases" / "certainty"
    options = arguments(
        __doc__, data_dir=data_folder(), cases=beside, outside=Path, kept=Path, parts="", seeds=8
    )
    warnings.simplefilter("ignore")  # not converged, on small sets
    if options.kept:
        options.kept.mkdir(parents=True, exist_ok=True)
    every = list(dict.fromkeys(goal.part for goal in goals.GOALS))
    parts = options.parts.split(",") if options.parts else every
    if unknown := set(parts) - {*every, CALIBRATE, GRID}:
        names = ", ".join([*every, CALIBRATE, GRID])
        raise SystemExit(f"--parts: no part {', '.join(sorted(unknown))}; there are {names}.")
    if CALIBRATE in parts:
        rows = calibrate(list(fitted_crowds(options)))
        rows.round(3).to_csv(RESULTS / "calibration.csv", index=False)
    if GRID in parts:
        measure_grid(options.data_dir, RESULTS / "people_and_models.csv", options.seeds)
    measured = {}
    for part in parts:
        if part not in (CALIBRATE, GRID):
            measured[part] = goals.measured(part, options, RESULTS)
            print(part, file=sys.stderr, flush=True)
    table = goals.table(measured)
    if parts == every:
        table.to_csv(RESULTS / "certainty.csv", index=False)
    print(table.to_csv(index=False), end="")


if __name__ == "__main__":
    main()
