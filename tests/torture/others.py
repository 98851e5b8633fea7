"""What a generator by another hand found: further spellings, first lines of numbers, outputs in
place of inputs, parts beside parts, probabilities that are none.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.torture.base import Sound, both, copied, put, some, sound, text_of
from tests.torture.labels import FLAGS as LABELS
from tests.torture.oracle import EITHER, REFUSED, SAME, TOLD, Input

TWINS = (
    *(("yes", "«yes»"), ("yes", "„yes“"), ("yes", "ye\ufe0fs"), ("yes", "yes\u034f"), ("1", "1,0")),
    *(("1000", "1,000"), ("1000", "1 000"), ("1000", "1\u202f000"), ("cat-1", "cat_1")),
    *(("new-york", "new\u2011york"), ("new-york", "new\u2212york"), ("it's", "it’s")),
    *(("class 1", "class-1"), ("H", "\u041d"), ("K", "\u041a"), ("yes", "yes."), ("yes", 'y"es"')),
    *(
        ("bøb", "bÃ¸b"),
        ("\u212b", "\u00e5"),
        ("Straße", "STRASSE"),
        ("ﬁn", "fin"),
        ("ё", "е\u0308"),
    ),
)
NONE = (
    *("(none)", "[]", "{}", "()", "+nan", "n / a", "N\\A", "???", "----", "_", "'NA'", "“”", "NA."),
    *("(NA)", "[NA]", "null;", "None.", "<none>", "N.a", "1.#IND", "-1.#IND", "no label"),
)
NEGATIVE = ("-1.0", "-2", "-9", "-99", "\uff0d1", "\u22121", "-01", "-1e0", "inf", "1e999")


def _read(
    kind: str,
    base: Sound,
    content: object,
    right: frozenset[str] = REFUSED,
    name: str = "a.csv",
    *more: str,
) -> Input:
    flags = ("--method=majority_vote", f"--annotations={{folder}}/{name}", *more)
    words = () if more else (name,)
    good = put("a.csv", base.long) if "same" in right else None
    return Input(kind, "aggregate", flags, put(name, content), right, words, good, LABELS)


def _answers(rows: list[list[str]]) -> str:
    found: dict[str, dict[str, str]] = {}
    for task, worker, label in rows[1:]:
        found.setdefault(task, {})[worker] = label
    return json.dumps(found, ensure_ascii=False)


def spellings(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """One name in two spellings, and signs of no value, in each column and layout."""
    for number, (one, other) in enumerate(TWINS):
        for column, role in ((1, "annotator"), (2, "class")):
            rows, known = copied(base.long), base.workers[0] if column == 1 else base.classes[0]
            for row in rows[1:]:
                row[column] = one if row[column] == known else row[column]
            named = [i for i, row in enumerate(rows) if row[column] == one]
            for i in rng.choice(named, 3, replace=False):
                rows[i][column] = other
            as_json = (number + column) % 2
            content = _answers(rows) if as_json else rows
            name = "a.json" if as_json else "a.csv"
            yield _read(f"{role} {one!a} and {other!a}", base, content, EITHER, name)
    for column, role, names in ((1, "annotator", NONE), (2, "class", (*NONE, *NEGATIVE))):
        for sign in names:
            rows = copied(base.long)
            rows[some(rows, rng, 1, column)[0]][column] = sign
            if column == 2:
                for i in some(rows, rng, 4, 2):
                    rows[i][2] = sign
            yield _read(f"{role} {sign!a}", base, rows, EITHER)


def first_lines(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Matrices with and without headers, rows that are none, quotes, sums, lists."""
    codes = np.array([[base.classes.index(c) if c else -1 for c in r[1:]] for r in base.wide[1:]])
    matrix = [list(map(str, row)) for row in codes.tolist()]
    names = list(map(str, range(len(matrix[0]))))
    counted = _read("matrix: columns' numbers first", base, [names, *matrix], TOLD)
    yield dataclasses.replace(counted, sound=put("a.csv", matrix), sound_flags=LABELS)
    yield _read("matrix: years first", base, [[str(2011 + i) for i in range(5)], *matrix])
    yield _read("matrix: a true label's column", base, [["a", "b", "c", "d", "truth"], *matrix])
    yield _read("matrix: a name in two spellings", base, [["a", "A", "c", "d", "e"], *matrix])
    yield _read("matrix: one class", base, [["a", "b"], *[["0", "0"]] * 12], EITHER)
    stream = io.BytesIO()
    np.save(stream, codes)
    yield _read("array: two in a file", base, stream.getvalue() * 2, REFUSED, "a.npy")
    stream = io.BytesIO()
    np.save(stream, codes.astype(np.uint64))
    yield _read("array: -1 without a sign", base, stream.getvalue(), REFUSED, "a.npy")
    text, long = text_of(base.long), base.long
    joined = ("\ufeff" + text) * 2
    yield _read("long: a mark of order and the header again", base, joined)
    yield _read("long: a line of dashes", base, [long[0], ["----", "---", "-----"], *long[1:]])
    yield _read("long: a quote that goes on", base, text + '"t"x,w0,x\n')
    yield _read("long: a note at the end", base, [*long, ["n", "v9", "see below"]], EITHER)
    for label in ("['a']", "['a', 'b']", '{"label": "a"}', "0,5"):
        rows = [long[0], *([t, w, label if i % 3 else "b"] for i, (t, w, _) in enumerate(long[1:]))]
        yield _read(f"long: labels {label}", base, rows)
    same = [[t, w, "same"] for t, w, _ in long[1:]]
    yield _read("long: one class", base, [long[0], *same], EITHER)
    wide = base.wide
    for name in ("ground-truth", "GroundTruth", "gold_standard", "adjudicated"):
        truths = [[*row, name if not i else base.classes[0]] for i, row in enumerate(wide)]
        yield _read(f"wide: a column {name}", base, truths)
    notes = [[*row, "" if i else "remarks"] for i, row in enumerate(wide)]
    notes[5][-1] = "unclear!"
    yield _read("wide: one remark", base, notes, EITHER)
    yield _read("wide: a task again with a space", base, [*wide, [wide[3][0] + " ", *wide[4][1:]]])
    counts = np.array([[np.sum(row == code) for code in range(2)] for row in codes])
    rows = [[t, *map(str, row)] for t, row in zip(base.tasks, counts.tolist(), strict=True)]
    header = ["task", "votes_a", "votes_b"]
    total = ["all", *map(str, counts.sum(axis=0).tolist())]
    yield _read("votes: sums first", base, [header, total, *rows])
    yield _read("votes: of -1", base, [["task", "votes_-1", "votes_2"], *rows], EITHER)
    meta = json.dumps({**json.loads(_answers(long)), "_meta": {"version": 3}})
    yield _read("JSON: a task that is none", base, meta, EITHER, "a.json")
    yield _read("JSON: -1.0", base, _answers(long).replace(f'"{base.classes[0]}"', "-1.0", 4),
                EITHER, "a.json")  # fmt: skip


