"""What happens to sound files on their way: copies, joins, archives, links, names, other writers of
arrays and frames.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import socket
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tests.torture.base import Sound, both, put, sound, text_of
from tests.torture.labels import FLAGS as LABELS
from tests.torture.oracle import ANY, EITHER, REFUSED, SAME, TOLD, Input
from tests.torture.tables import FILES, FLAGS, RUN, files_of

SANE = SAME | REFUSED  # read rightly or not at all


def _read(
    kind: str, base: Sound, content: object, right: frozenset[str], name: str = "a.csv"
) -> Input:
    flags = ("--method=majority_vote", f"--annotations={{folder}}/{name}")
    good = put("a.csv", base.long)
    return Input(kind, "aggregate", flags, put(name, content), right, (name,), good, LABELS)


def texts(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Labels that were copied, joined or half converted."""
    text = text_of(base.long)
    lines = text.splitlines(keepends=True)
    raw = text.encode()
    mixed = "".join(x if i % 2 else x.replace("\n", "\r\n") for i, x in enumerate(lines))
    upper = [base.long[0], [cell.upper() for cell in base.long[0]], *base.long[1:]]
    odd = [[*row] for row in base.long]
    odd[4][1] = odd[4][1][:1] + str(rng.choice(list("\x0b\x0c\x1c\x85\u2028\u2029"))) + odd[4][1]
    conflict = ["<<<<<<< HEAD\n", lines[5], "=======\n", lines[6], ">>>>>>> b\n"]
    for kind, content, right in (
        ("two ends of lines", mixed, SAME),
        ("CR CR LF", text.replace("\n", "\r\r\n"), SANE),
        ("LF CR", text.replace("\n", "\n\r"), SANE),
        ("two marks of order", b"\xef\xbb\xbf" * 2 + raw, SANE),
        ("two files with marks joined", (b"\xef\xbb\xbf" + raw) * 2, REFUSED),
        ("NULs at the end", raw + b"\0" * 512, REFUSED),
        ("control-Z at the end", raw + b"\x1a", SANE),
        ("half in latin-1", raw + "t5,wé,ö\n".encode("latin-1"), REFUSED),
        ("header again in capitals", upper, REFUSED),
        ("header last", [*base.long[1:], base.long[0]], REFUSED),
        ("header of two lines", text.replace("task", '"task\n"', 1), SANE),
        ("header with a zero-width space", text.replace("worker", "work\u200ber", 1), SANE),
        ("spaces before quotes", "\n".join(", ".join(f'"{c}"' for c in r) for r in base.long),
         SANE),
        ("an odd sign of a line's end in a name", odd, EITHER),
        ("an odd sign for each line's end", text.replace("\n", "\u2028"), REFUSED),
        ("a conflict of versions", "".join([*lines[:5], *conflict, *lines[7:]]), REFUSED),
        ("columns of fixed width", "\n".join("".join(c.ljust(12) for c in r) for r in base.long),
         REFUSED),
        ("tabs in some lines", "".join(x if i % 3 else x.replace(",", "\t")
                                       for i, x in enumerate(lines)), REFUSED),
        ("1,000 lines of spaces", text + "   \n" * 1000, SANE),
        ("cut off anywhere", raw[: int(rng.integers(20, len(raw)))], ANY),
    ):  # fmt: skip
        yield _read(f"copied: {kind}", base, content, right)
    many = "task,worker,label\n" + "".join(f"t{i},w{i % 50},c{i}\n" for i in range(20_000))
    yield _read("20,000 classes of 50 annotators", base, many, REFUSED)
    yield _read("wide: tasks alone", base, [row[:1] for row in base.wide], REFUSED)
    titled = [["", *("x",) * 5], *base.wide]
    yield _read("wide: two headers", base, titled, REFUSED)
    capitals = [base.wide[0], [cell.upper() for cell in base.wide[0]], *base.wide[1:]]
    yield _read("wide: header again in capitals", base, capitals, REFUSED)
    counted = [[*row, str(int(i) * 10) if i else "z"] for i, row in enumerate(base.table)]
    files = files_of(base, f=counted)
    yield Input("a column that counts in tens", "run", FLAGS, files, EITHER, ("f.csv",))


