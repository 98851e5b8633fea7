"""Malformed files of labels, for the command aggregate: the quickest way through all readers."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator

import numpy as np

from tests.torture.base import Sound, copied, put, some, sound, text_of
from tests.torture.oracle import ANY, EITHER, REFUSED, SAME, TOLD, Input

MARKERS = ("NA", "None", "null", "N/A", "NULL", "<NA>", "na", "-", "?", ".", " ", "nan", "NaN")
FLAGS = ("--method=majority_vote", "--annotations={folder}/a.csv")
JSON = ("--method=majority_vote", "--annotations={folder}/a.json")
NPY = ("--method=majority_vote", "--annotations={folder}/a.npy")


def of_labels(kind: str, content: object, *more: str, right: frozenset[str] = REFUSED) -> Input:
    return Input(kind, "aggregate", (*FLAGS, *more), put("a.csv", content), right, ("a.csv",))


def missing(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Markers of missing values among labels and annotators, long and wide."""
    marker = str(rng.choice(MARKERS))
    for column, what in ((1, "worker"), (2, "label")):
        rows = copied(base.long)
        for i in some(rows, rng, int(rng.integers(1, 6)), column):
            rows[i][column] = marker
        yield of_labels(f"marker as {what}, long", rows)
        if column == 2 and marker.strip():
            kept = [row for row in rows if row[2] != marker]
            yield Input(
                "marker named by --missing, long",
                "aggregate",
                (*FLAGS, f"--missing={marker}"),
                put("a.csv", rows),
                TOLD,
                ("a.csv",),
                put("a.csv", kept),
                FLAGS,
            )
    wide = copied(base.wide)
    full = [[cell or marker for cell in row] for row in wide]
    if marker not in ("nan", "NaN"):
        yield of_labels("marker as label, wide", full)
    else:
        yield Input(
            "NaN in a wide table",
            "aggregate",
            FLAGS,
            put("a.csv", full),
            SAME | EITHER,
            ("a.csv",),
            put("a.csv", wide),
        )
    if marker.strip():
        yield Input(
            "marker named by --missing, wide",
            "aggregate",
            (*FLAGS, f"--missing={marker}"),
            put("a.csv", full),
            TOLD | SAME,
            ("a.csv",),
            put("a.csv", wide),
            FLAGS,
        )
    rows = copied(base.long)
    for i in some(rows, rng, 4, 2):
        rows[i][2] = "-1"
    yield of_labels("-1, long", rows, right=EITHER)
    wide = copied(base.wide)
    for i in some(wide, rng, 4, 1):
        wide[i][1] = "-1"
    yield of_labels("-1 beside empty cells, wide", wide, right=EITHER)
    dense = [[cell or "-1" for cell in row] for row in base.wide]
    yield Input(
        "-1 for every empty cell, wide",
        "aggregate",
        FLAGS,
        put("a.csv", dense),
        SAME | TOLD,
        ("a.csv",),
        put("a.csv", base.wide),
    )
    rows = copied(base.long)
    for column in range(3):
        holed = copied(rows)
        (i,) = some(holed, rng, 1, column)
        holed[i][column] = ""
        yield Input(
            "empty cell, long",
            "aggregate",
            FLAGS,
            put("a.csv", holed),
            REFUSED,
            ("a.csv", f"line {i + 1}", "expected", "received"),
        )


SPELLINGS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("trailing space", lambda s: s + " "),
    ("leading space", lambda s: " " + s),
    ("upper case", str.upper),
    ("lower case", str.lower),
    ("zero-width", lambda s: s[:1] + "\u200b" + s[1:]),
    ("byte order mark inside", lambda s: s + "\ufeff"),
    ("no-break space", lambda s: s + "\xa0"),
    ("soft hyphen", lambda s: s[:1] + "\xad" + s[1:]),
    ("NFD", lambda s: unicodedata.normalize("NFD", s)),
    ("full width", lambda s: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in s)),
)
NUMBERS = (
    ("1", "1.0"), ("1", "01"), ("1", "+1"), ("1", "1e0"), ("0", "0.0"), ("0", "-0"), ("10", "1e1"),
    ("True", "true"), ("True", "1"), ("False", "0"), ("true", "TRUE"), ("2", "2.00"), ("1", " 1"),
)  # fmt: skip


