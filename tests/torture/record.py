"""Outcomes of tries, kept in a file as they come, and their counts."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

PAGE = """# Broken runs, limits and rejected files

`make torture` breaks runs at seeded moments and resumes them, runs commands with too little disk,
memory or file handles, and gives each check of the catalogue a file that it rejects. It is long;
`--result` keeps what was tried, and a later call continues:

    python -m tests.torture --result=FILE --kills=240 --page=results/torture.md

| try | count |
| :-- | --: |
{rows}

A run is broken up to three times and then resumed to its end. The bytes of predictions.csv,
annotators.csv and metrics.json (without timings) are compared with those of an unbroken run; of a
fit by parts (--engine=local) all results are. The methods are one per class of estimators, and two
fits by parts ({number}):
{methods}.
"""


class Record:
    """Outcomes as JSON lines of a file (or in memory only), of this process and earlier ones.

    An outcome has `name` (what was tried), `counts` and `wrong`, a list of what went wrong; broken
    runs have `method`, `chain` and `seed` too.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.items: list[dict[str, Any]] = []
        self._stream: TextIO | None = None
        if path is not None:
            if path.exists():
                self.items = [json.loads(line) for line in path.read_text().splitlines()]
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = path.open("a", encoding="utf-8")

    def __enter__(self) -> Record:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._stream is not None:
            self._stream.close()

    def add(self, item: dict[str, Any]) -> None:
        self.items.append(item)
        if self._stream is not None:
            self._stream.write(json.dumps(item) + "\n")
            self._stream.flush()

    def tried(self) -> set[str]:
        """Returns the names of what was tried."""
        return {item["name"] for item in self.items}

    @property
    def wrong(self) -> list[str]:
        return [text for item in self.items for text in item["wrong"]]

    def methods(self) -> list[str]:
        return sorted({item["method"] for item in self.items if "method" in item})

    def counts(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for item in self.items:
            counts.update(item["counts"])
        return counts

    def lines(self) -> list[str]:
        """Returns the counts, and the first things that went wrong."""
        lines = [f"{name}: {count}" for name, count in sorted(self.counts().items())]
        return [*lines, f"wrong: {len(self.wrong)}", *(f"- {text}" for text in self.wrong[:20])]

    def page(self) -> str:
        """Returns the counts as Markdown."""
        rows = [f"| {name} | {count} |" for name, count in sorted(self.counts().items())]
        rows.append(f"| other bytes, no resume, or no message | {len(self.wrong)} |")
        methods = self.methods()
        return PAGE.format(
            rows="\n".join(rows),
            number=len(methods),
            methods=textwrap.fill(", ".join(methods), 100),
        )
