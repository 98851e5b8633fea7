"""A file for each check of the catalogue, which rejects it in one line that ends with its id."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.torture.forked import HUNG, forked, tail

SECONDS = 60
LONG = "task,worker,label\n"
ROWS = "t1,ann,yes\nt1,bob,no\nt2,ann,no\nt2,bob,no\n"
SCORES = "".join(f"t{i},w{j},{(7 * i + j) / 10}\n" for i in range(10) for j in range(3))
TEXTS = "".join(f"t{i},w{j},text {i} of {j}\n" for i in range(20) for j in range(3))


def packed(**files: str) -> bytes:
    """Returns a zip archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.csv", text)
    return stream.getvalue()


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def figure_eight(**answers: str) -> str:
    judgments = [{"worker_id": w, "data": dict.fromkeys(answers, a)} for w, a in enumerate("xy")]
    return lines(*({"id": i, "data": {}, "results": {"judgments": judgments}} for i in range(2)))


# The check, the file's name, its content and further flags of aggregate.
CASES: list[tuple[str, str, str | bytes, tuple[str, ...]]] = [
    ("unreadable", "a.zip", packed(a=LONG + ROWS, b=LONG + ROWS), ()),
    ("unreadable", "a.csv.gz", gzip.compress(b"task,worker,label\n" * 99)[:-9], ()),
    ("encoding", "a.csv", (LONG + ROWS + "é,ann,yes\n").encode("latin-1"), ()),
    ("broken_file", "a.csv", LONG + ROWS + 't3,ann,"yes\n', ()),
    ("broken_file", "a.json", '{"t1": {"ann": "yes", "bob": "n', ()),
    ("broken_file", "a.parquet", b"PAR1 and something else", ()),
    ("no_labels", "a.csv", LONG, ()),
    ("no_labels", "a.csv", "", ()),
    ("row_length", "a.csv", LONG + ROWS + "t3,ann,yes,no\n", ()),
    ("column_twice", "a.csv", "task,worker,label,label\nt1,ann,yes,no\n", ()),
    ("header_again", "a.csv", LONG + ROWS + LONG + ROWS, ()),
    ("unknown_layout", "a.json", json.dumps({"t1": [{"who": "ann", "what": "yes"}]}), ()),
    (
        "nothing_to_aggregate",
        "a.jsonl",
        lines({"id": 1, "text": "Oslo", "label": [[0, 4, "PLACE"]]}),
        (),
    ),
    ("several_questions", "a.jsonl", figure_eight(sentiment="pos", topic="art"), ()),
    ("no_column", "a.csv", LONG + ROWS, ("--task_column=item_id",)),
    ("missing_role", "a.csv", "topic,who,doc,said\n1,ann,a,yes\n1,bob,b,no\n2,ann,c,no\n", ()),
    ("two_columns", "a.csv", "task,item,worker,label\nt1,i1,ann,yes\nt1,i1,bob,no\n", ()),
    (
        "which_label",
        "a.csv",
        "item,worker,a,b\n"
        + "".join(f"{i},{w},{w % 2},{(i + w) % 2}\n" for i in (1, 2, 3) for w in (7, 8)),
        (),
    ),
    (
        "no_header",
        "a.csv",
        "".join(f"w{i % 3},t{i // 3},{'yes' if i % 2 else 'no'}\n" for i in range(12)),
        (),
    ),
    (
        "vote_counts",
        "a.csv",
        "task,count,hate,neither\n" + "".join(f"t{i},3,{i % 4},{3 - i % 4}\n" for i in range(9)),
        (),
    ),
    ("bad_count", "a.csv", "task,votes_yes,votes_no\nt1,1,0.5\nt2,2,1\n", ()),
    (
        "one_hot",
        "a.csv",
        "task,worker,is.yes,is.no\nt1,ann,1,1\nt1,bob,0,1\n",
        ("--label_column=is.*",),
    ),
    ("multi_label", "a.csv", LONG + ROWS + "t3,ann,yes|no\nt3,bob,no|yes\n", ()),
    ("ratings", "a.csv", LONG + SCORES, ()),
    ("free_text", "a.csv", LONG + TEXTS, ()),
    ("similar_names", "a.csv", LONG + ROWS + "t3,ann,Yes\n", ()),
    ("bad_characters", "a.csv", LONG + ROWS + "t3,ann,caf\ufffd\n", ()),
    ("cut_id", "a.csv", LONG + ROWS + "t3,1.23457E+11,yes\n", ()),
    ("names_as_labels", "a.csv", LONG + "t1,ann,bob\nt1,bob,ann\nt2,ann,ann\nt2,bob,bob\n", ()),
    ("duplicate_pair", "a.csv", LONG + ROWS + "t1,ann,no\n", ("--duplicates=error",)),
    ("unknown_class", "a.csv", LONG + ROWS + "t3,ann,maybe\n", ("--classes=no,yes",)),
]
# Checks of features, in tables beside good labels: the check, the features' content.
FEATURES: list[tuple[str, str]] = [
    ("bad_feature", "task,x\nt1,1.5\nt2,inf\n"),
    ("unmatched_item", "task,x\nt1,1.5\nt9,2\n"),
    ("leak", "task,x,worker\nt1,1.5,2\nt2,2,3\n"),
]


def command(name: str, flags: Sequence[str]) -> int:
    """Runs a command of the library in this process; returns its exit code."""
    from importlib import import_module

    module = import_module(
        {"report": "neucrowd_tf.commands.report"}.get(name, f"neucrowd_tf.{name}")
    )
    return int(module.main(list(flags)))


def prepare() -> None:
    """Imports what the commands need, so that a forked process need not."""
    import neucrowd_tf.aggregation
    import neucrowd_tf.commands.aggregate
    import neucrowd_tf.commands.report  # noqa: F401


def rejected(check: str, work: Callable[[], int], folder: Path) -> list[str]:
    """Returns what is wrong with how a command rejected a file."""
    log = folder / "log"
    code = forked(work, log, seconds=SECONDS)
    text = log.read_text(errors="replace")
    errors = [line for line in text.splitlines() if line.startswith("error:")]
    wrong = []
    if code == HUNG:
        wrong.append(f"{check}: more than {SECONDS} s")
    elif code != 2 or "Traceback" in text:
        wrong.append(f"{check}: exit code {code}: {tail(log)}")
    elif len(errors) != 1 or f"[{check}]" not in errors[0] or str(folder) not in errors[0]:
        wrong.append(f"{check}: expected one line with the file and the id: {tail(log)}")
    if (folder / "out").exists():
        wrong.append(f"{check}: it wrote its output")
    return wrong


def try_case(check: str, name: str, content: str | bytes, flags: Sequence[str]) -> list[str]:
    """Writes a file and aggregates it; returns what is wrong."""
    with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
        folder = Path(scratch)
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        every = [f"--annotations={path}", f"--output={folder}/out", *flags]
        return rejected(check, lambda: command("aggregate", every), folder)


def try_features(check: str, content: str) -> list[str]:
    """Writes features beside good labels and reports on them; returns what is wrong."""
    with tempfile.TemporaryDirectory(prefix="torture-") as scratch:
        folder = Path(scratch)
        (folder / "a.csv").write_text(LONG + ROWS)
        (folder / "f.csv").write_text(content)
        flags = [f"--annotations={folder}/a.csv", f"--features={folder}/f.csv"]
        flags.append(f"--output={folder}/out")
        return rejected(check, lambda: command("report", flags), folder)