def ids(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Ids that are nearly alike stay as many tasks as they are."""

    def renamed(first: str, second: str) -> Callable[[Path], None]:
        names = {base.tasks[0]: first, base.tasks[1]: second}
        rows = [[names.get(t, f"x{t}"), w, c] for t, w, c in base.triples]
        return put("a.csv", [base.long[0], *rows])

    for first, second in (("007", "7"), ("T1", "t1"), ("1e5", "100000"), ("1", "1.0"),
                          ("9007199254740993", "9007199254740992"), ("\u202ea", "a"),
                          ("9" * 4000, "9" * 3999 + "8"), ("-1", "1")):  # fmt: skip
        yield Input(f"ids {first[:9]!r} and {second[:9]!r}", "aggregate", LABELS,
                    renamed(first, second), EITHER | ANY, ("a.csv",))  # fmt: skip


def _tar(content: bytes, mode: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        member = tarfile.TarInfo("a.csv")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def _zip(items: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in items.items():
            archive.writestr(name, content)
    return stream.getvalue()


def packed(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Archives, whole and broken, under right names and others."""
    raw = text_of(base.long).encode()
    text = raw.decode()
    half = raw.index(b"\n") + 1
    broken, flipped = bytearray(gzip.compress(raw)), bytearray(gzip.compress(raw))
    broken[-6] ^= 1
    flipped[int(rng.integers(20, len(flipped) - 8))] ^= 255
    for kind, content, right, name in (
        ("two members", gzip.compress(raw[:half]) + gzip.compress(raw[half:]), SAME, "a.csv.gz"),
        ("more bytes behind", gzip.compress(raw) + b"more", SANE, "a.csv.gz"),
        ("a wrong sum", bytes(broken), REFUSED, "a.csv.gz"),
        ("a byte flipped", bytes(flipped), REFUSED, "a.csv.gz"),
        ("nothing in it", gzip.compress(b""), REFUSED, "a.csv.gz"),
        ("300 MB of one sign", gzip.compress(b"x" * 300_000_000), REFUSED, "a.csv.gz"),
        ("tar.gz", _tar(raw, "w:gz"), REFUSED, "a.csv.gz"),
        ("tgz", _tar(raw, "w:gz"), REFUSED, "a.tgz"),
        ("tar", _tar(raw, "w"), REFUSED, "a.csv"),
        ("zip with a path upwards", _zip({"../a.csv": text}), SANE, "a.zip"),
        ("zip with a folder", _zip({"d/": "", "d/a.csv": text}), SANE, "a.zip"),
        ("zip without a member", _zip({}), REFUSED, "a.zip"),
        ("zip named CSV", _zip({"a.csv": text}), SANE, "a.csv"),
    ):
        if "300 MB" not in kind or rng.random() < 0.2:
            yield _read(f"packed: {kind}", base, content, right, name)


def _socket(folder: Path) -> None:
    before = os.getcwd()
    os.chdir(folder)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("a.csv")
    finally:
        os.chdir(before)


def places(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Links, pipes, odd names, and outputs that cannot be."""
    good = put("a.csv", base.long)

    def link(target: str) -> Callable[[Path], None]:
        return both(put("real.csv", base.long), lambda f: (f / "a.csv").symlink_to(target))

    for target, right in (("real.csv", SAME), ("a.csv", REFUSED), ("gone.csv", REFUSED),
                          (".", REFUSED), ("/dev/null", REFUSED), ("/dev/full", REFUSED),
                          ("/proc/self/mem", REFUSED)):  # fmt: skip
        words = () if target == "." else ("a.csv",)  # a folder may hold parts
        yield Input(f"a link to {target}", "aggregate", LABELS, link(target), right, words,
                    good, LABELS)  # fmt: skip
    pipe = lambda f: os.mkfifo(f / "a.csv")  # noqa: E731
    yield Input("a pipe", "aggregate", LABELS, pipe, REFUSED, ("a.csv",))
    yield Input("a socket", "aggregate", LABELS, _socket, REFUSED, ("a.csv",))
    for name in ("a b.csv", "-a.csv", "[a].csv", "a*.csv", "a%20.csv", "{x}.csv", "ä\u0308.csv",
                 "a.CSV", "a", "a=b.csv", "a,b.csv", "$HOME.csv", "a;b.csv", "a#b.csv",
                 "\U0001f600.csv"):  # fmt: skip
        yield _read(f"a file {name!r}", base, base.long, SANE, name)
    for place in ("/dev/full", "{folder}/none/x.csv", "{folder}", "/proc/x", "{folder}/a.csv/x"):
        yield Input(f"aggregate --output={place}", "aggregate", (*LABELS, f"--output={place}"),
                    good, ANY)  # fmt: skip
        report = ("--annotations={folder}/a.csv", f"--output={place}")
        yield Input(f"report --output={place}", "report", report, good, ANY)
        yield Input(f"relabel --output={place}", "relabel", (*report, "--budget=3"), good, ANY)
        yield Input(f"run --output_dir={place}", "run", (*RUN[:-1], f"--output_dir={place}",
                    *FILES), files_of(base), ANY)  # fmt: skip


def matrices(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Arrays of labels as other programs save them."""
    matrix = rng.integers(0, 2, (24, 4))
    matrix[0], matrix[3, 1] = (0, 1, 0, 1), -1
    flags = ("--method=majority_vote", "--annotations={folder}/a.npy")

    def npy(array: object) -> bytes:
        stream = io.BytesIO()
        np.save(stream, np.asarray(array), allow_pickle=False)
        return stream.getvalue()

    whole = npy(matrix)
    header = bytearray(whole)
    header[int(rng.integers(110))] ^= 1 << int(rng.integers(8))
    later = bytearray(whole)
    later[6] = 9
    contents: dict[str, tuple[bytes, frozenset[str]]] = {
        "columns first": (npy(np.asfortranarray(matrix)), SAME),
        "big-endian": (npy(matrix.astype(">i8")), SAME),
        "8 bits": (npy(matrix.astype(np.int8)), SAME),
        "8 bits without a sign": (npy(matrix.astype(np.uint8)), REFUSED),
        "whole floats": (npy(matrix.astype(float)), SANE),
        "NaN": (npy(np.where(matrix < 0, np.nan, matrix)), SANE),
        "truth values": (npy(matrix > 0), ANY),
        "one number": (npy(np.int64(3)), REFUSED),
        "three dimensions": (npy(matrix[None]), REFUSED),
        "complex numbers": (npy(matrix + 0j), REFUSED),
        "dates": (npy(matrix.astype("M8[s]")), REFUSED),
        "the lowest integer": (npy(np.where(matrix < 0, -(2**63), matrix)), EITHER),
        "no rows": (npy(matrix[:0]), REFUSED),
        "no columns": (npy(matrix[:, :0]), REFUSED),
        "no label": (npy(matrix * 0 - 1), REFUSED),
        "two arrays": (whole * 2, SANE | TOLD),
        "another version": (bytes(later), REFUSED),
        "a bit of the header flipped": (bytes(header), ANY),
        "gzip": (gzip.compress(whole), REFUSED),
    }
    good = put("a.npy", whole)
    for kind, (content, right) in contents.items():
        yield Input(f"NPY of labels: {kind}", "aggregate", flags, put("a.npy", content), right,
                    ("a.npy",), good, flags)  # fmt: skip


def answers(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """JSON as people edit it."""
    found: dict[str, dict[str, str]] = {task: {} for task in base.tasks}
    for task, worker, label in base.triples:
        found[task][worker] = label
    text = json.dumps(found)
    rows = [{"task": t, "worker": w, "label": c} for t, w, c in base.triples]
    for kind, content, right in (
        ("a mark of order", "\ufeff" + text, SANE),
        ("a comma too many", text[:-1] + ",}", REFUSED),
        ("a comment", "// labels\n" + text, REFUSED),
        ("Python's quotes", str(found), REFUSED),
        ("twice", text + text, REFUSED),
        ("something behind", text + "x", REFUSED),
        ("lines with commas", "\n".join(json.dumps(row) + "," for row in rows), REFUSED),
        ("a list of lists", json.dumps(base.triples), REFUSED),
        ("NUL in a name", text.replace(base.workers[0], "\\u0000w"), EITHER),
        ("a raw line break", text.replace(base.workers[0], "w\n0", 1), REFUSED),
        ("nested answers", '{"a": {"x": {"label": 1}}}', REFUSED),
        ("no answers", '{"a": {}, "b": {}}', REFUSED),
        ("spaces alone", " \n\t ", REFUSED),
        ("NaN", "NaN", REFUSED),
    ):
        yield _read(f"JSON: {kind}", base, content, right, "a.json")


GROUPS = (texts, ids, packed, places, matrices, answers)


def inputs(seed: int) -> Iterator[Input]:
    """Yields every kind once, drawn with a seed."""
    for number, group in enumerate(GROUPS):
        yield from group(sound(seed), np.random.default_rng([seed, number, 0x3157]))