def twins(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """One name in two spellings, among classes, annotators and tasks."""
    name, change = SPELLINGS[int(rng.integers(len(SPELLINGS)))]
    plain = sound(int(rng.integers(1000)), ("Café", "other"))
    plain.workers[0] = plain.triples[0][1]
    for column, what in ((2, "classes"), (1, "annotators")):
        rows = copied(plain.long)
        chosen = "Café" if column == 2 else rows[1][1]
        if change(chosen) == chosen:
            continue
        hits = [i for i in range(1, len(rows)) if rows[i][column] == chosen]
        for i in hits[:: 2 if len(hits) > 1 else 1][:5]:
            rows[i][column] = change(chosen)
        if sum(row[column] == chosen for row in rows) == 0:
            continue
        yield of_labels(f"twins among {what}: {name}", rows)
    rows = copied(plain.long)
    if name in ("trailing space", "leading space", "zero-width", "no-break space", "soft hyphen"):
        rows.append([change(rows[1][0]), rows[1][1], rows[1][2]])
        yield of_labels(f"duplicate pair behind {name}", rows)
    first, second = NUMBERS[int(rng.integers(len(NUMBERS)))]
    numbered = sound(int(rng.integers(1000)), (first, "7"))
    for column, what in ((2, "classes"), (1, "annotators")):
        rows = copied(numbered.long)
        if column == 1:
            rows = [[r[0], first if r[1] == numbered.workers[0] else r[1], r[2]] for r in rows]
        hits = [i for i in range(1, len(rows)) if rows[i][column] == first]
        for i in hits[::2]:
            rows[i][column] = second
        if len(hits) > 1:
            yield of_labels(f"twin numbers among {what}", rows)
    wide = copied(numbered.wide)
    hits2 = [(i, j) for i in range(1, len(wide)) for j in range(1, 6) if wide[i][j] == first]
    for i, j in hits2[::2]:
        wide[i][j] = second
    # Columns with empty cells become floats in pandas, others do not: 1.0 is 1 there.
    same = second.removesuffix(".0").removesuffix(".00") == first
    yield of_labels("twin numbers, wide", wide, right=ANY if same else REFUSED)
    wide = copied(base.wide)
    wide[0][2] = wide[0][1] + str(rng.choice([" ", "\u200b"]))
    yield of_labels("twins among a wide table's annotators", wide)
    rows = copied(base.long)
    rows.append(list(rows[int(rng.integers(1, len(rows)))]))
    yield Input(
        "duplicate pair",
        "aggregate",
        FLAGS,
        put("a.csv", rows),
        REFUSED,
        ("a.csv", f"line {len(rows)}", "expected", "received"),
    )


def _answers(base: Sound) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {task: {} for task in base.tasks}
    for task, worker, label in base.triples:
        found[task][worker] = label
    return found


def _json(kind: str, text: str | bytes, right: frozenset[str] = REFUSED) -> Input:
    return Input(kind, "aggregate", JSON, put("a.json", text), right, ("a.json",))


def answers(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """peerannot's JSON."""
    plain = _answers(base)
    yield Input(
        "answers.json",
        "aggregate",
        JSON,
        put("a.json", json.dumps(plain)),
        SAME,
        (),
        put("a.csv", base.long),
        FLAGS,
    )
    task = str(rng.choice(base.tasks))
    worker = next(iter(plain[task]))
    for bad in (None, "", " ", float("inf"), float("nan"), [1], {"a": 1}, "NA", -1, "null"):
        broken = json.loads(json.dumps(plain))
        broken[task][worker] = bad
        right = EITHER if bad == -1 else REFUSED
        yield _json(f"JSON label {bad!r}", json.dumps(broken), right)
    mixed = json.loads(json.dumps(_answers(sound(1, ("0", "1")))))
    for n, given in enumerate(mixed.values()):
        for who in given:
            given[who] = int(given[who]) if n % 2 else given[who]
    yield _json("JSON 1 and '1'", json.dumps(mixed))
    booleans = json.loads(json.dumps(mixed))
    for n, given in enumerate(booleans.values()):
        for who in given:
            given[who] = bool(int(given[who])) if n % 2 else int(given[who])
    yield _json("JSON true and 1", json.dumps(booleans))
    text = json.dumps(plain)
    inner = json.dumps(plain[task])
    other = f'{{"{worker}": "{base.classes[-1]}", {inner[1:]}'
    yield _json("JSON key twice, worker", text.replace(f'"{task}": {inner}', f'"{task}": {other}'))
    yield _json("JSON key twice, task", text[:-1] + f', "{task}": {{"{worker}": "x"}}}}')
    yield _json("JSON cut off", text[: int(rng.integers(1, len(text) - 1))])
    yield _json("JSON nested deeply", '{"t": ' * 100_000)
    yield _json("JSON list nested deeply", "[" * 100_000)
    yield _json("JSON integer of 5,000 digits", f'{{"t0": {{"w": {"9" * 5000}}}}}')
    yield _json("JSON of something else", json.dumps(str(rng.integers(9))))
    yield _json("JSON in UTF-16", text.encode("utf-16"))
    yield _json("JSON with half a surrogate", text.replace(base.workers[0], "\\ud800"))
    yield _json("empty JSON", "")


def layouts(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Files whose layout is easily mistaken."""
    names = base.classes
    shares = rng.dirichlet(np.ones(len(names)), len(base.tasks)).round(3)
    header = ["task", *(f"p_{name}" if rng.random() < 0.5 else name for name in names)]
    soft = [[t, *map(str, row)] for t, row in zip(base.tasks, shares.tolist(), strict=True)]
    yield of_labels("probabilities, wide", [header, *soft])
    long = [[t, w, f"{rng.random():.3f}"] for t, w, _ in base.triples]
    yield of_labels("scores as labels, long", [["task", "worker", "label"], *long])
    counts = np.zeros((len(base.tasks), len(names)), dtype=int)
    place = {task: i for i, task in enumerate(base.tasks)}
    for t, _, label in base.triples:
        if rng.random() < 0.8:
            counts[place[t], names.index(label)] += 1
    wide = [[t, *map(str, row)] for t, row in zip(base.tasks, counts.tolist(), strict=True)]
    yield of_labels("counts without votes_", [["task", *names], *wide], right=EITHER)
    voted = [["task", *(f"votes_{name}" for name in names)], *wide]
    huge = copied(voted)
    huge[1][1] = "1" + "0" * 12
    yield of_labels("a count of 10^12 votes", huge)
    huge[1][1] = "9" * 40
    yield of_labels("a count of 40 digits", huge)
    huge[1][1] = str(rng.choice(["-1", "0.5", "x", "1e3", "inf"]))
    yield Input(
        "a count that is none",
        "aggregate",
        FLAGS,
        put("a.csv", huge),
        REFUSED,
        ("a.csv", "line 2", "expected", "received"),
    )
    numbers = [[str(i), str(int(rng.integers(3)) + 5 * j), str(base.truth[i])]
               for i in range(24) for j in range(3)]  # fmt: skip
    yield of_labels("triples of numbers without a header", numbers)
    yield of_labels("triples without a header", base.triples)
    dense = rng.integers(0, 2, (24, 4))
    rows = [[str(i), *map(str, row)] for i, row in enumerate(dense.tolist())]
    yield of_labels("a dense matrix with a task number first", rows)
    yield of_labels("a dense matrix with a numbered column", [["no", "u", "v", "x", "y"], *rows])
    labels = base.long
    yield of_labels("header alone", labels[:1])
    yield of_labels("empty file", "")
    yield of_labels("blank lines alone", "\n\n\n")
    swapped = [[row[0], row[1]] for row in labels]
    yield of_labels("a column is missing", swapped)
    misspelt = [["task", "worker", "labl"], *base.triples]
    yield of_labels("a column is misspelt", misspelt)
    twice = [["task", "worker", "label", "label"], *([*row, row[2]] for row in base.triples)]
    yield of_labels("a column is there twice", twice)
    ragged = copied(labels)
    ragged[int(rng.integers(2, len(ragged)))].append("more")
    yield of_labels("a row is too long", ragged)
    short = copied(labels)
    short[int(rng.integers(2, len(short)))].pop()
    yield of_labels("a row is too short", short)
    ids = [[t, w, f"answer {i}"] for i, (t, w, _) in enumerate(base.triples)]
    yield of_labels("labels that are texts", [labels[0], *ids], right=EITHER)
    constant = [[t, w, "a"] for t, w, _ in base.triples]
    yield of_labels("one class alone", [labels[0], *constant], right=ANY)


def bytes_(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """The file as a file: encodings, ends of lines, archives, sizes."""
    text = text_of(base.long)
    raw = text.encode()
    at = int(rng.integers(1, len(raw)))
    yield of_labels("NUL byte", raw[:at] + b"\0" + raw[at:])
    yield of_labels("no UTF-8", raw[:40] + b"\xff\xfe\xfa" + raw[40:])
    yield of_labels("UTF-16", text.encode("utf-16"))
    yield of_labels("a spreadsheet", b"PK\x03\x04" + rng.bytes(200))
    yield of_labels("gzip that is none", rng.bytes(100), right=REFUSED)
    gz = ("--method=majority_vote", "--annotations={folder}/a.csv.gz")
    yield Input(".gz that is none", "aggregate", gz, put("a.csv.gz", raw), REFUSED, ("a.csv.gz",))
    yield of_labels("one line of 5 MB", b"task,worker,label" + b"x" * 5_000_000)
    yield of_labels("a cell of 5 MB", raw + b"t0,w0," + b"x" * 5_000_000 + b"\n", right=ANY)
    if rng.random() < 0.15:
        head = "task," + ",".join(f"c{i}" for i in range(80_000))
        yield of_labels("80,000 columns", head + "\nt1" + ",1" * 80_000 + "\n", right=ANY)
        yield of_labels("80,000 unknown columns", head.replace("task", "x") + "\n")
    yield of_labels("quote never closed", text.replace(base.workers[0], '"' + base.workers[0], 1))
    for end, separator, start in (("\r\n", ",", ""), ("\n", ",", "\ufeff"), ("\n", "\t", "")):
        sane = start + text_of(base.long, separator, end)
        yield Input(
            "a sound file in another dress",
            "aggregate",
            FLAGS,
            put("a.csv", sane),
            SAME,
            (),
            put("a.csv", base.long),
        )
    semicolons = text_of(base.long, ";")
    yield of_labels("semicolons", semicolons)
    yield Input(
        "semicolons and --separator",
        "aggregate",
        (*FLAGS, "--separator=;"),
        put("a.csv", semicolons),
        SAME,
        (),
        put("a.csv", base.long),
        FLAGS,
    )
    shuffled = [["label", "extra", "worker", "task"], *([c, "e", b, a] for a, b, c in base.triples)]
    yield Input(
        "columns in another order",
        "aggregate",
        FLAGS,
        put("a.csv", shuffled),
        SAME,
        (),
        put("a.csv", base.long),
    )
    aliases = [["question", "annotator", "answer"], *base.triples]
    yield Input(
        "aliases", "aggregate", FLAGS, put("a.csv", aliases), SAME, (), put("a.csv", base.long)
    )
    flipped = bytearray(raw)
    for _ in range(int(rng.integers(1, 6))):
        flipped[int(rng.integers(len(raw)))] = int(rng.integers(256))
    yield of_labels("flipped bytes", bytes(flipped), right=ANY)
    yield of_labels("random bytes", rng.bytes(int(rng.integers(1, 3000))), right=ANY)
    yield Input("no such file", "aggregate", FLAGS, lambda _: None, REFUSED, ("a.csv",))
    yield Input("a folder", "aggregate", FLAGS, lambda f: (f / "a.csv").mkdir(), REFUSED, ())
    long_path = ("--method=majority_vote", "--annotations=/" + "x" * 5000)
    yield Input("a path of 5,000 characters", "aggregate", long_path, lambda _: None, REFUSED)
    device = ("--method=majority_vote", "--annotations=/dev/zero")
    yield Input("a device", "aggregate", device, lambda _: None, REFUSED, ("/dev/zero",))


def arrays(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """NPY files of labels."""
    import io

    def npy(array: object) -> bytes:
        stream = io.BytesIO()
        np.save(stream, np.asarray(array), allow_pickle=False)
        return stream.getvalue()

    matrix = rng.integers(-1, 2, (24, 4))
    matrix[0, :2] = 0, 1

    def one(kind: str, content: bytes, right: frozenset[str] = REFUSED) -> Input:
        return Input(kind, "aggregate", NPY, put("a.npy", content), right, ("a.npy",))

    head = npy(matrix)
    yield one("NPY header that claims 10^12 rows", head.replace(b"(24, 4)", b"(10**12, 4)"[:7]))
    claimed = {"descr": "<i8", "fortran_order": False, "shape": (10**12, 4)}
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, claimed)
    yield one("NPY that claims 10^12 rows", stream.getvalue() + b"\0" * 64)
    yield one("NPY cut off", head[: int(rng.integers(1, len(head)))])
    stream = io.BytesIO()
    np.savez(stream, a=matrix, b=matrix)
    yield one("NPZ under another name", stream.getvalue())
    yield one("NPY of floats", npy(matrix + 0.5))
    yield one("NPY of text", npy(np.array([["a", "b"]] * 12)))
    yield one("NPY of one dimension", npy(np.arange(24)))
    yield one("NPY below -1", npy(matrix - 2))
    yield one("NPY of large codes", npy(matrix * 10**9))
    yield one(
        "NPY of objects",
        b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, "
        b"'shape': (1,), }" + b" " * 60 + b"\n",
    )
    yield one("NPY that is none", rng.bytes(300))
    numbered = np.column_stack([np.arange(24), np.maximum(matrix, 0)])
    yield one("NPY with a task number first", npy(numbered))


GROUPS = (missing, twins, answers, layouts, bytes_, arrays)


def inputs(seed: int) -> Iterator[Input]:
    """Yields every kind once, drawn with a seed."""
    for number, group in enumerate(GROUPS):
        yield from group(sound(seed), np.random.default_rng([seed, number, 0x7A8E]))
