"""Malformed features, truth and images, for --dataset=table with the quickest method."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tests.torture.base import Sound, both, copied, put, sound
from tests.torture.oracle import ANY, EITHER, REFUSED, SAME, TOLD, Input

RUN = ("--dataset=table", "--method=mv_lr", "--noreport", "--output_dir={folder}/out")
FILES = ("--features={folder}/f.csv", "--annotations={folder}/a.csv", "--truth={folder}/t.csv")
FLAGS = (*RUN, *FILES)
# Arguments whose value is an object in Python, by method.
OBJECTS = (
    *(("iced", "encoder"), ("iced", "classifier"), ("iced", "decoder"), ("neucrowd", "encoder")),
    *(("rll", "encoder"), ("crowding", "base"), ("crowd_layer", "base"), ("ds_lr", "aggregator")),
    *(("dasc_crowding", "generator"), ("neucrowd", "activation"), ("crowd_layer", "activation")),
)


def files_of(base: Sound, **changed: object) -> Callable[[Path], None]:
    given = {"f": base.table, "a": base.long, "t": base.truths, **changed}
    return both(*(put(f"{name}.csv", content) for name, content in given.items()))


def of_tables(
    base: Sound,
    kind: str,
    name: str,
    content: object,
    *more: str,
    right: frozenset[str] = REFUSED,
    words: tuple[str, ...] = (),
) -> Input:
    files = files_of(base, **{name: content})
    return Input(kind, "run", (*FLAGS, *more), files, right, (f"{name}.csv", *words))


def numbers(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Cells of features."""
    row = int(rng.integers(1, 25))
    for bad in ("", "NA", "four", "inf", "nan", "1e300", "1,5", "0x10", "--1", "1 2", "\u0661"):
        rows = copied(base.table)
        rows[row][1] = bad
        right = ANY if bad == "\u0661" else REFUSED
        yield of_tables(
            base, f"feature {bad!r}", "f", rows, right=right, words=(f"line {row + 1}",)
        )
    moved = copied(base.table)
    for line in moved[1:]:
        line[1] = f"{1.7e9 + float(line[1]):.6f}"
    yield Input(
        "a column that float32 blurs", "run", FLAGS, files_of(base, f=moved), TOLD, ("f.csv",)
    )
    for name in ("label", "class", "id", "task_id", "annotator", "index", "item"):
        labelled = [[*line, str(base.truth[i - 1]) if i else name]
                    for i, line in enumerate(base.table)]  # fmt: skip
        yield of_tables(base, f"a column {name!r} among features", "f", labelled)
        yield Input(
            f"a column {name!r} that --ignore_columns names",
            "run",
            (*FLAGS, f"--ignore_columns={name}"),
            files_of(base, f=labelled),
            SAME,
            (),
            files_of(base),
            FLAGS,
        )
    counted = [[*line, str(i) if i else "z"] for i, line in enumerate(base.table)]
    yield of_tables(base, "a column that counts the rows", "f", counted, right=EITHER)
    twice = copied(base.table)
    twice.append(list(twice[row]))
    yield of_tables(base, "a task is there twice", "f", twice, words=(f"line {len(twice)}",))
    nameless = copied(base.table)
    nameless[0][1] = ""
    yield of_tables(base, "a column without a name", "f", nameless)
    spaces = copied(base.table)
    spaces[0][1], spaces[0][2] = "x", " x "
    yield of_tables(base, "columns equal but for spaces", "f", spaces)
    yield of_tables(base, "features: header alone", "f", base.table[:1])
    yield of_tables(base, "features: empty", "f", "")
    yield of_tables(base, "features: tasks alone", "f", [line[:1] for line in base.table])
    yield of_tables(base, "features: random bytes", "f", rng.bytes(400))
    lost = [line for i, line in enumerate(base.table) if i != row]
    yield of_tables(base, "labels of a task without features", "a", base.long, right=ANY)
    files = files_of(base, f=lost)
    yield Input("features lack a task", "run", FLAGS, files, REFUSED, (".csv",))
    yield Input(
        "features lack a task, --unmatched=drop",
        "run",
        (*FLAGS[:-1], "--unmatched=drop"),
        files,
        TOLD,
        ("a.csv",),
    )
    if rng.random() < 0.2:
        head = ",".join(["task", *(f"c{i}" for i in range(80_000))])
        body = "\n".join(f"{t}," + ",".join(["0.5"] * 79_999 + [str(i)])
                         for i, t in enumerate(base.tasks))  # fmt: skip
        yield of_tables(base, "features of 80,000 columns", "f", f"{head}\n{body}\n", right=ANY)


