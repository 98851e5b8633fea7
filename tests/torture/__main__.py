"""Broken runs: `make torture`.

python -m tests.torture [--kills=240] [--methods=NAMES] [--seed=0] [--workers=2]
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.torture.kills import families, try_kills
from tests.torture.record import Record


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kills", type=int, default=240, help="broken runs, over all methods")
    parser.add_argument("--methods", default="", help="default: one per class of estimators")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    flags = parser.parse_args()
    began = time.monotonic()
    record = Record()
    methods = tuple(flags.methods.split(",")) if flags.methods else families()
    try_kills(flags.kills, flags.seed, flags.workers, methods, record)
    print("\n".join(record.lines()), flush=True)
    print(f"{time.monotonic() - began:.0f} s")
    return int(bool(record.wrong))


if __name__ == "__main__":
    sys.exit(main())
