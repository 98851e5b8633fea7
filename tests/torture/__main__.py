"""Malformed inputs and broken runs, counted: `make torture`.

python -m tests.torture [--first=0] [--inputs=1600] [--kills=240] [--seed=0] [--result=FILE]

With --result each outcome is a line of that file, and what it has is not tried again: a run that
was stopped goes on, and pieces (--first, --methods) add up. --page writes the counts as a page.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from tests.torture.record import Record


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--inputs", type=int, default=1600, help="how many inputs")
    parser.add_argument("--step", type=int, default=1, help="each so many-th input")
    parser.add_argument("--kills", type=int, default=240, help="how many broken runs, over methods")
    parser.add_argument(
        "--methods", default="", help="whose runs are broken; default one a class of estimators"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=1, help="how many findings of a kind")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="kinds of inputs with this in their name")
    parser.add_argument("--result", type=Path, help="file of outcomes, which grows")
    parser.add_argument("--page", type=Path, help="writes the counts as Markdown")
    parser.add_argument("--memory", type=Path, help="benchmarks.memory's JSON, for the page")
    given = parser.parse_args()
    began = time.monotonic()
    with Record(given.result) as record:
        if given.inputs:
            from tests.torture.inputs import Wanted, try_inputs

            wanted = Wanted(given.inputs, given.seed, given.first, given.step, given.only)
            try_inputs(wanted, record, given.workers)
        if given.kills:
            from tests.torture.kills import families, try_kills

            methods = tuple(given.methods.split(",")) if given.methods else families()
            try_kills(given.kills, given.seed, given.workers, methods, record)
        print("\n".join(record.lines(given.show)), flush=True)
        if given.page is not None:
            memory = json.loads(given.memory.read_text()) if given.memory else None
            given.page.write_text(record.page(memory), encoding="utf-8")
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if record.bad else 0


if __name__ == "__main__":
    sys.exit(main())
