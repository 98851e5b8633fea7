"""Slips of people and programs: several classes in a cell, names dressed up, dialects of tables,
and what stands in the place of a run's files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tests.torture.base import Sound, both, copied, put, some, sound, text_of
from tests.torture.folders import RESUME, RUN_FOLDER, after
from tests.torture.labels import FLAGS, JSON, of_labels
from tests.torture.oracle import EITHER, REFUSED, SAME, Input
from tests.torture.tables import FLAGS as TABLES
from tests.torture.tables import files_of

WORDS = ("no", "yes")
# What becomes of some cells that hold `yes`, and what is right then.
DRESSED: tuple[tuple[str, Callable[[str], str], frozenset[str]], ...] = (
    ("several classes", lambda _: "no|yes", EITHER),
    ("several classes, and", lambda _: "yes and no", EITHER),
    ("several classes as a set", lambda _: "{'no', 'yes'}", EITHER),
    ("a number before it", lambda label: f"1: {label}", EITHER),
    ("a number behind it", lambda label: f"{label} (1)", EITHER),
    ("a share behind it", lambda label: f"{label} 0.8", EITHER),
    ("a word before it", lambda label: f"label: {label}", EITHER),
    ("a question mark", lambda label: f"{label}?", EITHER),
    ("an entity", lambda label: f"{label}&nbsp;", EITHER),
    ("tags", lambda label: f"<b>{label}</b>", EITHER),
    ("a formula", lambda label: f'="{label}"', EITHER),
    ("a date", lambda _: "2024-05-01", EITHER),
    ("a sign lost", lambda label: f"{label}\ufffd", EITHER),
    ("its first letter", lambda label: label[0], EITHER),
    ("a truth value", lambda label: str(label == "yes"), EITHER),
    ("its code", lambda label: str(int(label == "yes")), EITHER),
    *(
        (f"nothing as {sign}", lambda _, sign=sign: sign, EITHER)
        for sign in ("no data", "NA_character_", "NULL::text", "-nan(ind)", "##", "not set")
    ),
)
# A line at the end of a wide table, and its name.
FEET = (
    ("sums", "Total", "9"),
    ("sums without numbers", "Total", ""),
    ("types", "string", "string"),
)


def dressed(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Labels with something added or in the place of a class, long and wide."""
    given = sound(int(rng.integers(99)), WORDS)
    for kind, change, right in DRESSED:
        for layout, whole in (("long", given.long), ("wide", given.wide)):
            rows, column = copied(whole), 2 if layout == "long" else int(rng.integers(1, 6))
            chosen = [i for i in some(rows, rng, 99, column) if rows[i][column] == "yes"]
            for i in chosen[: int(rng.integers(1, 4))]:
                rows[i][column] = change(rows[i][column])
            yield of_labels(f"labels with {kind}, {layout}", rows, right=right)
    once = copied(given.long)
    once[int(rng.integers(1, len(once)))][2] = "yse"
    yield of_labels("a class that occurs once", once, right=EITHER)
    yield of_labels("cut off within a label", text_of(given.long).rstrip()[:-1], right=EITHER)
    column = int(rng.integers(2))
    named = [given.long[0], *([*row[:2], row[column]] for row in given.triples)]
    yield of_labels("labels that are names of tasks or annotators", named)