def truth(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Truth and test tables."""
    row = int(rng.integers(1, 25))
    for column, bad in ((0, "nobody"), (1, "NA"), (1, "maybe"), (1, ""), (0, "")):
        rows = copied(base.truths)
        rows[row][column] = bad
        yield of_tables(base, f"truth with {bad!r}", "t", rows, words=(f"line {row + 1}",))
    twice = [*base.truths, list(base.truths[row])]
    yield of_tables(base, "truth twice", "t", twice, words=(f"line {len(twice)}",))
    yield of_tables(base, "truth without its column", "t", [line[:1] for line in base.truths])
    test = (*RUN, *FILES[:2], "--test_features={folder}/g.csv", "--test_truth={folder}/h.csv")
    half = [base.table[0], *base.table[1:9]]
    known = [base.truths[0], *base.truths[1:9]]
    other = [half[0], *([t, f"{float(a) + 0.25:.6f}", b] for t, a, b in half[1:])]
    renamed = [half[0], *([f"new {t}", a, b] for t, a, b in other[1:])]
    labels = [known[0], *([f"new {t}", c] for t, c in known[1:])]
    swapped = [[line[0], line[2], line[1]] for line in renamed]
    for kind, rows, truths, right, word in (
        ("tasks that are training tasks", half, known, EITHER, "g.csv"),
        ("tasks with a training task's id", other, known, EITHER, "g.csv"),
        ("features lack a column", [line[:2] for line in renamed], labels, REFUSED, "g.csv"),
        ("features in another order", swapped, labels, SAME, ""),
        ("truth lacks a task", renamed, labels[:-1], REFUSED, "h.csv"),
    ):
        good = files_of(base, g=renamed, h=labels) if right == SAME else None
        yield Input(f"test {kind}", "run", test, files_of(base, g=rows, h=truths), right, (word,),
                    good, test)  # fmt: skip


def flags(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Flags that cannot be used."""
    deep = "[" * 20_000
    for flag in ("--threads=99999999999", f"--hparam=x={deep}", f"--hparam=seed={'9' * 5000}",
                 "--num_runs=99999999", "--classes=a,a", "--separator=ab", "--image_size=8",
                 "--max_pixels=9", f"--features={'x' * 5000}", f"--truth=/{'y/' * 2500}",
                 "--unmatched=perhaps", "--ignore_columns=q", "--seed=-1", "--jobs=0",
                 "--missing", "--truth=/dev/zero", "--annotations=/dev/stdin",
                 f"--hparam=C={'9' * 400}", "--hparam=", "--device=tpu", "--seed=x",
                 "--num_runs=0", "--flagfile=/nowhere", "--method=nothing", "--threads=-1",
                 "--hparam=nothing=1", "--unknown=1", "--separator=", "--classes=,",
                 "--unmatched=", "--texts={folder}/f.csv", "--images={folder}",
                 "--test_features={folder}/f.csv", "--task_column=nobody",
                 "--label_column=nobody", "--noreport=x", "--truth=--resume", "--truth=a\0b",
                 "--hparam=aggregator=average"):  # fmt: skip
        yield Input(f"flag {flag[:24]}", "run", (*FLAGS, flag), files_of(base), REFUSED)
    # What is an object in Python, as text: one method a seed.
    method, name = OBJECTS[int(rng.integers(len(OBJECTS)))]
    value = str(rng.choice(["dense_1", "3", '{"a": 1}', "[[1, 2]]", "true", "b'x'"]))
    given = (*FLAGS, f"--method={method}", f"--hparam={name}={value}")
    yield Input(f"text for {method}'s {name}", "run", given, files_of(base), REFUSED, (name,))
    npy = io.BytesIO()
    np.save(npy, np.array([line[1:] for line in base.features], dtype=float))
    plain = sound(1)
    yield Input("--separator without a CSV", "run",
                (*RUN, "--features={folder}/f.npy", "--annotations={folder}/a.json",
                 "--separator=;"),
                both(put("f.npy", npy.getvalue()), put("a.json", "{}")), REFUSED)  # fmt: skip
    yield Input(
        "flags that are sound",
        "run",
        (*FLAGS, "--threads=1", "--exact_names"),
        files_of(plain),
        SAME,
        (),
        files_of(plain),
        FLAGS,
    )


def parquet(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Parquet and NPY."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tasks = [line[0] for line in base.features]
    x, y = (np.array([float(line[i]) for line in base.features]) for i in (1, 2))

    def written(names: list[str], columns: list[object]) -> bytes:
        stream = io.BytesIO()
        pq.write_table(pa.table(columns, names=names), stream)
        return stream.getvalue()

    def one(kind: str, content: bytes, right: frozenset[str] = REFUSED) -> Input:
        files = both(files_of(base), put("f.parquet", content))
        given = (*RUN, "--features={folder}/f.parquet", *FILES[1:])
        return Input(kind, "run", given, files, right, ("f.parquet",), files_of(base), FLAGS)

    whole = written(["task", "x", "y"], [tasks, x, y])
    yield one("Parquet that is sound", whole, SAME)
    yield one("Parquet columns equal but for spaces", written(["task", "x", "x "], [tasks, x, y]))
    yield one("Parquet cut off", whole[: int(rng.integers(4, len(whole)))])
    middle = int(rng.integers(8, len(whole) - 8))
    yield one("Parquet with other bytes", whole[:middle] + rng.bytes(8) + whole[middle + 8 :], ANY)
    yield one("Parquet with nulls", written(["task", "x", "y"], [tasks, [None, *x[1:]], y]))
    yield one("Parquet with lists", written(["task", "x", "y"], [tasks, [[1.0]] * len(x), y]))


def images(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """A folder of images."""
    from PIL import Image

    given = (*RUN, "--images={folder}/i", *FILES[1:])

    def folder(
        change: Callable[[Path], None] | None = None, deep: bool = False
    ) -> Callable[[Path], None]:
        def write(place: Path) -> None:
            files_of(base)(place)
            (place / "i").mkdir()
            for task, code in zip(base.tasks, base.truth, strict=True):
                level = 40 + 60 * code
                shape = (4, 4) if deep else (4, 4, 3)
                pixels = np.full(shape, level * 257 if deep else level,
                                 dtype=np.uint16 if deep else np.uint8)  # fmt: skip
                Image.fromarray(pixels).save(place / "i" / f"{task}.png")
            if change is not None:
                change(place / "i")

        return write

    first = f"{base.tasks[0]}.png"
    yield Input("images of 16 bits", "run", given, folder(deep=True), SAME, (), folder(), given)
    yield Input(
        "a pipe among images",
        "run",
        given,
        folder(lambda f: os.mkfifo(f / "p.png")),
        REFUSED,
        ("p.png",),
    )
    yield Input(
        "a device among images",
        "run",
        given,
        folder(lambda f: (f / "z.png").symlink_to("/dev/zero")),
        REFUSED,
        ("z.png",),
    )
    yield Input(
        "an image that is none",
        "run",
        given,
        folder(lambda f: (f / first).write_bytes(rng.bytes(200))),
        REFUSED,
        (first,),
    )
    yield Input("an image cut off", "run", given,
                folder(lambda f: (f / first).write_bytes((f / first).read_bytes()[:40])), REFUSED,
                (first,))  # fmt: skip
    yield Input(
        "an image of another size",
        "run",
        given,
        folder(lambda f: Image.new("RGB", (5, 4)).save(f / first)),
        REFUSED,
        (".png",),
    )
    if rng.random() < 0.3:
        yield Input("an image far too large", "run", given,
                    folder(lambda f: Image.new("1", (40_000, 40_000)).save(f / first)), REFUSED,
                    (first,))  # fmt: skip
    yield Input("two images of one name", "run", given,
                folder(lambda f: Image.new("RGB", (4, 4)).save(f / f"{base.tasks[0]}.bmp")),
                REFUSED)  # fmt: skip
    yield Input(
        "a folder without images",
        "run",
        (*RUN, "--images={folder}/none", *FILES[1:]),
        both(files_of(base), lambda f: (f / "none").mkdir()),
        REFUSED,
    )


GROUPS = (numbers, truth, flags, parquet, images)


def inputs(seed: int) -> Iterator[Input]:
    """Yields every kind once, drawn with a seed."""
    for number, group in enumerate(GROUPS):
        yield from group(sound(seed), np.random.default_rng([seed, number, 0x7AB1]))
