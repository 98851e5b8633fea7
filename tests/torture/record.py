"""What was tried, counted, and what went wrong."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence


@dataclasses.dataclass
class Record:
    """Counts of what was tried, and lines that say what went wrong."""

    counts: Counter[str] = dataclasses.field(default_factory=Counter)
    wrong: list[str] = dataclasses.field(default_factory=list)

    def add(self, counts: Mapping[str, int], wrong: Sequence[str]) -> None:
        self.counts.update(counts)
        self.wrong.extend(wrong)

    def lines(self) -> list[str]:
        """Returns the counts, and the first things that went wrong."""
        lines = [f"{name}: {count}" for name, count in sorted(self.counts.items())]
        return [*lines, f"wrong: {len(self.wrong)}", *(f"- {text}" for text in self.wrong[:20])]
