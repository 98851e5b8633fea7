"""The outcomes of inputs and of broken runs, kept in a file as they come."""

from __future__ import annotations

import json
import textwrap
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

OUTCOMES = ("refused", "accepted right", "accepted wrong", "refused wrongly", "traceback", "hang")
BAD = OUTCOMES[2:]

PAGE = """# Malformed inputs and broken runs

`make torture` tries malformed inputs, whose right answer the generator knows, and breaks runs at
seeded moments, then resumes them. It is long; in pieces that add up, `--result` keeps what was
tried and goes on after it:

    python -m tests.torture --result=FILE --inputs=1750 --kills=0 --seed=7
    python -m tests.torture --result=FILE --inputs=0 --kills=240 --page=results/torture.md

| inputs | count |
| :-- | --: |
{inputs}

`accepted right` has the result of the sound input, or a line that tells what was done; `refused
wrongly` is a refusal of a sound input or one without file, place, expected and received. A hang is
an input that takes over 20 s.

| broken runs | count |
| :-- | --: |
{kills}

A run is broken up to three times and then resumed to its end, which is compared with an unbroken
run by the bytes of predictions.csv, annotators.csv and metrics.json without its timings; a fit by
parts (--engine=local) by those of all its results. Methods, one for each class of estimators that
is registered, and two by parts ({number}):
{methods}.
"""
MEMORY = """
## Memory

`python -m benchmarks.memory --json`: megabytes by which one process grows a fit after the tenth
fit, one process a method.

| method | fits | megabytes a fit |
| :-- | --: | --: |
{rows}
"""


class Record:
    """Outcomes in a file of JSON lines (or in memory alone), of this process and those before.

    An input's line has `input` (seed and number), `kind`, `outcome` and `note`; a method's broken
    runs have `method`, `chain`, `seed`, `counts` and `wrong`.
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

    def tried(self, seed: int) -> set[int]:
        """Returns the numbers of the inputs that were tried with a seed."""
        found = (item["input"] for item in self.items if "input" in item)
        return {number for drawn, number in found if drawn == seed}

    def broken(self, seed: int) -> set[tuple[str, int]]:
        """Returns the methods whose runs were broken with a seed, and the numbers of those runs."""
        mine = (item for item in self.items if "method" in item)
        return {(item["method"], item["chain"]) for item in mine if item["seed"] == seed}

    @property
    def inputs(self) -> list[dict[str, Any]]:
        return [item for item in self.items if "input" in item]

    @property
    def wrong(self) -> list[str]:
        """What was wrong with broken runs."""
        return [text for item in self.items for text in item.get("wrong", ())]

    @property
    def bad(self) -> int:
        """How many outcomes there must not be."""
        return sum(item["outcome"] in BAD for item in self.inputs) + len(self.wrong)

    def counts(self) -> tuple[Counter[str], Counter[str], list[str]]:
        """Returns the counts of inputs by outcome, of broken runs by kind, and the methods."""
        inputs = Counter(item["outcome"] for item in self.inputs)
        kills: Counter[str] = Counter()
        methods = [item["method"] for item in self.items if "method" in item]
        for item in self.items:
            kills.update(item.get("counts", {}))
        return inputs, kills, sorted(set(methods))

    def lines(self, show: int = 1) -> list[str]:
        """Returns the counts, and the first bad ones of each kind."""
        inputs, kills, methods = self.counts()
        lines = [f"inputs tried: {len(self.inputs)}"]
        lines += [f"  {name}: {inputs[name]}" for name in OUTCOMES]
        bad: dict[tuple[str, str], list[str]] = defaultdict(list)
        for item in self.inputs:
            if item["outcome"] in BAD:
                bad[item["kind"], item["outcome"]].append(f"{item['input'][1]}: {item['note']}")
        for (kind, outcome), notes in sorted(bad.items()):
            lines.append(f"- {kind}: {len(notes)} {outcome}")
            lines += [f"    {note}" for note in notes[:show]]
        if methods:
            lines.append(f"runs broken: {kills.pop('broken', 0)}, over {len(methods)} methods")
            lines += [f"  {name}: {count}" for name, count in sorted(kills.items())]
            lines += [f"  wrong: {len(self.wrong)}", *(f"- {text}" for text in self.wrong[:20])]
        return lines

    def page(self, memory: Mapping[str, Any] | None = None) -> str:
        """Returns the counts as Markdown, and what `benchmarks.memory --json` found."""
        inputs, kills, methods = self.counts()
        kinds = len({item["kind"] for item in self.inputs})
        rows = [f"| tried, of {kinds} kinds | {len(self.inputs)} |"]
        rows += [f"| {name} | {inputs[name]} |" for name in OUTCOMES]
        broken = [f"| broken | {kills.pop('broken', 0)} |"]
        signals = sum(count for name, count in kills.items() if name.startswith("SIGKILL"))
        broken.append(f"| by SIGKILL | {signals} |")
        broken += [f"| {name} | {count} |" for name, count in sorted(kills.items())]
        broken.append(f"| other bytes, or not to be resumed | {len(self.wrong)} |")
        page = PAGE.format(
            inputs="\n".join(rows),
            kills="\n".join(broken),
            number=len(methods),
            methods=textwrap.fill(", ".join(methods), 100),
        )
        if memory:
            sizes = memory["megabytes_a_fit"].items()
            lines = [f"| {name} | {memory['fits']} | {size:.2f} |" for name, size in sizes]
            page += MEMORY.format(rows="\n".join(lines))
        return page