def dialects(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Tables that other programs write."""
    whole = put("a.csv", base.long)
    spaced = "\n".join(", ".join(row) for row in base.long)
    yield Input("a space behind every comma", "aggregate", FLAGS, put("a.csv", spaced), SAME,
                ("a.csv",), whole)  # fmt: skip
    around = [[f" {cell} " for cell in row] for row in base.long]
    yield of_labels("spaces around every cell, not the comma", around, right=EITHER)
    for kind, name, cell in FEET:
        rows = [*base.wide, [name, *[cell] * 5]]
        yield of_labels(f"a line of {kind}, wide", rows, right=EITHER)
    marked = copied(base.wide)
    marked[int(rng.integers(1, len(marked)))][0] = "\ufeff" + marked[1][0] + "x"
    yield of_labels("a byte order mark within, wide", marked, right=EITHER)
    records: dict[str, object] = {t: {w: label for _, w, label in base.triples} for t in base.tasks}
    task = str(rng.choice(base.tasks))
    yield Input("a record for workers", "aggregate", JSON,
                put("a.json", json.dumps({**records, task: {"label": base.classes[0]}})), REFUSED,
                ("a.json",))  # fmt: skip
    frame = {name: dict(enumerate(column)) for name, column in
             zip(base.long[0], zip(*base.triples, strict=True), strict=True)}  # fmt: skip
    yield Input("a frame's columns", "aggregate", JSON, put("a.json", json.dumps(frame)), REFUSED,
                ("a.json",))  # fmt: skip
    codes = sound(int(rng.integers(9)) * 12 + 3, ("0", "1"))  # numbered from 100
    codes.tasks = [str(i) for i in range(24)]
    codes.triples = [[str(int(t) - 100), w, label] for t, w, label in codes.triples]
    answers = {t: {w: a for u, w, a in codes.triples if u == t} for t in codes.tasks}
    for kind, name, content in (
        ("wide", "a.csv", codes.wide),
        (
            "wide, numbers with a point",
            "a.csv",
            [
                codes.wide[0],
                *(
                    [row[0], *(f"{cell}.0" if cell else "" for cell in row[1:])]
                    for row in codes.wide[1:]
                ),
            ],
        ),
        ("answers", "a.json", json.dumps(answers)),
    ):
        flags = (FLAGS[0], f"--annotations={{folder}}/{name}") if name == "a.json" else FLAGS
        yield Input(f"classes that are tasks' names, {kind}", "aggregate", flags,
                    put(name, content), SAME, (), put("a.csv", codes.long), FLAGS)  # fmt: skip
    two = [[task, label, label] for task, label in base.truths[1:]]
    two[int(rng.integers(24))][2] = str(rng.choice(base.classes))
    apart = [
        [task, name, label] for task, *both in two for name, label in zip("ab", both, strict=True)
    ]
    for first, second in (("annotator_1", "annotator_2"), ("Label A", "Label B"), ("w1", "w2")):
        yield Input(f"two annotators {first} and {second}", "aggregate", FLAGS,
                    put("a.csv", [["task", first, second], *two]), SAME, (),
                    put("a.csv", [base.long[0], *apart]), FLAGS)  # fmt: skip
    stray = put("a.csv", text_of(base.long) + "\r,t,w\n")
    yield Input("a lone CR before a row", "aggregate", FLAGS, stray, REFUSED, ("a.csv",))
    for sign in ("\u00e9", "\u2028"):
        yield Input("a separator beyond ASCII", "aggregate", (*FLAGS, f"--separator={sign}"), whole,
                    REFUSED, ("--separator",))  # fmt: skip
    lines = "\n".join(json.dumps(dict(zip(base.long[0], row, strict=True))) for row in base.triples)
    yield Input("half a surrogate pair in JSON Lines", "convert",
                ("--from=table", "--input={folder}/a.jsonl"),
                put("a.jsonl", lines.replace('"label": "', '"label": "\\ud800', 1)), REFUSED,
                ("a.jsonl",))  # fmt: skip


def features(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Features that stand for none, or do not differ."""
    flags = TABLES

    def table(kind: str, rows: list[list[str]], right: frozenset[str]) -> Input:
        return Input(
            kind, "run", flags, both(files_of(base), put("f.csv", rows)), right, ("f.csv",)
        )

    filling = str(rng.choice(["-999", "9999", "-9999", "1e20", "9.96921e36", "-2147483648"]))
    rows = copied(base.table)
    for i in some(rows, rng, 5, 2):
        rows[i][2] = filling
    yield table("a number that stands for none among features", rows, EITHER)
    same = [base.table[0], *([row[0], "1", "2"] for row in base.table[1:])]
    yield table("features that are all the same", same, EITHER)
    for one, other, right in (("x", "X", EITHER), ("\u00e9", "e\u0301", REFUSED)):
        yield table("columns that look the same", [["task", one, other], *base.table[1:]], right)


def places(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """--resume where a file, a folder or a link stands in another's place."""
    names = ("metrics.json", "config.json", "predictions.csv", "annotators.csv", "evaluation.json")
    name = str(rng.choice(names))

    def folder(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        (run / name).mkdir()

    def file(run: Path) -> None:
        shutil.rmtree(run)
        run.write_text("x")

    def link(run: Path) -> None:
        shutil.rmtree(run)
        run.symlink_to("/nowhere/at/all")

    def lock(run: Path) -> None:
        (run / ".lock").mkdir()
        (run / "metrics.json").unlink()

    for kind, change, word in (
        (f"a folder for {name}", folder, name),
        ("a file for a run's folder", file, "seed-0"),
        ("a link to nothing for a run's folder", link, "seed-0"),
        ("a folder for the lock", lock, ".lock"),
    ):
        write = after(lambda f, change=change: change(f / RUN_FOLDER))
        yield Input(kind, "run", RESUME, write, REFUSED, (word, "remove"))
    whole = after(lambda _: None)
    left = after(lambda f: (f / RUN_FOLDER / ".lock").write_text(""))
    yield Input("a lock that stayed behind", "run", RESUME, left, SAME, (), whole, RESUME)
    for word, value in (("accuracy", True), ("fit_seconds", "x")):

        def numbers(f: Path, word: str = word, value: object = value) -> None:
            path = f / RUN_FOLDER / "metrics.json"
            found = json.loads(path.read_text())
            found["test" if word == "accuracy" else "timings"][word] = value
            path.write_text(json.dumps(found))

        yield Input(f"metrics.json with {value!r}", "run", RESUME, after(numbers), REFUSED,
                    ("metrics.json", word))  # fmt: skip


GROUPS = (dressed, dialects, features)


def inputs(seed: int) -> Iterator[Input]:
    """Yields every kind once, drawn with a seed; the slow ones with every fourth."""
    groups = GROUPS if seed % 4 else (*GROUPS, places)
    for number, group in enumerate(groups):
        yield from group(sound(seed), np.random.default_rng([seed, number, 0x511B]))
