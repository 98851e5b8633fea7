"""Malformed inputs and killed runs, counted: `make torture`.

python -m tests.torture [--inputs=1500] [--kills=200] [--seed=0] [--show=3] [--only=KIND]
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.torture.inputs import BAD, table, try_inputs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1600)
    parser.add_argument("--kills", type=int, default=220)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    began = time.monotonic()
    bad = 0
    if given.inputs:
        found = try_inputs(given.inputs, given.seed, given.workers, given.only)
        print("\n".join(table(found, given.show)), flush=True)
        bad += sum(outcome in BAD for _, outcome, _ in found)
    if given.kills:
        from tests.torture.kills import try_kills

        lines, differing = try_kills(given.kills, given.seed, given.workers)
        print("\n".join(lines), flush=True)
        bad += differing
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
