"""Malformed inputs: a file for each check of the catalogue, and names of any letters.

Each is rejected in one line with the file and the check's id, and nothing is written.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neucrowd_tf.cli.commands import call
from neucrowd_tf.io.checks import catalogue

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


def rejected(command: str, check: str, flags: list[str], folder: Path, capsys: Any) -> None:
    assert call(command, [*flags, f"--output={folder}/out"]) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and f"[{check}]" in errors[0] and str(folder) in errors[0]
    assert not (folder / "out").exists()


@pytest.mark.parametrize("case", CASES, ids=[f"{case[0]}-{n}" for n, case in enumerate(CASES)])
def test_labels_are_rejected_with_the_id(
    case: tuple[str, str, str | bytes, tuple[str, ...]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    check, name, content, flags = case
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    rejected("aggregate", check, [f"--annotations={path}", *flags], tmp_path, capsys)


@pytest.mark.parametrize(("check", "content"), FEATURES)
def test_features_are_rejected_with_the_id(
    check: str, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text(LONG + ROWS)
    (tmp_path / "f.csv").write_text(content)
    flags = [f"--annotations={tmp_path}/a.csv", f"--features={tmp_path}/f.csv"]
    rejected("report", check, flags, tmp_path, capsys)


def test_every_check_has_a_case() -> None:
    assert {case[0] for case in (*CASES, *FEATURES)} == set(catalogue())


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(labels=st.lists(NAMES, min_size=2, max_size=4, unique=True))
def test_any_class_names_end_in_labels_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, labels: list[str]
) -> None:
    folder: Path = tmp_path_factory.mktemp("names")
    with (folder / "a.csv").open("w", encoding="utf-8", newline="") as stream:
        rows = [[f"t{i}", f"w{j}", label] for i, label in enumerate(labels) for j in range(2)]
        csv.writer(stream).writerows([["task", "worker", "label"], *rows])
    flags = [f"--annotations={folder}/a.csv", "--method=majority_vote", f"--output={folder}/o.csv"]
    assert call("aggregate", flags) == (0 if (folder / "o.csv").exists() else 2)