def outputs(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Files to write that are read, or written twice; flags that say one thing twice."""
    gold = [["task", "label"], *base.truths[1:4]]
    files = both(put("a.csv", base.long), put("g.csv", gold), put("p.csv", gold))
    a = "--annotations={folder}/a.csv"
    for command, flags in (
        ("aggregate", (a, "--output={folder}/a.csv")),
        ("aggregate", (a, "--output={folder}/./a.csv")),
        ("aggregate", (a, "--output={folder}/o.csv", "--annotators={folder}/o.csv")),
        ("aggregate", (a, "--gold={folder}/g.csv", "--annotators={folder}/g.csv")),
        ("aggregate", (a, "--task_column=worker")),
        ("aggregate", (a, "--task_column=worker", "--worker_column=worker")),
        ("aggregate", (a, "--label_column=")),
        ("aggregate", (a, "--separator=\n")),
        ("aggregate", (a, "--max_iter=0")),
        ("aggregate", (a, "--workers=2")),
        ("relabel", (a, "--budget=3", "--output={folder}/a.csv")),
        ("report", (a, "--output={folder}/a.csv")),
        ("convert", ("--from=table", "--input={folder}/a.csv", "--output={folder}/a.csv")),
        ("convert", ("--from=table", "--input={folder}/a.csv", "--separator=ab")),
        ("convert", ("--from=table", "--input={folder}/a.csv", "--worker_column=label")),
    ):
        kind = " ".join([command, *(flag.replace("{folder}/", "") for flag in flags[1:])])
        yield Input(ascii(kind), command, flags, files)
    again = put("a.csv", [*base.long, base.long[0]])
    flags = ("--from=table", "--input={folder}/a.csv")
    yield Input("convert: header again", "convert", flags, again, REFUSED, ("a.csv",))
    line = '{"task": "t", "worker": "w", "label": "x", "label": "y"}\n'
    flags = ("--from=table", "--input={folder}/a.jsonl")
    yield Input("convert: a key twice", "convert", flags, put("a.jsonl", line), REFUSED,
                ("a.jsonl",))  # fmt: skip
    odd = json.dumps({"id": 1, "annotations": [{"label": 1, "user": []}]})
    yield Input("convert: records of other types", "convert", ("--input={folder}/a.jsonl",),
                put("a.jsonl", odd), REFUSED, ("a.jsonl",))  # fmt: skip


def parts(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Folders of labels with something else in them."""
    half = len(base.long) // 2
    good = both(put("d/a.csv", base.long[:half]), put("d/b.csv", [base.long[0], *base.long[half:]]))
    flags = ("--annotations={folder}/d", "--output={folder}/o", "--method=majority_vote")

    def pipe(folder: Path) -> None:
        os.mkfifo(folder / "d" / "c.csv")

    def loop(folder: Path) -> None:
        (folder / "d" / "c.csv").symlink_to("c.csv")

    twice = [[*base.long[0], "label"], *([*row, "x"] for row in base.long[1:3])]
    spaces = [base.long[0], *([f"{t} ", w, c] for t, w, c in base.long[1:3])]
    for kind, more, right in (
        ("a pipe", pipe, REFUSED),
        ("a link to itself", loop, REFUSED),
        ("a column twice", put("d/c.csv", twice), REFUSED),
        ("spaces behind ids", put("d/c.csv", spaces), REFUSED),
        ("a packed file", put("d/c.csv.gz", b"\x1f\x8b"), TOLD),
        ("capitals in an ending", put("d/c.CSV", base.long), REFUSED),
        ("nothing else", both(), SAME),
    ):
        yield Input(f"parts: {kind}", "aggregate", flags, both(good, more), right)


def probabilities(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Of a model, for relabel."""
    size = len(base.classes)
    names = [f"p_{name}" for name in base.classes]
    flags = ("--annotations={folder}/a.csv", "--budget=3", "--probabilities={folder}/p.csv")
    even = [f"{1 / size:.4f}"] * size
    for kind, header, rows, right in (
        ("above one together", names, [[t, *["0.9"] * size] for t in base.tasks], REFUSED),
        ("below one together", names, [[t, *["0.1"] * size] for t in base.tasks], REFUSED),
        ("in percent", names, [[t, *["50"] * size] for t in base.tasks], REFUSED),
        ("of another class", [*names, "p_zz"], [[t, *even, "0"] for t in base.tasks], REFUSED),
        ("of one task", names, [[base.tasks[0], *even]], TOLD),
        ("with the header again", names, [[base.tasks[0], *even], ["task", *names]], REFUSED),
    ):
        table = [["task", *header], *rows]
        files = both(put("a.csv", base.long), put("p.csv", table))
        yield Input(f"probabilities {kind}", "relabel", flags, files, right, ("p.csv",))


GROUPS = (spellings, first_lines, outputs, parts, probabilities)


def inputs(seed: int) -> Iterator[Input]:
    """Yields every kind once, drawn with a seed."""
    for number, group in enumerate(GROUPS):
        yield from group(sound(seed), np.random.default_rng([seed, number, 0x0743]))
