"""Files as other programs write them: spreadsheets, databases, statistics packages, other people's
habits. What is sound there has the sound result; what is not is refused or told.
"""

from __future__ import annotations

import bz2
import decimal
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable, Iterator

import numpy as np

from tests.torture.base import Rows, Sound, both, copied, put, some, sound, text_of
from tests.torture.labels import FLAGS as LABELS
from tests.torture.labels import of_labels
from tests.torture.oracle import ANY, EITHER, REFUSED, SAME, TOLD, Input
from tests.torture.tables import FILES, FLAGS, RUN, files_of, of_tables

ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


def _labels(
    kind: str, content: object, right: frozenset[str], base: Sound, *more: str, wide: bool = False
) -> Input:
    good = put("a.csv", base.wide if wide else base.long)
    return Input(kind, "aggregate", (*LABELS, *more), put("a.csv", content), right, ("a.csv",),
                 good, LABELS)  # fmt: skip


def spreadsheets(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """What Excel, LibreOffice and pandas leave in a file of labels."""
    long, wide = base.long, base.wide
    same: dict[str, bytes] = {
        "BOM and CRLF": b"\xef\xbb\xbf" + text_of(long, end="\r\n").encode(),
        "carriage returns alone": text_of(long, end="\r").encode(),
        "every cell in quotes": "\n".join(",".join(f'"{c}"' for c in row) for row in long).encode(),
        "BOM and quotes": b"\xef\xbb\xbf"
        + "\n".join(",".join(f'"{c}"' for c in row) for row in long).encode(),
        "no line feed at the end": text_of(long).rstrip("\n").encode(),
        "empty lines at the end": text_of(long).encode() + b"\n\n\n",
        "empty lines between": text_of(long).replace("\n", "\n\n").encode(),
        "a comma at the end of each line": text_of([[*row, ""] for row in long]).encode(),
        "a comma at the end of each row": text_of(
            [long[0], *([*r, ""] for r in long[1:])]
        ).encode(),
        "a row index": text_of(
            [[str(i - 1) if i else "", *r] for i, r in enumerate(long)]
        ).encode(),
        "a row index named so": text_of(
            [[str(i - 1) if i else "Unnamed: 0", *r] for i, r in enumerate(long)]
        ).encode(),
        "only separators at the end": text_of([*long, ["", "", ""], ["", "", ""]]).encode(),
        "sep= first": b"sep=;\n" + text_of(long, ";").encode(),
        "gzip": gzip.compress(text_of(long).encode()),
        "capitals in the header": text_of([[c.title() for c in long[0]], *long[1:]]).encode(),
        "spaces around the header": text_of([[f" {c} " for c in long[0]], *long[1:]]).encode(),
    }
    for name, content in same.items():
        yield _labels(f"long: {name}", content, SAME, base)
    refused = {
        "header again": text_of([*long[:9], long[0], *long[9:]]),
        "a comment first": "# labels of March\n" + text_of(long),
        "a comment between": text_of(long[:5]) + "# here\n" + text_of(long[5:]),
        "a title above": "Labels,,\n" + text_of(long),
        "vertical bars": text_of(long, "|"),
        "semicolons and quotes": "\n".join(";".join(f'"{c}"' for c in row) for row in long),
        "a row of its own kind at the end": text_of([*long, [f"{len(long) - 1} rows", "", ""]]),
        "rows quoted as a whole": "\n".join('"' + ",".join(row) + '"' for row in long),
        "quotes that swallow rows": text_of(long[:4])
        + f'{long[4][0]},"{long[4][1]},x\n'
        + text_of(long[5:7])
        + f'{long[7][0]},{long[7][1]}",{long[7][2]}\n'
        + text_of(long[8:]),
    }
    for name, text in refused.items():
        yield _labels(f"long: {name}", text, REFUSED, base)
    for encoding in ("utf-16-le", "utf-16-be", "utf-16", "utf-32", "latin-1", "cp1252", "cp437"):
        accented = [[t, w, c.replace("o", "ö").replace("a", "ä")] for t, w, c in base.triples]
        if not any("ö" in r[2] or "ä" in r[2] for r in accented) and "utf" not in encoding:
            continue
        yield _labels(f"long: {encoding}", text_of([long[0], *accented]).encode(encoding), REFUSED,
                      base)  # fmt: skip
    same = {
        "BOM and CRLF": b"\xef\xbb\xbf" + text_of(wide, end="\r\n").encode(),
        "numbers as 1.0": text_of(
            [wide[0], *([r[0], *(f"{c}.0" if c.isdigit() else c for c in r[1:])] for r in wide[1:])]
        ).encode(),
        "tabs": text_of(wide, "\t").encode(),
        "NaN": text_of([wide[0], *([c or "NaN" for c in r] for r in wide[1:])]).encode(),
    }
    for name, content in same.items():
        right = SAME | REFUSED if name == "tabs" else SAME
        yield _labels(f"wide: {name}", content, right, base, wide=True)
    refused = {
        "a row index": text_of([[str(i - 1) if i else "", *r] for i, r in enumerate(wide)]),
        "a row index named so": text_of(
            [[str(i - 1) if i else "Unnamed: 0", *r] for i, r in enumerate(wide)]
        ),
        "header again": text_of([*wide[:9], wide[0], *wide[9:]]),
        "rows cut off": text_of([*wide[:7], wide[7][:3], *wide[8:]]),
        "a column twice": text_of([[*r, r[1]] for r in wide]),
        "semicolons": text_of(wide, ";"),
        "transposed": text_of([list(r) for r in zip(*wide, strict=True)]),
    }
    for name, text in refused.items():
        right = ANY if name == "transposed" else REFUSED
        yield _labels(f"wide: {name}", text, right, base, wide=True)


def extra_columns(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Columns that are not an annotator's, or that could play a role as well."""
    wide = base.wide
    truth = dict(zip(base.tasks, (base.classes[c] for c in base.truth), strict=True))
    for name in ("truth", "gold", "ground_truth", "true_label", "target", "majority", "consensus",
                 "majority_vote", "Gold Label", "correct", "label_true", "y_true"):  # fmt: skip
        more = [[*wide[0], name], *([*r, truth[r[0]]] for r in wide[1:])]
        yield _labels(f"wide: a column {name!r}", text_of(more), EITHER, base, wide=True)
    for name, value in (
        ("comment", lambda i: f"looks odd {i}"),
        ("text", lambda i: f"It rained on day {i}."),
        ("timestamp", lambda i: f"2024-03-{i % 28 + 1:02d}T10:{i:02d}"),
        ("date", lambda i: f"{i % 28 + 1}.3.2024"),
        ("url", lambda i: f"https://example.org/{i}.png"),
        ("seconds", lambda i: str(11 + 7 * i)),
        ("n", lambda i: "4"),
        ("total", lambda i: "4"),
        ("agreement", lambda i: f"{0.5 + i / 60:.3f}"),
    ):
        more = [[*wide[0], name], *([*r, value(i)] for i, r in enumerate(wide[1:]))]
        yield _labels(f"wide: a column {name!r}", text_of(more), EITHER, base, wide=True)
    for first, second in (("label", "answer"), ("label", "class"), ("worker", "annotator"),
                          ("label", "Label"), ("task", "item")):  # fmt: skip
        place = ["task", "worker", "label"].index(first)
        more = [["task", "worker", "label", second]]
        more += [[*r, truth[r[0]] if place == 2 else f"other {r[place]}"] for r in base.triples]
        yield _labels(f"long: columns {first!r} and {second!r}", text_of(more), EITHER, base)
        yield Input(f"long: columns {first!r} and {second!r}, one named", "aggregate",
                    (*LABELS, f"--{first}_column={first}"), put("a.csv", more), SAME | EITHER,
                    ("a.csv",), put("a.csv", base.long), LABELS)  # fmt: skip
    counts = [["task", *(f"votes_{c}" for c in base.classes)]]
    for task in base.tasks:
        given = [r[2] for r in base.triples if r[0] == task]
        counts.append([task, *(str(given.count(c)) for c in base.classes)])
    sums = ["Total", *(str(sum(int(r[j]) for r in counts[1:])) for j in range(1, len(counts[0])))]
    yield _labels("votes: a row of sums", text_of([*counts, sums]), EITHER, base)
    total = [[*r, "total" if not i else str(sum(map(int, r[1:])))] for i, r in enumerate(counts)]
    yield _labels("votes: a column of sums", text_of(total), REFUSED, base)
    votes = [[*r, "votes_total" if not i else str(sum(map(int, r[1:])))]
             for i, r in enumerate(counts)]  # fmt: skip
    yield _labels("votes: votes_total", text_of(votes), EITHER, base)
    mixed = [[r[0], *r[1:-1], r[-1] if i else r[-1].removeprefix("votes_")]
             for i, r in enumerate(counts)]  # fmt: skip
    yield _labels("votes: one column without votes_", text_of(mixed), REFUSED, base)
    upper = [[r[0], *(c.upper() if not i else c for c in r[1:])] for i, r in enumerate(counts)]
    yield _labels("votes: VOTES_", text_of(upper), EITHER | SAME, base)
    shares = [["task", *(f"votes_{c}" for c in base.classes)],
              *([r[0], *(f"{int(c) / max(sum(map(int, r[1:])), 1):.3f}" for c in r[1:])]
                for r in counts[1:])]  # fmt: skip
    yield _labels("votes: shares", text_of(shares), REFUSED, base)
    percent = [shares[0], *([r[0], *(f"{100 * float(c):.0f}%" for c in r[1:])] for r in shares[1:])]
    yield _labels("votes: percentages", text_of(percent), REFUSED, base)


CODES = ("-9", "-99", "-999", "99", "999", "9999", "-2")
SIGNS = ("#N/A", "#VALUE!", "#REF!", "#DIV/0!", "#NAME?", "#NUM!", "#NULL!", "\\N", "undefined",
         "(null)", "[null]", "<null>", "(blank)", "missing", "—", "–", "...", "…", "n/a", "N.A.",
         "Nil", "NIL", "nan", "-nan", "1.#QNAN", "NaT", "<NA>", "none", "NONE", "''", '""',
         "no answer", "not answered")  # fmt: skip


def signs(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """What databases, statistics packages and spreadsheets write for nothing."""
    for sign in SIGNS:
        rows = copied(base.long)
        for i in some(rows, rng, 3, 2):
            rows[i][2] = sign
        yield of_labels("a sign of nothing as label, long", rows)
    sign = str(rng.choice(SIGNS))
    wide = [base.wide[0], *([c or sign for c in r] for r in base.wide[1:])]
    right = SAME if sign == "nan" else REFUSED
    yield _labels("a sign of nothing, wide", text_of(wide), right, base, wide=True)
    numbered = sound(int(rng.integers(1000)), ("0", "1", "2"))
    for code in CODES:
        rows = copied(numbered.long)
        for i in some(rows, rng, 4, 2):
            rows[i][2] = code
        yield of_labels(f"code {code} for nothing, long", rows, right=EITHER)
        wide = [numbered.wide[0], *([c or code for c in r] for r in numbered.wide[1:])]
        yield of_labels(f"code {code} for nothing, wide", wide, right=EITHER)
    for names in (("-1", "1"), ("-2", "-1", "0", "1", "2"), ("1", "99"), ("10", "20", "30")):
        likert = sound(int(rng.integers(1000)), names)
        yield Input(f"classes {names} are classes", "aggregate",
                    (*LABELS, f"--classes={','.join(names)}"), put("a.csv", likert.long),
                    SAME | TOLD, (), put("a.csv", likert.long))  # fmt: skip
    for column, what in ((0, "task"), (1, "worker"), (2, "label")):
        rows = copied(base.long)
        (i,) = some(rows, rng, 1, column)
        rows[i][column] = f"{rows[i][column]}\nmore"
        yield of_labels(f"a line break in a {what}", rows, right=EITHER if column == 0 else REFUSED)
        rows[i][column] = "x" * 5000
        yield of_labels(f"5,000 characters as {what}", rows, right=ANY)
        rows[i][column] = "\ud7ff\U0001f642"
        yield of_labels(f"an emoji as {what}", rows, right=ANY)
        rows[i][column] = "\x1b[31mred"
        yield of_labels(f"control characters in a {what}", rows, right=EITHER)
    digits = sound(int(rng.integers(1000)), ("0", "1"))
    rows = copied(digits.long)
    for i in some(rows, rng, 5, 2):
        rows[i][2] = rows[i][2].translate(ARABIC)
    yield of_labels("Arabic digits among others", rows)
    homoglyph = sound(int(rng.integers(1000)), ("cat", "dog"))
    rows = copied(homoglyph.long)
    for i in some(rows, rng, 5, 2):
        rows[i][2] = rows[i][2].replace("a", "\u0430").replace("o", "\u043e")
    yield of_labels("Cyrillic letters among Latin ones", rows)
    inner = sound(int(rng.integers(1000)), ("not sure", "sure"))
    rows = copied(inner.long)
    hits = [i for i in range(1, len(rows)) if rows[i][2] == "not sure"]
    for gap in ("  ", "\xa0", "\u2009", "\t", "_", "-"):
        changed = copied(rows)
        for i in hits[::2]:
            changed[i][2] = f"not{gap}sure"
        yield of_labels(f"another space {gap!r} within a class", changed,
                   right=REFUSED if gap.isspace() else EITHER)  # fmt: skip
    quoted = copied(base.long)
    for i in some(quoted, rng, 5, 2):
        quoted[i][2] = f"'{quoted[i][2]}'"
    yield of_labels("a class in quotes and without", quoted)


def features(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Features as spreadsheets and other programs write them."""
    table = base.table
    same = {
        "BOM and CRLF": b"\xef\xbb\xbf" + text_of(table, end="\r\n").encode(),
        "carriage returns alone": text_of(table, end="\r").encode(),
        "quotes": "\n".join(",".join(f'"{c}"' for c in row) for row in table).encode(),
        "spaces around cells": text_of([table[0], *([r[0], *(f" {c} " for c in r[1:])]
                                                   for r in table[1:])]).encode(),
        "a plus": text_of([table[0], *([r[0], *(c if c[0] == "-" else f"+{c}" for c in r[1:])]
                                      for r in table[1:])]).encode(),
        "tabs": text_of(table, "\t").encode(),
        "only separators": text_of([*table, ["", "", ""]]).encode(),
        "a comma at the end": text_of([[*r, ""] for r in table]).encode(),
        "gzip": gzip.compress(text_of(table).encode()),
        "rows in another order": text_of([table[0], *reversed(table[1:])]).encode(),
    }  # fmt: skip
    for name, content in same.items():
        right = ANY if "order" in name else SAME
        yield Input(f"features: {name}", "run", FLAGS, files_of(base, f=content), right, ("f.csv",),
                    files_of(base), FLAGS)  # fmt: skip
    row = int(rng.integers(1, 25))
    for bad in ("1_000", "1,234.5", "1.234,5", "45%", "$3", "2024-01-31", "31/01/2024", "12:30",
                "TRUE", "yes", "1e", "0b1", "١٢", "½", "1.2.3", "1 000", "1'000", "Infinity",
                "1e999", "#N/A", "NULL", "-", "(5)", "1\u22122", "5\u00b0", "1+2j",
                "1d5", "++1", "1e5e", "_1", "1__0"):  # fmt: skip
        rows = copied(table)
        rows[row][1] = bad
        yield of_tables(base, f"feature {bad!r}", "f", rows, words=(f"line {row + 1}",))
        if bad in ("45%", "2024-01-31", "١٢", "1_000", "12:30"):
            rows = [[line[0], bad if i else line[1], line[2]] for i, line in enumerate(rows)]
            yield of_tables(base, f"feature {bad!r} everywhere", "f", rows, words=("line 2",))
    commas = [table[0], *([r[0], *(c.replace(".", ",") for c in r[1:])] for r in table[1:])]
    yield of_tables(base, "decimal commas in quotes", "f", commas)
    yield of_tables(base, "semicolons and decimal commas", "f", text_of(commas, ";"))
    yield Input("semicolons, decimal commas, --separator", "run", (*FLAGS, "--separator=;"),
                files_of(base, f=text_of(commas, ";"), a=text_of(base.long, ";"),
                       t=text_of(base.truths, ";")), REFUSED, ("f.csv",))  # fmt: skip
    yield Input("semicolons everywhere, --separator", "run", (*FLAGS, "--separator=;"),
                files_of(base, f=text_of(table, ";"), a=text_of(base.long, ";"),
                       t=text_of(base.truths, ";")), SAME, (), files_of(base), FLAGS)  # fmt: skip
    yield of_tables(base, "semicolons in one file only", "a", text_of(base.long, ";"))
    for name, content in {
        "a row index": [[str(i - 1) if i else "", *r] for i, r in enumerate(table)],
        "a row index named so": [[str(i - 1) if i else "Unnamed: 0", *r]
                                 for i, r in enumerate(table)],
        "header again": [*table[:5], table[0], *table[5:]],
        "a comma at the end of rows": [table[0], *([*r, ""] for r in table[1:])],
        "a row of sums": [*table, ["Total", *(f"{sum(float(r[j]) for r in table[1:]):.6f}"
                                              for j in (1, 2))]],
        "a row cut off": [*table[:5], table[5][:2], *table[6:]],
        "units below the header": [table[0], ["", "m", "m"], *table[1:]],
        "a column twice": [[*r, r[1]] for r in table],
        "column x.1": [[*r, "x" if not i else r[1]] for i, r in enumerate(table)],
        "no header": table[1:],
        "transposed": [list(r) for r in zip(*table, strict=True)],
        "a text column": [[*r, "colour" if not i else ("red", "blue")[i % 2]]
                          for i, r in enumerate(table)],
        "a date column": [[*r, "when" if not i else f"2024-01-{i:02d}"]
                          for i, r in enumerate(table)],
    }.items():  # fmt: skip
        right = EITHER if name == "a row of sums" else REFUSED
        yield Input(f"features: {name}", "run", FLAGS, files_of(base, f=content), right, (".csv",))
    for name in ("target", "truth", "ground_truth", "gold", "true_label", "y_true"):
        leaked = [[*r, name if not i else str(base.truth[i - 1])] for i, r in enumerate(table)]
        yield of_tables(base, f"features: a column {name!r}", "f", leaked, right=EITHER)
    for name in ("task_no", "taskid", "Unnamed: 7", "ID", "Id", "row_number", "instance_id", "key",
                 "uuid"):  # fmt: skip
        order = rng.permutation(24)
        leaked = [[*r, name if not i else str(order[i - 1])] for i, r in enumerate(table)]
        yield of_tables(base, f"features: a column {name!r}", "f", leaked, right=EITHER)
    constant = [[*r, "z" if not i else "3.5"] for i, r in enumerate(table)]
    yield of_tables(base, "features: a constant column", "f", constant, right=ANY)
    huge = [[*r, "z" if not i else f"{i}e20"] for i, r in enumerate(table)]
    yield of_tables(base, "features: a column of 1e20", "f", huge, right=ANY)
    tiny = [[*r, "z" if not i else f"{i}e-42"] for i, r in enumerate(table)]
    yield of_tables(base, "features: a column of 1e-42", "f", tiny, right=EITHER)
    ints = [[*r, "z" if not i else str(2**60 + i)] for i, r in enumerate(table)]
    yield of_tables(base, "features: integers above 2^53", "f", ints, right=EITHER)
    upper = [[r[0] if not i else r[0].upper(), *r[1:]] for i, r in enumerate(table)]
    yield Input("features: tasks in capitals", "run", FLAGS, files_of(base, f=upper),
                SAME if upper == table else EITHER, (".csv",), files_of(base), FLAGS)  # fmt: skip
    padded = [[r[0] if not i else f"{r[0]} ", *r[1:]] for i, r in enumerate(table)]
    yield Input("features: tasks with a space", "run", FLAGS, files_of(base, f=padded),
                EITHER | SAME, (".csv",), files_of(base), FLAGS)  # fmt: skip
    float_ids = [[r[0] if not i else f"{r[0]}.0", *r[1:]] for i, r in enumerate(table)]
    yield Input("features: tasks as 1.0", "run", FLAGS, files_of(base, f=float_ids), EITHER | SAME,
                (".csv",), files_of(base), FLAGS)  # fmt: skip
    yield Input("features and labels exchanged", "run",
                (*RUN, "--features={folder}/a.csv", "--annotations={folder}/f.csv"),
                files_of(base), REFUSED)  # fmt: skip
    yield Input("truth as labels", "run",
                (*RUN, "--features={folder}/f.csv", "--annotations={folder}/t.csv"),
                files_of(base), REFUSED)  # fmt: skip
    yield Input("labels as truth", "run", (*RUN, *FILES[:2], "--truth={folder}/a.csv"),
                files_of(base), REFUSED)  # fmt: skip
    yield Input("the same file thrice", "run",
                (*RUN, *(f"--{n}={{folder}}/a.csv" for n in ("features", "annotations", "truth"))),
                files_of(base), REFUSED)  # fmt: skip


def truths(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Truth as others write it."""
    rows = base.truths
    same = {
        "BOM and CRLF": b"\xef\xbb\xbf" + text_of(rows, end="\r\n").encode(),
        "quotes": "\n".join(",".join(f'"{c}"' for c in row) for row in rows).encode(),
        "another order": text_of([rows[0], *reversed(rows[1:])]).encode(),
        "columns exchanged": text_of([row[::-1] for row in rows]).encode(),
        "more columns": text_of([[*row, "x"] for row in rows]).encode(),
    }
    for name, content in same.items():
        yield Input(f"truth: {name}", "run", FLAGS, files_of(base, t=content), SAME, ("t.csv",),
                    files_of(base), FLAGS)  # fmt: skip
    upper = [rows[0], *([t, c.upper()] for t, c in rows[1:])]
    spaced = [rows[0], *([t, f"{c} "] for t, c in rows[1:])]
    floats = [rows[0], *([t, f"{c}.0" if c.isdigit() else f" {c}"] for t, c in rows[1:])]
    for name, content2 in {"capitals": upper, "spaces": spaced, "1.0": floats}.items():
        if content2 == rows or (name == "capitals" and upper[1:] == rows[1:]):
            continue
        yield Input(f"truth: {name}", "run", FLAGS, files_of(base, t=content2), REFUSED | SAME,
                    ("t.csv",), files_of(base), FLAGS)  # fmt: skip
    for name, bad in {
        "header again": [*rows[:5], rows[0], *rows[5:]],
        "a row cut off": [*rows[:5], rows[5][:1], *rows[6:]],
        "a row index": [[str(i - 1) if i else "", *r] for i, r in enumerate(rows)],
        "no header": rows[1:],
        "semicolons": text_of(rows, ";"),
        "UTF-16": text_of(rows).encode("utf-16"),
        "wide": base.wide,
        "two contradictory rows": [*rows, [rows[1][0], rows[2][1]]],
        "codes for names": [rows[0], *([t, f"{7 + base.truth[i]}"]
                                      for i, (t, _) in enumerate(rows[1:]))],
        "probabilities": [rows[0], *([t, "0.7"] for t, _ in rows[1:])],
    }.items():  # fmt: skip
        yield of_tables(base, f"truth: {name}", "t", bad)
    both_columns = [["task", "label", "answer"], *([*r, base.classes[0]] for r in rows[1:])]
    yield of_tables(base, "truth: columns label and answer", "t", both_columns, right=EITHER)
    # Gold labels of aggregate.
    gold = (*LABELS[1:], "--method=gold_majority_vote", "--gold={folder}/g.csv")
    good = both(put("a.csv", base.long), put("g.csv", rows[:9]))

    def golden(kind: str, content: object, right: frozenset[str] = REFUSED) -> Input:
        files = both(put("a.csv", base.long), put("g.csv", content))
        return Input(f"gold: {kind}", "aggregate", gold, files, right, ("g.csv",), good, gold)

    yield golden("sound", rows[:9], SAME)
    yield golden("BOM and CRLF", b"\xef\xbb\xbf" + text_of(rows[:9], end="\r\n").encode(), SAME)
    yield golden("an unknown task", [*rows[:9], ["nobody", rows[1][1]]], TOLD)
    yield golden("unknown tasks", [rows[0], ["nobody", rows[1][1]], ["none", rows[1][1]]])
    yield golden("an unknown class", [*rows[:4], [rows[5][0], "perhaps"]])
    yield golden("contradictory", [*rows[:4], [rows[1][0], rows[2][1]]])
    yield golden("an empty label", [*rows[:4], [rows[5][0], ""]])
    yield golden("NA", [*rows[:4], [rows[5][0], "NA"]])
    yield golden("header alone", rows[:1])
    yield golden("empty", "")
    yield golden("semicolons", text_of(rows[:9], ";"))
    yield golden("a quote that never closes", text_of(rows[:9]) + f'"{rows[9][0]},{rows[9][1]}\n')
    yield golden("UTF-16", text_of(rows[:9]).encode("utf-16"))
    yield golden("a row cut off", [*rows[:5], rows[5][:1], *rows[6:9]])
    yield golden("a row too long", [*rows[:5], [*rows[5], "x"], *rows[6:9]])
    yield golden("random bytes", rng.bytes(300))
    yield golden("JSON", json.dumps(dict(rows[1:])))


def texts(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """--texts."""
    words = ("sun", "rain", "snow")
    rows = [["task", "text"], *([t, f"the {words[c]} of day {i}"]
                                for i, (t, c) in enumerate(zip(base.tasks, base.truth,
                                                               strict=True)))]  # fmt: skip
    flags = ("--dataset=table", "--method=mv_lr", "--noreport", "--output_dir={folder}/out",
             "--texts={folder}/x.csv", *FILES[1:])  # fmt: skip

    def one(kind: str, content: object, right: frozenset[str] = REFUSED, *more: str) -> Input:
        files = both(files_of(base), put("x.csv", content))
        good = both(files_of(base), put("x.csv", rows)) if "same" in right else None
        words = () if more else ("x.csv",)
        return Input(f"texts: {kind}", "run", (*flags, *more), files, right, words, good, flags)

    yield one("BOM, CRLF, quotes", b"\xef\xbb\xbf" + "\r\n".join(
        ",".join(f'"{c}"' for c in row) for row in rows).encode(), SAME)  # fmt: skip
    yield one("another name", [["task", "sentence"], *rows[1:]], SAME)
    yield one("a task twice", [*rows, rows[3]])
    yield one("a row cut off", [*rows[:5], rows[5][:1], *rows[6:]])
    yield one("a row too long", [*rows[:5], [*rows[5], "x"], *rows[6:]])
    yield one(
        "a comma without quotes", "task,text\n" + "\n".join(f"{t},{x}, yes" for t, x in rows[1:])
    )
    yield one("no text column", [["task", "words"], *rows[1:]])
    yield one("two text columns", [["task", "text", "content"], *([*r, "x"] for r in rows[1:])],
              EITHER)  # fmt: skip
    yield one("line breaks in cells", [rows[0], *([t, x.replace(" of", "\nof")]
                                                  for t, x in rows[1:])], ANY)  # fmt: skip
    yield one("an empty text", [*rows[:5], [rows[5][0], ""], *rows[6:]], EITHER)
    yield one("all texts empty", [rows[0], *([t, ""] for t, _ in rows[1:])])
    yield one("NA as text", [*rows[:5], [rows[5][0], "NA"], *rows[6:]], EITHER)
    yield one("all texts the same", [rows[0], *([t, "so"] for t, _ in rows[1:])], ANY)
    yield one("UTF-16", text_of(rows).encode("utf-16"))
    yield one("latin-1", text_of(rows).replace("day", "jour fêté").encode("latin-1"))
    yield one("a NUL", text_of(rows).replace("day", "d\0y"))
    yield one("a text of 5 MB", [*rows[:5], [rows[5][0], "so " * 1_700_000], *rows[6:]], ANY)
    yield one("header alone", rows[:1])
    yield one("features as texts", base.table)
    yield one("an ignored option", rows, REFUSED, "--ignore_columns=z")
    yield one("image_size of texts", rows, REFUSED, "--image_size=8")


def archives(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Arrays and archives in other formats than the ones that are read."""
    x = np.array([[float(c) for c in line[1:]] for line in base.features])

    def saved(write: Callable[[io.BytesIO], object]) -> bytes:
        stream = io.BytesIO()
        write(stream)
        return stream.getvalue()

    zipped = saved(lambda s: zipfile.ZipFile(s, "w").writestr("a.csv", text_of(base.long)))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.csv", text_of(base.long))
        archive.writestr("b.csv", text_of(base.long))
    two = stream.getvalue()
    contents = {
        "npz": saved(lambda s: np.savez(s, x=x)),
        "npz2": saved(lambda s: np.savez(s, x=x, y=x)),
        "zip": two,
        "zip1": zipped,
        "xlsx": two,
        "h5": b"\x89HDF\r\n\x1a\n" + rng.bytes(200),
        "pkl": b"\x80\x04\x95" + rng.bytes(200),
        "sqlite": b"SQLite format 3\0" + rng.bytes(200),
        "feather": b"ARROW1\0\0" + rng.bytes(200),
        "jsonl": "\n".join(json.dumps({"task": t, "worker": w, "label": c})
                           for t, w, c in base.triples).encode(),
        "records.json": json.dumps([{"task": t, "worker": w, "label": c}
                                    for t, w, c in base.triples]).encode(),
        "yaml": "\n".join(f"- task: {t}\n  label: {c}" for t, _, c in base.triples).encode(),
        "html": b"<html><table><tr><td>task</td></tr></table></html>",
        "bz2": bz2.compress(text_of(base.long).encode()),
        "xz": lzma.compress(text_of(base.long).encode()),
        "tsv": text_of(base.long, "\t").encode(),
        "txt": text_of(base.long).encode(),
        "csv.gz.gz": gzip.compress(gzip.compress(text_of(base.long).encode())),
        "cut.gz": gzip.compress(text_of(base.long).encode())[:-9],
        "parquet": text_of(base.long).encode(),
        "npy": text_of(base.long).encode(),
        "json": text_of(base.long).encode(),
    }  # fmt: skip
    for ending, content in contents.items():
        name = f"d.{ending}"
        for flag in ("annotations", "features"):
            given = (*RUN, f"--{flag}={{folder}}/{name}",
                     FILES[1] if flag == "features" else FILES[0])  # fmt: skip
            sound_one = ending in ("tsv", "txt", "parquet") and flag == "annotations"
            right = SAME | REFUSED if sound_one else REFUSED
            yield Input(f"{flag}: .{ending}", "run", given,
                        both(files_of(base), put(name, content)), right,
                        ("" if sound_one else name,), files_of(base),
                        (*RUN, *FILES[:2]))  # fmt: skip
    npy = {
        "of one dimension": x[:, 0],
        "of complex numbers": x + 0j,
        "of text": x.astype(str),
        "of truth values": x > 0,
        "with NaN": np.where(np.arange(24)[:, None] == 3, np.nan, x),
        "of dates": x.astype("datetime64[s]"),
        "too few rows": x[:20],
        "too many rows": np.concatenate([x, x]),
        "without rows": x[:0],
        "without columns": x[:, :0],
        "of float64 that overflow": np.full((24, 2), 1e200),
        "of records": np.zeros(24, dtype=[("x", "f8"), ("y", "f8")]),
        "transposed": x.T,
    }
    plain = sound(1)
    numbered = {str(i): t for i, t in enumerate(plain.tasks)}
    back = {t: i for i, t in numbered.items()}
    long = [plain.long[0], *([back[t], w, c] for t, w, c in plain.triples)]
    for name, array in npy.items():
        content = saved(lambda s, array=array: np.save(s, array))
        right = {"too many rows": EITHER, "of truth values": ANY}.get(name, REFUSED)
        yield Input(f"features: NPY {name}", "run",
                    (*RUN, "--features={folder}/f.npy", FILES[1]),
                    both(put("f.npy", content), put("a.csv", long)), right, ())  # fmt: skip
    one_based = [long[0], *([str(int(t) + 1), w, c] for t, w, c in long[1:])]
    yield Input("features: NPY, tasks from 1", "run",
                (*RUN, "--features={folder}/f.npy", FILES[1]),
                both(put("f.npy", saved(lambda s: np.save(s, x))), put("a.csv", one_based)),
                REFUSED, ("a.csv",))  # fmt: skip


def frames(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Parquet of other types."""
    import pandas as pd

    tasks = [line[0] for line in base.features]
    x, y = (np.array([float(line[i]) for line in base.features]) for i in (1, 2))
    frame = pd.DataFrame({"task": tasks, "x": x, "y": y})

    def one(
        kind: str,
        changed: pd.DataFrame,
        right: frozenset[str] = REFUSED,
        sound: list[list[str]] = base.table,
        **how: object,
    ) -> Input:
        stream = io.BytesIO()
        changed.to_parquet(stream, **how)  # type: ignore[call-overload]
        files = both(files_of(base), put("f.parquet", stream.getvalue()))
        given = (*RUN, "--features={folder}/f.parquet", *FILES[1:])
        words = ("a.csv" if "floats" in kind else "f.parquet",)
        plain = files_of(base, f=sound)
        return Input(f"Parquet: {kind}", "run", given, files, right, words, plain, FLAGS)

    yield one("the index has the tasks", frame.set_index("task"), SAME)
    yield one("another index", frame.set_index(pd.Index(range(7, 31), name="n")), SAME | REFUSED)
    exact = [decimal.Decimal(f"{value:.6f}") for value in x]
    yield one("decimals", frame.assign(x=exact), SAME | REFUSED)
    yield one("dates", frame.assign(z=pd.to_datetime("2024-01-01")))
    yield one("dates with zones", frame.assign(z=pd.to_datetime("2024-01-01", utc=True)))
    yield one("durations", frame.assign(z=pd.to_timedelta(range(24), "D")))
    numbers_of = [
        [*line, "z" if not i else str(int(x[i - 1] > 0))] for i, line in enumerate(base.table)
    ]
    yield one("truth values", frame.assign(z=frame.x > 0), SAME, numbers_of)
    yield one("categories", frame.assign(z=pd.Categorical(["1", "2"] * 12)), ANY)
    yield one("categories of numbers", frame.assign(z=pd.Categorical([1, 2] * 12)), ANY)
    yield one("numbers as text", frame.assign(x=frame.x.map(str)), EITHER | SAME)
    yield one("bytes", frame.assign(z=[b"1"] * 24))
    yield one("nullable with null", frame.assign(z=pd.array([None, *range(23)], "Int64")))
    yield one("nullable", frame.assign(x=pd.array(x, "Float64")), SAME)
    yield one("NaN", frame.assign(x=[np.nan, *x[1:]]))
    yield one("infinity", frame.assign(x=[np.inf, *x[1:]]))
    yield one("a null task", frame.assign(task=[None, *tasks[1:]]))
    yield one("a task twice", frame.assign(task=[tasks[1], *tasks[1:]]))
    yield one("no rows", frame[:0])
    yield one("labels", frame.assign(label=base.truth))
    if all(t.isdigit() for t in tasks):
        yield one("tasks as numbers", frame.assign(task=[int(t) for t in tasks]), SAME)
        yield one("tasks as floats", frame.assign(task=[float(t) for t in tasks]), EITHER | SAME)


def parts(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Labels that are read by parts (--engine), which has readers of its own."""
    flags = ("--method=dawid_skene", "--annotations={folder}/a.csv", "--engine=local",
             "--workers=1", "--output={folder}/o")  # fmt: skip

    def one(kind: str, content: object, right: frozenset[str] = REFUSED, *more: str) -> Input:
        words = () if more else ("a.csv",)
        return Input(f"engine: {kind}", "aggregate", (*flags, *more), put("a.csv", content), right,
                     words)  # fmt: skip

    def changed(column: int, value: str) -> Rows:
        rows = copied(base.long)
        for i in some(rows, rng, 4, column):
            rows[i][column] = value
        return rows

    long = base.long
    yield one("sound", long, SAME)
    yield one("BOM and CRLF", b"\xef\xbb\xbf" + text_of(long, end="\r\n").encode(), SAME)
    for sign in ("NA", "null", "-", "", "-1", "\\N", "\u2014"):
        yield one(f"{sign!r} as label", changed(2, sign))
    yield one("NA as worker", changed(1, "NA"))
    yield one("an empty task", changed(0, ""))
    yield one("twins among classes", changed(2, f" {base.classes[0]} "))
    yield one("twins among annotators", changed(1, f"{base.workers[0]}\u200b"))
    yield one("a duplicate pair", [*long, long[3]], REFUSED)
    yield one("a column is missing", [row[:2] for row in long])
    yield one("a row is too long", [*long[:4], [*long[4], "x"], *long[5:]])
    yield one("a row is cut off", [*long[:4], long[4][:2], *long[5:]])
    yield one("header alone", long[:1])
    yield one("empty", "")
    yield one("header again", [*long[:9], long[0], *long[9:]])
    yield one("semicolons", text_of(long, ";"))
    yield one("UTF-16", text_of(long).encode("utf-16"))
    yield one("no UTF-8", text_of(long).encode() + b"t1,w\xff\xfe,x\n")
    yield one("a NUL", text_of(long).encode() + b"t1,w\0,x\n")
    yield one("random bytes", rng.bytes(500))
    yield one("wide", base.wide)
    yield one("scores", [long[0], *([t, w, f"{rng.random():.3f}"] for t, w, _ in long[1:])])
    yield one("an option of tables", long, SAME, "--missing=NA")
    yield one("an option of tables", long, REFUSED, "--separator=;")
    yield one("no options with it", long, SAME, "--exact_names")


METHODS = ("majority_vote", "dawid_skene", "one_coin", "fast_dawid_skene", "glad", "mace", "ibcc",
           "ebcc", "bwa", "wawa", "zbs", "iwmv", "kos", "mmsr", "consensus",
           "gold_majority_vote")  # fmt: skip


def degenerate(base: Sound, rng: np.random.Generator) -> Iterator[Input]:
    """Labels that are sound and hardly enough, for every method; other commands on them."""
    head, rows = base.long[0], base.long[1:]
    one = rows[0][1]
    crowds: dict[str, Rows] = {
        "one label": rows[:1],
        "one task": [row for row in rows if row[0] == rows[0][0]],
        "one annotator": [row for row in rows if row[1] == one],
        "one class": [[t, w, "same"] for t, w, _ in rows],
        "a label a task": [next(r for r in rows if r[0] == task) for task in base.tasks],
        "an annotator a label": [[t, f"v{i}", c] for i, (t, _, c) in enumerate(rows)],
        "a class a label": [[t, w, f"c{i}"] for i, (t, w, _) in enumerate(rows)],
        "always wrong": [[t, w, base.classes[0] if c != base.classes[0] else base.classes[1]]
                         for t, w, c in rows],
        "two that never agree": [[t, w, base.classes[j]] for t in base.tasks
                                 for j, w in enumerate(("v", "w"))],
    }  # fmt: skip
    for name, crowd in crowds.items():
        files = put("a.csv", [head, *crowd])
        for method in METHODS:
            flags = (f"--method={method}", "--annotations={folder}/a.csv")
            yield Input(f"{method} of {name}", "aggregate", flags, files, ANY)
        for command, flags in (
            ("relabel", ("--annotations={folder}/a.csv", "--budget=3")),
            ("report", ("--annotations={folder}/a.csv", "--output={folder}/r.html")),
        ):
            yield Input(f"{command} of {name}", command, flags, files, ANY)
    for budget in ("0", "-1", "x", "99999999999", "1.5"):
        right = ANY if budget.startswith("9") else REFUSED
        given = ("--annotations={folder}/a.csv", f"--budget={budget}")
        yield Input(f"relabel --budget={budget}", "relabel", given, put("a.csv", base.long), right)
    for bad in ("x", "-1", "inf", "nan", ""):
        scores = [["task", *(f"p_{c}" for c in base.classes)],
                  *([t, *(bad if i == 3 and j == 0 else "0.5" for j in range(len(base.classes)))]
                    for i, t in enumerate(base.tasks))]  # fmt: skip
        yield Input("relabel: a probability that is none", "relabel",
                    ("--annotations={folder}/a.csv", "--budget=3",
                     "--probabilities={folder}/p.csv"),
                    both(put("a.csv", base.long), put("p.csv", scores)), REFUSED,
                    ("p.csv",))  # fmt: skip
    halves = ["0.5" for _ in base.classes]
    scores = [["task", *(f"p_{c}" for c in base.classes)],
              *([t, *halves] for t in [*base.tasks, base.tasks[0]])]  # fmt: skip
    yield Input("relabel: probabilities of a task twice", "relabel",
                ("--annotations={folder}/a.csv", "--budget=3", "--probabilities={folder}/p.csv"),
                both(put("a.csv", base.long), put("p.csv", scores)), REFUSED,
                ("p.csv",))  # fmt: skip
    for flag in ("--method=nothing", "--gold={folder}/none.csv", "--seed=x", "--classes=,",
                 "--output={folder}", "--annotators={folder}", "--question=q", "--unknown=1",
                 "--worker_column=nobody", "--separator="):  # fmt: skip
        right = ANY if flag == "--question=q" else REFUSED
        given = ("--annotations={folder}/a.csv", "--method=majority_vote", flag)
        yield Input(f"aggregate {flag}", "aggregate", given, put("a.csv", base.long), right)


GROUPS = (
    spreadsheets,
    extra_columns,
    signs,
    features,
    truths,
    texts,
    archives,
    frames,
    parts,
    degenerate,
)


def inputs(seed: int) -> Iterator[Input]:
    """Yields every kind once, drawn with a seed."""
    for number, group in enumerate(GROUPS):
        yield from group(sound(seed), np.random.default_rng([seed, number, 0x7A3F]))
