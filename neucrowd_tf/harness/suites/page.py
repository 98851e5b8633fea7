"""RESULTS.md from the tables in a results folder: what reproduced and what did not, first in a few lines, then table by table.

    python -m neucrowd_tf.harness.suites.page results RESULTS.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from neucrowd_tf.errors import DataError
from neucrowd_tf.files import read_json, write_text
from neucrowd_tf.harness.suites.catalogue import SUITES
from neucrowd_tf.harness.suites.suite import FIRST_SEED
from neucrowd_tf.harness.suites.table import ABOVE, BELOW, REPRODUCED


def summary(outcomes: dict[str, dict[str, int]]) -> list[str]:
    """Returns the first lines: how many printed figures ended how."""
    total: dict[str, int] = {}
    for counts in outcomes.values():
        for status, count in counts.items():
            group = status if status in (REPRODUCED, ABOVE, BELOW) else status.split(",")[0] if status.startswith("not reproduced") else "not run"
            total[group] = total.get(group, 0) + count
    printed = sum(total.values())
    lines = [f"The papers print {printed} figures in the tables below:"]
    lines += [f"- {count} {status}" for status, count in sorted(total.items(), key=lambda item: -item[1])]
    return lines


def page(results: Path) -> str:
    """Returns RESULTS.md.

    Raises:
        DataError: a folder without tables.
    """
    found = [suite for suite in SUITES if (results / f"{suite.name}.json").exists()]
    if not found:
        raise DataError(f"{results}: expected tables that --suite wrote, received none")
    outcomes = {suite.name: read_json(results / f"{suite.name}.json")["outcomes"] for suite in found}
    lines = [
        "# Results",
        "",
        "Made by `make results` from `results/`; every table names the command that makes it. Means over seeds that begin at "
        f"{FIRST_SEED}, with Student's 95 % intervals. No choice was made on test labels; validation rows of some draws from {FIRST_SEED} on "
        "were compared for presets, as the notes say where it was so. \"Reproduced\" says that the paper's figure lies within ours; "
        "an interval over seeds holds the test set fixed, so it is narrower than what another test set would give.",
        "",
        *summary(outcomes),
        "",
    ]
    notes = results / "NOTES.md"
    if notes.exists():
        lines += [notes.read_text(encoding="utf-8").strip(), ""]
    for suite in found:
        lines.append((results / f"{suite.name}.md").read_text(encoding="utf-8"))
        pictures = [path.name for path in sorted(results.glob(f"{suite.name}*.png"))]
        lines += [f"![{suite.title}](results/{name})\n" for name in pictures]
    missing = [suite for suite in SUITES if suite not in found]
    if missing:
        lines += ["## Not in this folder yet", "", *(f"- `--suite={suite.name}`: {suite.title}" for suite in missing), ""]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Writes the page; returns the exit code."""
    if len(arguments) != 2:
        print("error: expected a results folder and a page to write", file=sys.stderr)
        return 2
    try:
        write_text(arguments[1], page(Path(arguments[0])))
    except (DataError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
