"""Broken runs, limits of resources and the catalogue's own cases: `make torture`.

python -m tests.torture [--kills=240] [--methods=NAMES] [--seed=0] [--workers=2] [--result=FILE]

With --result each outcome becomes a line of that file, and what it has is not tried again. --page
writes the counts as a page.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.torture.cases import try_cases
from tests.torture.kills import families, try_kills
from tests.torture.limits import try_limits
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
    parser.add_argument("--result", type=Path, help="file of outcomes, which grows")
    parser.add_argument("--page", type=Path, help="Markdown file of the counts")
    flags = parser.parse_args()
    began = time.monotonic()
    with Record(flags.result) as record:
        try_cases(record)
        try_limits(record)
        if flags.kills:
            methods = tuple(flags.methods.split(",")) if flags.methods else families()
            try_kills(flags.kills, flags.seed, flags.workers, methods, record)
        print("\n".join(record.lines()), flush=True)
        if flags.page is not None:
            flags.page.write_text(record.page(), encoding="utf-8")
        failed = bool(record.wrong)
    print(f"{time.monotonic() - began:.0f} s")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
